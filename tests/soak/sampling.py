"""What each process of an installation holds at one moment, and what the two servers keep."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import httpx
from nats.aio.client import Client
from redis.asyncio import Redis

from libs.eventlog import connect
from libs.eventlog.api import ask
from libs.eventlog.streams import JOBS
from tests.bench.processes import descriptors, resident_kib
from tests.fixtures.installation import Installation
from tests.soak.flatness import Allowed

_TASKS: Final = re.compile(r"^headgate_tasks(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
# What a job leaves on purpose: its events, with a subject for each kind of them, for as long as policy keeps them.
SUBJECTS_A_JOB: Final = 10.0
LOG_KIB_A_JOB: Final = 12.0  # of nats-server's memory: its subjects in the log, and its input's
INDEX_KIB_A_JOB: Final = 4.0  # of admission's: pages of the index, until its cache is full
MEMORY_KIB: Final = Allowed(share=0.10, noise=12 * 1024)
OF_NATS: Final = Allowed(share=0.10, noise=24 * 1024, a_job=LOG_KIB_A_JOB)
OF_ADMISSION: Final = Allowed(share=0.10, noise=12 * 1024, a_job=INDEX_KIB_A_JOB)
OPEN: Final = Allowed(share=0.10, noise=8)
KEYS: Final = Allowed(share=0.10, noise=100)
SUBJECTS: Final = Allowed(share=0.0, noise=100, a_job=SUBJECTS_A_JOB)


def allowed(name: str) -> Allowed:
    """By what it is, then by whose."""
    whose, _, what = name.partition(" ")
    if what == "memory, KiB":
        return {"nats": OF_NATS, "admission": OF_ADMISSION}.get(whose, MEMORY_KIB)
    return {"keys": KEYS, "subjects": SUBJECTS}.get(what, OPEN)


@dataclass(frozen=True, slots=True)
class Probe:
    """Connections that last as long as the soak, so that looking changes nothing."""

    there: Installation
    http: httpx.AsyncClient
    nats: Client
    view: Redis

    @classmethod
    @asynccontextmanager
    async def of(cls, there: Installation) -> AsyncIterator[Probe]:
        nc = await connect(there.up.nats_url, name="soak")
        view = Redis.from_url(there.up.redis_url)
        try:
            async with httpx.AsyncClient(timeout=30) as http:
                yield cls(there, http, nc, view)
        finally:
            await view.aclose()
            await nc.close()

    async def read(self) -> Mapping[str, float]:
        up = self.there.up
        found: dict[str, float] = {}
        for process in (*up.services, *up.servers):
            found[f"{process.name} memory, KiB"] = resident_kib(process.pid)
            found[f"{process.name} descriptors"] = descriptors(process.pid)
        for service in up.services:
            page = (await self.http.get(f"{service.url}/metrics")).text
            [tasks] = _TASKS.findall(page)
            found[f"{service.name} tasks"] = float(tasks)
        state = (await ask(self.nats, "STREAM.INFO", stream=JOBS, question={}))["state"]
        return found | {"log subjects": state.get("num_subjects", 0), "view keys": await self.view.dbsize()}

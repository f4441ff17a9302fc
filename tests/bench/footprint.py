"""What each process takes while nothing happens, and with a hundred jobs in the system, beside what it asks for in the
manifests: everything as `headgate up` runs it, with the descendants of each. Each service by itself too, as a container
runs it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from headgate_contracts import Tier
from libs.local.service import ServiceProcess
from libs.runtime.eventually import eventually
from tests.bench.asked import Asked, Told
from tests.bench.field import ROOMY
from tests.bench.page import table
from tests.bench.processes import cpu_s, parent, proportional_mib, resident_kib, resident_mib, trees
from tests.fixtures.installation import Installation, installed
from tests.fixtures.manifests import BASE, render, render_with

JOBS: Final = 100
SLOTS: Final = 4  # of each of two workers, as a pod has in the base
WATCHED_S: Final = 30
USERS: Final = 10
LONG: Final = {"stages": {"scaffold": 0, "code": 600}, "log_lines": 0}
UNCONTAINED: Final = {"HEADGATE_SANDBOX": "trusted"}  # these jobs start no command, so any machine will do
GATEWAY: Final = "caddy"  # as `headgate up` calls it
FORKS: Final = "the fork server"
ALONE: Final = ("admission", "scheduler", "notifier", "worker")
ORDER: Final = ("admission", "scheduler", "notifier", "worker", "worker-2", "nats", "valkey", GATEWAY)


@dataclass(frozen=True, slots=True)
class Taken:
    """By one process with its descendants: of a processor's thousandths, of memory, and its part of that."""

    milli: float
    mib: float
    part_mib: float

    def __str__(self) -> str:
        return f"{self.milli:,.0f}m, {self.mib:,.0f} MiB, {self.part_mib:,.0f}"


async def footprint(asked: Asked) -> Told:
    """Idle, then with a hundred jobs of which as many run as there are slots."""
    jobs = asked.some(JOBS, least=2 * SLOTS)
    async with installed(asked.room(), policy=ROOMY, workers=2, slots=SLOTS, environ=UNCONTAINED) as there:
        alone = {name: await _alone(there, name, asked) for name in ALONE}
        await asyncio.sleep(asked.some(10))  # what a start costs is over
        idle = await _taken(there, asked)
        asked.say(f"idle is known; {jobs} jobs come")
        async with there.client("filler", Tier.CTO_SCALE) as client:
            await _filled(client, jobs)
            full = await _taken(there, asked)
            await client.post("/jobs/cancel", json={"project": "filled"})
    rows = [[name, _asked_for(name), alone.get(name, ""), str(idle[name]), str(full[name])] for name in ORDER]
    rows.append([FORKS, "", "", str(idle[FORKS]), str(full[FORKS])])
    running = f"{jobs} jobs, of which {2 * SLOTS} run"
    return Told(table(("process", "asks for in the base", "idle, by itself", "idle", running), rows))


async def _alone(there: Installation, service: str, asked: Asked) -> str:
    """One more of it, which has loaded its own: what it holds, and what those do that it has started."""
    name = f"{service}-alone"
    environment = there.environment(service, name=name) | UNCONTAINED
    process = ServiceProcess(f"services.{service}", name=name, folder=there.state / "logs", environment=environment)
    async with process:
        await eventually(process.ready, within_s=60, every_s=0.1)
        await asyncio.sleep(asked.some(5))
        own, whole = resident_kib(process.pid) / 1024, resident_mib([process.pid])
    return f"{own:,.0f} MiB" if own == whole else f"{own:,.0f} and {whole - own:,.0f} MiB"


async def _filled(client: httpx.AsyncClient, jobs: int) -> None:
    body = {"project_id": "filled", "pipeline": "rehearsal", "input": LONG}
    for _ in range(jobs):
        (await client.post("/jobs", json=body)).raise_for_status()

    async def all_slots_are_taken() -> bool:
        found = (await client.get("/jobs", params={"status": "code", "limit": 100})).json()
        return len(found["jobs"] if isinstance(found, dict) else found) == 2 * SLOTS

    await eventually(all_slots_are_taken, within_s=60, every_s=0.2)


async def _taken(there: Installation, asked: Asked) -> Mapping[str, Taken]:
    pids = {each.name: each.pid for each in (*there.up.services, *there.up.servers)}
    before, begun = {name: cpu_s([pid]) for name, pid in pids.items()}, time.perf_counter()
    await asyncio.sleep(asked.some(WATCHED_S, least=2))
    seconds = time.perf_counter() - begun
    taken = {
        name: Taken(1000 * (cpu_s([pid]) - before[name]) / seconds, resident_mib([pid]), proportional_mib(trees([pid])))
        for name, pid in pids.items()
    }
    forks = parent(pids["admission"])
    return taken | {FORKS: Taken(0, resident_kib(forks) / 1024, proportional_mib([forks]))}  # it sleeps


def _asked_for(name: str) -> str:
    requests = _requests("gateway" if name == GATEWAY else name.partition("-")[0])
    return f"{requests['cpu']}, {requests['memory'].replace('Mi', ' MiB').replace('Gi', ' GiB')}"


def _requests(workload: str) -> Mapping[str, Any]:
    rendered = render_with("ingress") if workload == "gateway" else render(BASE)
    containers: Sequence[Mapping[str, Any]] = rendered.pods()[workload]["containers"]
    return containers[0]["resources"]["requests"]

"""What one job, subject and connection cost the servers, and from that what a day of jobs asks for.

The log's part is measured with finished jobs of eight events each, put in by batches; the scheduler's with jobs that
are waiting, and with jobs that it starts and sees end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from redis.asyncio import Redis

from libs.eventlog import connect, migrate, open_log
from libs.eventlog.api import ask
from libs.eventlog.expectation import Message
from libs.eventlog.jetstream import JetStreamWire
from libs.eventlog.streams import JOBS, MIB
from libs.eventlog.values import Entry
from libs.local.servers import NatsServer, ValkeyServer
from libs.runtime.clock import SystemClock
from libs.runtime.eventually import eventually
from tests.bench.asked import Asked, Told
from tests.bench.page import table
from tests.bench.processes import cpu_s, resident_mib
from tests.bench.reckoning import HEADS, OneJob, row_of
from tests.fixtures.lives import life_of, queued
from tests.fixtures.logs import new_epoch, settings
from tests.fixtures.scheduler_system import POLICY, SchedulerSystem, a_scheduler_system

FINISHED: Final = 4_000
WAITING: Final = 4_000
SUBJECTS: Final = 50_000
STARTED: Final = 200
BEATS: Final = 500
CONNECTIONS: Final = 200
BATCH: Final = 200
APPENDED: Final = 50  # the most that one append takes
ROOMY: Final = POLICY.replace("cap = 500", "cap = 100000").replace("user_share = 500", "user_share = 100000")
DAYS: Final = ((10_000, 90), (1_000_000, 90), (1_000_000, 7))
ONE_SUBJECT: Final = "headgate.jobs.v1.job-{:06}.user.project.queued"


@dataclass(frozen=True, slots=True)
class Held:
    """By a log, and by its server's memory."""

    events: int
    subjects: int
    disk_bytes: int
    written_mib: float  # when all had just been written
    kept_mib: float  # of a server that was started again on them


async def capacity(asked: Asked) -> Told:
    """Tables of what was measured, and of what follows."""
    log = await _log_part(asked)
    subjects = await _subject_part(asked)
    asked.say("connections")
    connection_kib = await _connection_kib(asked)
    waiting = asked.some(WAITING, least=100)
    asked.say(f"{waiting:,} jobs that wait")
    scheduler_kib, valkey_kib = await _waiting_kib(asked, waiting)
    asked.say("jobs that are started")
    started_ms, beat_ms = await _processor_ms(asked)
    job = replace(log, scheduler_s=started_ms / 1000)
    measured = [
        ["events of a job", f"{job.events:.0f}"],
        ["subjects of a job", f"{job.subjects:.0f}"],
        ["disk of a job, its events", f"{job.disk_bytes / 1024:.1f} KiB"],
        ["nats-server's memory for a finished job, just written", f"{job.written_bytes / 1024:.1f} KiB"],
        ["the same when it is longer ago than duplicates are looked for", f"{job.kept_bytes / 1024:.1f} KiB"],
        ["nats-server's memory for a subject", f"{subjects:.2f} KiB"],
        ["nats-server's memory for a connection", f"{connection_kib:.0f} KiB"],
        ["a scheduler's memory for a waiting job", f"{scheduler_kib:.1f} KiB"],
        ["Valkey's memory for a waiting job", f"{valkey_kib:.1f} KiB"],
        ["a scheduler's processor for a job, from queued to ready", f"{started_ms:.1f} ms"],
        ["a scheduler's processor for a worker's heartbeat", f"{beat_ms:.2f} ms"],
    ]
    reckoned = table(HEADS, [row_of(job, a_day=a_day, days=days) for a_day, days in DAYS])
    return Told("\n\n".join([table(("one", "takes"), measured), reckoned]))


async def _log_part(asked: Asked) -> OneJob:
    """What a finished job leaves in the log and in its server."""
    jobs = asked.some(FINISHED, least=100)
    asked.say(f"{jobs:,} finished jobs")
    fresh = await _held(asked, _batched(_of_lives(jobs)))
    old = await _held(asked, _batched(map(_forgotten, _of_lives(jobs))))
    return OneJob(
        events=fresh.events / jobs,
        subjects=fresh.subjects / jobs,
        disk_bytes=fresh.disk_bytes / jobs,
        kept_bytes=old.kept_mib * MIB / jobs,
        written_bytes=fresh.written_mib * MIB / jobs,
    )


async def _subject_part(asked: Asked) -> float:
    """In KiB: as many messages under a subject each, and under one."""
    subjects = asked.some(SUBJECTS, least=1000)
    asked.say(f"{subjects:,} subjects")
    many, one = [await _held(asked, _batched(_bare(subjects, apart=apart))) for apart in (True, False)]
    return (many.kept_mib - one.kept_mib) * 1024 / subjects


async def _held(asked: Asked, batches: Iterable[Sequence[Message]]) -> Held:
    """Of a server of its own, so that what another has let go is not counted."""
    async with NatsServer(asked.room()) as server:
        nc = await connect(server.url, name="capacity")
        shape = settings(jobs_max_bytes=1024 * MIB)
        await migrate(nc, shape, new_epoch=new_epoch())
        log = await open_log(nc, shape)
        wire = JetStreamWire(nc, epoch=log.epoch, clock=SystemClock())
        before = resident_mib([server.pid])
        for batch in batches:
            await wire.send(batch, within_s=10.0)
        state = (await ask(nc, "STREAM.INFO", stream=JOBS, question={}))["state"]
        written = resident_mib([server.pid]) - before
        await nc.close()
        await server.restart()
        kept = resident_mib([server.pid]) - before
    return Held(state["messages"], state["num_subjects"], state["bytes"], written, kept)


def _of_lives(jobs: int) -> Iterator[Message]:
    """Finished jobs, without expectations, so that a whole life can go into one batch."""
    for number in range(jobs):
        for event in life_of(f"job-{number}"):
            yield Message(Entry(event, None), event.subject, event.encode(), None, {"Nats-Msg-Id": event.id})


def _forgotten(message: Message) -> Message:
    """As the server knows it minutes later: no more by the id, by which it knows a duplicate."""
    return replace(message, headers={})


def _bare(number: int, *, apart: bool) -> Iterator[Message]:
    """As little as a message can be, each under a subject of its own or all under one."""
    [first, *_] = _of_lives(1)
    for each in range(number):
        yield replace(first, subject=ONE_SUBJECT.format(each if apart else 0), payload=b"{}", headers={})


def _batched(messages: Iterable[Message]) -> Iterator[Sequence[Message]]:
    rest = iter(messages)
    while batch := list(islice(rest, BATCH)):
        yield batch


async def _connection_kib(asked: Asked) -> float:
    number = asked.some(CONNECTIONS, least=10)
    async with NatsServer(asked.room()) as server:
        before = resident_mib([server.pid])
        open_ones = [await connect(server.url, name=f"idle-{each}") for each in range(number)]
        grown = resident_mib([server.pid]) - before
        await asyncio.gather(*(one.close() for one in open_ones))
    return grown * 1024 / number


async def _waiting_kib(asked: Asked, jobs: int) -> tuple[float, float]:
    """A scheduler that starts on an empty log, and one that starts on so many jobs; each with a Valkey of its own."""
    none, some = [await _folded(asked, number) for number in (0, jobs)]
    return tuple((after - before) * 1024 / jobs for before, after in zip(none, some, strict=True))  # type: ignore[return-value]


async def _folded(asked: Asked, jobs: int) -> tuple[float, float]:
    async with _servers(asked) as (system, valkey):
        for start in range(0, jobs, APPENDED):
            numbers = range(start, min(jobs, start + APPENDED))
            events = [queued(f"job-{number}", place=(number + 1) << 16, quota_day=None) for number in numbers]
            await system.log.append_batch([Entry(event, 0) for event in events])
        scheduler = await system.scheduler("a")

        async def is_folded() -> bool:
            mark = await system.view.mark()
            return mark is not None and mark.applied >= jobs

        await eventually(is_folded, within_s=120, every_s=0.2)
        return resident_mib([scheduler.pid]), await _used_mib(valkey.url)


async def _processor_ms(asked: Asked) -> tuple[float, float]:
    """Of a scheduler for each job that it starts and sees end, and for each first heartbeat of a worker."""
    jobs, beats = asked.some(STARTED, least=20), asked.some(BEATS, least=50)
    async with _servers(asked) as (system, _):
        scheduler = await system.scheduler("a")
        system.worker("w1", slots=16, run_s=0)
        await system.submit_many(5)
        await system.all_end()
        before, begun = cpu_s([scheduler.pid]), time.perf_counter()
        await system.submit_many(jobs)
        await system.all_end(within_s=300)
        asked.say(f"{jobs} jobs in {time.perf_counter() - begun:.1f} s")
        between = cpu_s([scheduler.pid])
        for number in range(beats):
            assert await system.beat(f"idle-{number}", slots=0, timeout_s=10) is not None
        return 1000 * (between - before) / jobs, 1000 * (cpu_s([scheduler.pid]) - between) / beats


@asynccontextmanager
async def _servers(asked: Asked) -> AsyncIterator[tuple[SchedulerSystem, ValkeyServer]]:
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(NatsServer(asked.room()))
        valkey = await stack.enter_async_context(ValkeyServer(asked.room()))
        system = await stack.enter_async_context(a_scheduler_system(nats.url, valkey.url, asked.room(), policy=ROOMY))
        yield system, valkey


async def _used_mib(url: str) -> float:
    view = Redis.from_url(url)
    try:
        told: Any = await view.info("memory")
    finally:
        await view.aclose()
    return told["used_memory"] / MIB

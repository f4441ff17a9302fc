"""What the start of a job costs the scheduler beside so many that wait, and beside so many that run.

Jobs that wait are put into the log before the scheduler starts; jobs that run are started first and held. Then so many
more are started and end, as many come as go, and what the scheduler took for them is counted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from headgate_contracts import JobEvent
from libs.capacity.rows import ARRIVAL_STEP
from libs.eventlog.values import Entry
from libs.local.servers import NatsServer, ValkeyServer
from libs.runtime.eventually import eventually
from tests.bench.asked import Asked, Told
from tests.bench.figures import Spread, growth
from tests.bench.page import table
from tests.bench.plots import curves
from tests.bench.processes import cpu_s, resident_mib
from tests.fixtures.lives import queued
from tests.fixtures.scheduler_system import POLICY, SchedulerSystem, a_scheduler_system

WAITING: Final = (10, 100, 1_000, 10_000, 100_000)
RUNNING: Final = (1, 10, 100, 1_000)
STARTED: Final = 200
SLOTS: Final = 16
APPENDED: Final = 50  # the most that one append takes
FOREVER_S: Final = 1e6
ROOMY: Final = (
    POLICY.replace("cap = 500", "cap = 200000").replace("user_share = 500", "user_share = 200000")
    + "\n[concurrency.limits]\nworkflows = 20000\n"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one scheduler, in one round."""

    cpu_ms: float  # of one job, from queued to its end
    mib: float  # of the process then


Found = Mapping[int, list[Cost]]


async def grown(asked: Asked) -> Told:
    """Tables, exponents and a picture."""
    waiting: Found = {size: [] for size in asked.sizes(*WAITING)}
    running: Found = {size: [] for size in asked.sizes(*RUNNING)}
    for number in range(asked.rounds):
        for size in waiting:
            asked.say(f"round {number + 1} of {asked.rounds}: {size:,} wait")
            waiting[size].append(await _beside_waiting(asked, size))
        for size in running:
            asked.say(f"round {number + 1} of {asked.rounds}: {size:,} run")
            running[size].append(await _beside_running(asked, size))
    both = {"wait": waiting, "run": running}
    drawn = {f"jobs that {name}": _spreads(found, CPU) for name, found in both.items()}
    picture = curves("The scheduler's CPU for a job", drawn, across="jobs beside it", unit="ms")
    return Told("\n\n".join([_rows(both), _exponents(both)]), {"growth": picture})


async def _beside_waiting(asked: Asked, size: int) -> Cost:
    """The first of those that wait are started, and as many come as go."""
    jobs = asked.some(STARTED, least=10)
    async with _system(asked) as system:
        for start in range(0, size, APPENDED):
            numbers = range(start, min(size, start + APPENDED))
            events = [_waiting(number) for number in numbers]
            await system.log.append_batch([Entry(event, 0) for event in events])
        scheduler = await system.scheduler("a")

        async def is_folded() -> bool:
            mark = await system.view.mark()
            return mark is not None and mark.applied >= size

        await eventually(is_folded, within_s=300, every_s=0.2)
        system.worker("w1", slots=SLOTS, run_s=0)
        await _ended(system, min(size, SLOTS))
        return await _cost(system, scheduler.pid, jobs)


async def _beside_running(asked: Asked, size: int) -> Cost:
    """A worker of its own holds those that run, so that its heartbeats name them all."""
    jobs = asked.some(STARTED, least=10)
    async with _system(asked) as system:
        scheduler = await system.scheduler("a")
        system.worker("holder", slots=size, run_s=FOREVER_S)
        for number in range(size):
            await system.submit(user=f"held-{number}")
        await eventually(lambda: system.dispatched >= size, within_s=300, every_s=0.05)
        system.worker("w1", slots=SLOTS, run_s=0)
        return await _cost(system, scheduler.pid, jobs)


async def _cost(system: SchedulerSystem, pid: int, jobs: int) -> Cost:
    ended, before = len(system.ended), cpu_s([pid])
    for number in range(jobs):
        await system.submit(user=f"u{number}")
    await _ended(system, ended + jobs)
    return Cost(1000 * (cpu_s([pid]) - before) / jobs, resident_mib([pid]))


async def _ended(system: SchedulerSystem, number: int) -> None:
    await eventually(lambda: len(system.ended) >= number, within_s=300, every_s=0.02)


def _waiting(number: int) -> JobEvent:
    arrival, user = number + 1, f"w{number}"
    place = arrival * ARRIVAL_STEP
    return queued(
        f"waiting-{number}", user_id=user, project_id=f"p-{user}", arrival=arrival, place=place, quota_day=None
    )


@asynccontextmanager
async def _system(asked: Asked) -> AsyncIterator[SchedulerSystem]:
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(NatsServer(asked.room()))
        valkey = await stack.enter_async_context(ValkeyServer(asked.room()))
        yield await stack.enter_async_context(a_scheduler_system(nats.url, valkey.url, asked.room(), policy=ROOMY))


# ── what is told ──────────────────────────────────────────────────────────────

CPU: Final[Callable[[Cost], float]] = attrgetter("cpu_ms")
MEMORY: Final[Callable[[Cost], float]] = attrgetter("mib")


def _spreads(found: Found, of: Callable[[Cost], float]) -> dict[float, Spread]:
    return {size: Spread.of(map(of, costs)) for size, costs in found.items()}


def _rows(both: Mapping[str, Found]) -> str:
    rows = [
        [f"{size:,} {name}", str(Spread.of(map(CPU, costs))), str(Spread.of(map(MEMORY, costs)))]
        for name, found in both.items()
        for size, costs in found.items()
    ]
    return table(("beside", "a job, ms of the scheduler's CPU", "the scheduler, MiB"), rows)


def _exponents(both: Mapping[str, Found]) -> str:
    rows = [[name, _exponent(found, CPU), _exponent(found, MEMORY)] for name, found in both.items()]
    return table(("grows with those that, exponent of", "CPU", "memory"), rows)


def _exponent(found: Found, of: Callable[[Cost], float]) -> str:
    return str(growth((size, of(one)) for size, costs in found.items() for one in costs))

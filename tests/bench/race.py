"""All queues beside each other: the way of one job through an idle system, and a filled queue drained.

Each round has all of them in turn, in an order that moves on by one from round to round, so that what else the machine
does meets all alike. A ratio is taken within a round.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar

from tests.bench.asked import Asked, Told
from tests.bench.contenders import CONTENDERS, FLOOR, HEADGATE, PROCRASTINATE, Contender
from tests.bench.environments import NotMadeError, versions
from tests.bench.field import Field, up
from tests.bench.figures import Spread, percentile, ratios
from tests.bench.floors import raw_appends
from tests.bench.page import table
from tests.bench.plots import rows

ALONE: Final = 100  # jobs, each when the one before it has ended
WARM: Final = 10
LONGEST_S: Final = 20.0  # for those that look twice a second only
DRAINED: Final = 1_000
EVENTS_A_JOB: Final = 8
HOPS: Final = ("queued", "dispatched", "started", "stage scaffold", "ready")
T = TypeVar("T")
Rounds = Mapping[Contender, Sequence[T]]


@dataclass(frozen=True, slots=True)
class Alone:
    """Milliseconds from before the submission to each moment, of one round."""

    p50: float
    p99: float
    hops: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Drained:
    """Of one round: jobs a second, and milliseconds of CPU a job by process."""

    jobs_s: float
    cpu_ms: Mapping[str, float]

    @property
    def whole_ms(self) -> float:
        return sum(self.cpu_ms.values())


async def latency(asked: Asked) -> Told:
    """Submit → start."""
    found = await _rounds(asked, (FLOOR, *CONTENDERS), lambda field: _alone(field, asked.some(ALONE, least=5)))
    p50, p99 = _each(found, lambda one: one.p50), _each(found, lambda one: one.p99)
    shown = [
        [who.name, str(Spread.of(p50[who])), str(Spread.of(p99[who])), _beside(p50, who), who.syncs, who.killed]
        for who in found
    ]
    head = ("", "p50, ms", "p99, ms", "p50 / Procrastinate's", "synced", "a job whose worker is killed")
    drawn = {who.name: {"p50": Spread.of(p50[who]), "p99": Spread.of(p99[who])} for who in found}
    picture = rows("Submit → start on an idle system", drawn, unit="ms")
    hops = [_hops(found[HEADGATE])] if HEADGATE in found else []
    return Told("\n\n".join([table(head, shown), *hops, _pinned()]), {"latency": picture})


async def drain(asked: Asked) -> Told:
    """Jobs a second and CPU a job, a filled queue drained."""
    jobs = asked.some(DRAINED, least=50)
    found = await _rounds(asked, CONTENDERS, lambda field: _drained(field, jobs))
    raw = Spread.of([await raw_appends(asked.room()) for _ in range(asked.rounds)])
    jobs_s, cpu = _each(found, lambda one: one.jobs_s), _each(found, lambda one: one.whole_ms)
    shown = [
        [who.name, str(Spread.of(jobs_s[who])), str(Spread.of(cpu[who])), _beside(cpu, who), who.syncs] for who in found
    ]
    shown.append(
        ["floor: raw appends, 8 a job", str(Spread(*(each / EVENTS_A_JOB for each in _parts(raw)))), "", "", ""]
    )
    head = ("", "jobs/s", "CPU a job, ms", "CPU / Procrastinate's", "synced")
    pictures = {
        "jobs": rows("A filled queue drained, jobs a second", _drawn(jobs_s), unit="/s"),
        "cpu": rows("CPU a job, servers and workers", _drawn(cpu), unit="ms"),
    }
    by_process = [_by_process(found[HEADGATE])] if HEADGATE in found else []
    return Told("\n\n".join([table(head, shown), *by_process]), pictures)


async def _rounds(
    asked: Asked, contenders: Sequence[Contender], measure: Callable[[Field], Awaitable[T]]
) -> dict[Contender, list[T]]:
    found: dict[Contender, list[T]] = {who: [] for who in contenders}
    for number in range(asked.rounds):
        for who in (*contenders[number:], *contenders[:number]):
            if who not in found:
                continue
            asked.say(f"round {number + 1} of {asked.rounds}: {who.name}")
            try:
                async with up(who, asked.room()) as field:
                    found[who].append(await measure(field))
            except NotMadeError as error:
                asked.say(str(error))
                del found[who]
    return found


async def _alone(field: Field, jobs: int) -> Alone:
    dice, until = Random(7), time.monotonic() + LONGEST_S
    begun: dict[int, int] = {}
    for number in range(1, WARM + jobs + 1):
        begun[number], _ = await field.client.submit(number)
        await field.moments.until(number, "ended")
        await asyncio.sleep(dice.uniform(0.005, 0.03))
        if time.monotonic() > until and number > 2 * WARM:
            break
    told = {number: field.moments.of[number] for number in begun if number > WARM}
    took = {
        name: [(moments[name] - begun[number]) / 1e6 for number, moments in told.items() if name in moments]
        for name in HOPS
    }
    started = took["started"]
    hops = {name: percentile(each, 50) for name, each in took.items() if each}
    return Alone(percentile(started, 50), percentile(started, 99), hops)


async def _drained(field: Field, jobs: int) -> Drained:
    for number in range(1, WARM + 1):
        await field.client.submit(number)
    await _all_ended(field, WARM)
    await field.hold()
    await field.client.submit(1_000, jobs)
    before, begun_ns = field.cpu(), time.time_ns()
    await field.release()
    await _all_ended(field, WARM + jobs)
    took_s = (max(moments["ended"] for moments in field.moments.of.values()) - begun_ns) / 1e9
    after = field.cpu()
    return Drained(jobs / took_s, {name: (after[name] - before[name]) * 1000 / jobs for name in after})


async def _all_ended(field: Field, jobs: int) -> None:
    await field.moments.until_ended(1 + jobs)


def _each(found: Rounds[T], of: Callable[[T], float]) -> dict[Contender, list[float]]:
    return {who: [of(one) for one in each] for who, each in found.items()}


def _beside(told: Mapping[Contender, Sequence[float]], who: Contender) -> str:
    if who == PROCRASTINATE or not all(told.get(PROCRASTINATE, ())):  # too few jobs for the kernel's clock
        return ""
    return str(ratios(told[who], told[PROCRASTINATE])) if PROCRASTINATE in told else ""


def _drawn(told: Mapping[Contender, Sequence[float]]) -> dict[str, dict[str, Spread]]:
    return {who.name: {"median, least, most": Spread.of(each)} for who, each in told.items()}


def _hops(found: Sequence[Alone]) -> str:
    head = ("Headgate's own, by the log", *HOPS)
    told = [str(Spread.of(one.hops[name] for one in found)) for name in HOPS]
    return table(head, [["submit → …, p50, ms", *told]])


def _by_process(found: Sequence[Drained]) -> str:
    names = sorted(found[0].cpu_ms, key=lambda name: -found[0].cpu_ms[name])
    told = [str(Spread.of(one.cpu_ms[name] for one in found)) for name in names]
    return table(("Headgate's own CPU a job", *names), [["ms", *told]])


def _pinned() -> str:
    told = "; ".join(f"{name}: {' '.join(pinned)}" for name, pinned in versions().items() if name != "floors")
    return f"Versions: {told}."


def _parts(spread: Spread) -> tuple[float, float, float]:
    return spread.low, spread.mid, spread.high

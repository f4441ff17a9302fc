"""What the view costs: folding, planning, leases. Beside each the floor: as many calls of a script that does nothing.

Every figure is printed as a row of a Markdown table. Nothing is asserted about speed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from redis.asyncio import Redis

from libs.capacity.answers import Granted, Heartbeat, LeaseRequest
from libs.capacity.engine import Engine
from libs.capacity.keys import view_key
from libs.capacity.lua_files import load_scripts
from libs.capacity.rows import ARRIVAL_STEP, Change, Row, Seed, StandingOrders
from libs.capacity.scripts import ScriptRunner
from libs.capacity.store import PIPELINE, RedisView
from libs.capacity.store_rows import change_args
from tests.fixtures.stores import EPOCH, SHARD

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

LEASE_MS: Final = 3_600_000
LIMITS: Final = {"user/partner": 3, "project/partner": 3, "workflows": 5, "llm:ollama": 4, "group": 1}
JOBS: Final = 2_500  # whose whole lives are folded
STATUSES: Final = ("starting", "starting", "scaffold", "code", "deps", "checks")
WORKER: Final = Heartbeat(
    worker="w1", pool="default", slots=200_000, draining=False, holders=(), leases=(), ttl_ms=LEASE_MS
)
JOB: Final = '{"submission": "' + "x" * 700 + '"}'  # about what a folded job weighs


@pytest.fixture
def bare(client: Redis) -> ScriptRunner:
    """Scripts that are measured against, on the same connection pool."""
    return ScriptRunner(client, view=view_key(SHARD), scripts=load_scripts(Path(__file__).parent / "lua"))


async def test_fold(view: RedisView, bare: ScriptRunner) -> None:
    changes = list(_lives(JOBS))
    calls = [(EPOCH, "", LEASE_MS, *change_args(change)) for change in changes]
    await _open(view, [])

    folded_s = await _seconds(lambda: view.fold(changes, lease_ms=LEASE_MS))
    bare_s = await _seconds(lambda: _in_pipelines(bare, calls))

    _print("fold", ("", "changes/s", "µs each"))
    for name, seconds in (
        ("fold, whole lives of jobs", folded_s),
        ("floor: EVALSHA of one line, same arguments", bare_s),
    ):
        _print_row(name, f"{len(changes) / seconds:,.0f}", f"{seconds / len(changes) * 1e6:.1f}")


async def test_acquire_and_give_up(view: RedisView, bare: ScriptRunner) -> None:
    await _open(view, [])
    request = LeaseRequest(lease="l1", groups=("llm:ollama",), owner=None, ttl_ms=30_000, wait_ms=0)

    async def turn() -> None:
        assert isinstance(await view.acquire(request), Granted)
        await view.give_up("l1")

    async def bare_turn() -> None:
        await bare.run("nothing_v1")
        await bare.run("nothing_v1")

    turn_us, bare_us = await _median_us(turn), await _median_us(bare_turn)
    _print("acquire and give up", ("", "µs"))
    _print_row("one slot, two calls", f"{turn_us:,.0f}")
    _print_row("floor: two EVALSHA of one line", f"{bare_us:,.0f}")


async def test_plan_with_nine_of_ten_blocked(bare: ScriptRunner) -> None:
    rows: list[tuple[str, ...]] = []
    for queued in (100, 1_000, 10_000, 100_000):
        seeds = list(_nine_of_ten_blocked(queued))
        engine = Engine(StandingOrders(defaults=LIMITS), seeds, applied=0, clock=lambda: 1_700_000_000_000)
        engine.staff.beat(WORKER)

        assert len(engine.plan(10).picks) == 10
        plan_us = await _median_us(_at_once(partial(engine.plan, 10)))
        bare_us = await _median_us(lambda: bare.run("nothing_v1", EPOCH, "", 10))
        rows.append((f"{queued:,}", *(f"{each:,.0f}" for each in (plan_us, bare_us))))

    _print("plan of 10, nine of ten blocked", ("queued", "plan µs", "one EVALSHA of one line µs"))
    for row in rows:
        _print_row(*row)


# ── worlds ────────────────────────────────────────────────────────────────────


async def _open(view: RedisView, seeds: list[Seed], *, generation: str = "g1") -> None:
    await view.begin(EPOCH, generation=generation, applied=0, standing=StandingOrders(defaults=LIMITS))
    await view.cleaner.wait()
    await view.seed(seeds, generation=generation, lease_ms=LEASE_MS)
    await view.open(generation=generation, quarantine_ms=0)
    await view.beat(WORKER)


def _row(number: int, *, user: str, seq: int, **details: object) -> Row:
    job, project = f"01JB0000000000000000{number:06}", f"project-{user}"
    row = Row(
        id=job,
        status="queued",
        seq=seq,
        first_seq=seq,
        attempt=0,
        user=user,
        project=project,
        workflow=None,
        pool="default",
        tier="partner",
        class_number=50,
        boost=2,
        arrival=number + 1,
        place=(number + 1) * ARRIVAL_STEP,
        entered_ms=1_700_000_000_000,
        groups=(f"user:{user}", f"project:{project}"),
        quota_day=20_000,
        timers={"age": 4_000_000_000_000 + number},
        job=JOB,
    )
    return replace(row, **details)


def _lives(jobs: int) -> Iterator[Change]:
    """Each job is queued, dispatched, started, goes through four stages and is ready; ten are under way at a time."""
    seq = 0
    for first in range(0, jobs, 10):
        queued = [
            _row(number, user=f"u{number % 1000}", seq=seq + 1 + number - first) for number in range(first, first + 10)
        ]
        for step in range(8):
            for row in queued:
                seq += 1
                yield Change(seq=seq, prev=seq - 1, row=_at(row, step, seq))


def _at(row: Row, step: int, seq: int) -> Row:
    if step == 0:
        return row
    over = {"place": None, "seq": seq, "attempt": 1}
    if step == 7:
        return replace(row, **over, status="ready", timers={"forget": 4_000_000_000_000})
    worker = "w1" if step > 1 else None
    running = {"holder": f"{row.id}:1", "started_ms": 1_700_000_000_000, "worker": worker}
    return replace(row, **over, **running, status=STATUSES[step - 1], timers={"deadline": 4_000_000_000_000})


def _nine_of_ten_blocked(queued: int) -> Iterator[Seed]:
    """In front a hundred users who run all they may, with what they have besides; behind them users who may run."""
    busy = [f"busy{number}" for number in range(100)]
    for number, user in enumerate(user for user in busy for _ in range(3)):
        row = _row(900_000 + number, user=user, seq=1, place=None, status="code", attempt=1)
        yield Seed(replace(row, holder=f"{row.id}:1", started_ms=1_700_000_000_000), 0)
    blocked = queued * 9 // 10
    for number in range(queued):
        yield Seed(_row(number, user=busy[number % 100] if number < blocked else f"free{number}", seq=2), 0)


# ── measuring ─────────────────────────────────────────────────────────────────


async def _in_pipelines(bare: ScriptRunner, calls: list[tuple[str | int, ...]]) -> None:
    for start in range(0, len(calls), PIPELINE):
        await bare.run_all("nothing_v1", calls[start : start + PIPELINE])


def _at_once(act: Callable[[], object]) -> Callable[[], Awaitable[object]]:
    async def acted() -> object:
        return act()

    return acted


async def _seconds(act: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await act()
    return time.perf_counter() - begun


async def _median_us(act: Callable[[], Awaitable[object]], *, times: int = 500) -> float:
    return statistics.median([await _seconds(act) for _ in range(times)]) * 1e6


def _print(title: str, columns: tuple[str, ...]) -> None:
    print(f"\n\n### {title}\n")
    _print_row(*columns)
    print("|" + " --- |" * len(columns))


def _print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |")

"""How good the forecast is, beside the plain formula, and what it costs.

20,000 jobs of three tiers live through the real rules in virtual time, at five loads, with bursts, failures, questions
to their users and lost workers (tests/fixtures/forecast_world.py; the workload follows from the seed). Every third one
is told an estimate when it enters the queue. Printed as rows of Markdown tables; HEADGATE_BENCH_PLOT names a file for
the picture. Nothing is asserted: a small run that can fail is tests/unit/test_forecast_world.py.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from headgate_contracts.envelope import utc
from headgate_contracts.vocabulary import Priority, Tier
from libs.capacity.paces import Pace, Wait
from libs.capacity.projection import defaults_of
from libs.capacity.rows import ARRIVAL_STEP, Row, Seed, StandingOrders
from libs.cli.bars import Group, svg
from libs.forecast.durations import Durations
from libs.forecast.machine import PoolSlots
from libs.forecast.making import RUNS, Past, durations_of, make_forecast
from libs.forecast.run import Scene, run_forward
from libs.policy import Policy
from tests.fixtures.forecast_world import EstimatedJob, Workload, tell, worth_of

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

LOADS: Final = (0.6, 0.8, 0.9, 1.0, 1.2)
JOBS: Final = int(os.environ.get("HEADGATE_BENCH_JOBS", "4000"))  # at each load
SEED: Final = 2026
EVERY: Final = 3  # how many enter for one that is told an estimate: a forecast for each would take a quarter of an hour
WARM: Final = 100  # of those told: the first ones meet a forecast that has learnt nothing, they are shown apart
POLICY: Final = Policy()


def test_how_good_it_is() -> None:
    told = {
        load: tell(Workload(seed=SEED + number, jobs=JOBS, load=load), POLICY, runs=RUNS, every=EVERY)
        for number, load in enumerate(LOADS)
    }
    learnt = {load: each[WARM:] for load, each in told.items()}

    print("\n| load | jobs | mean wait, s | error, s | plain, s | of the plain one | inside | plain inside |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for load, each in learnt.items():
        print(f"| {load:.0%} | {_figures(each)}")
    everybody = [one for each in learnt.values() for one in each]
    print(f"| all | {_figures(everybody)}")
    for tier in Tier:
        print(f"| {tier.value} | {_figures([one for one in everybody if one.tier == tier])}")
    for priority in Priority:
        if asked := [one for one in everybody if one.asked == priority]:
            print(f"| asked for {priority.value} | {_figures(asked)}")
    for priority in Priority:
        if started := [one for one in everybody if one.priority == priority]:
            print(f"| started as {priority.value} | {_figures(started)}")
    print(f"| told to wait at all | {_figures([one for one in everybody if one.shown.estimate_seconds > 1])}")
    print(f"| the first {WARM} at each load | {_figures([one for each in told.values() for one in each[:WARM]])}")
    _draw(learnt)


def test_what_it_costs() -> None:
    print(f"\n| queued | one run, ms | a forecast of {RUNS} runs with guests, ms | published, KiB |")
    print("| --- | --- | --- | --- |")
    for queued, slots in ((25, 8), (100, 16), (1000, 64)):
        scene = _scene(queued, slots)
        holds = tuple(random.Random(1).lognormvariate(6.2, 0.5) for _ in range(200))
        waits = tuple(
            Wait(utc(4_000_000 - queued + number), "partner", "normal", "default", 60.0 + number, None)
            for number in range(queued)
        )
        past = Past(paces={tier.value: Pace(statistics.fmean(holds), 200, holds) for tier in Tier}, waits=waits)
        durations = Durations(durations_of(past.paces, POLICY))
        one_ms = _fastest_ms(lambda scene=scene, durations=durations: run_forward(scene, durations, POLICY))
        all_ms = _fastest_ms(lambda scene=scene, past=past: make_forecast(scene, past, POLICY))
        size = len(make_forecast(scene, past, POLICY).dump()) / 1024
        print(f"| {queued} | {one_ms:.1f} | {all_ms:.0f} | {size:.0f} |")


def _figures(told: list[EstimatedJob]) -> str:
    worth = worth_of(told)
    ratio = worth.error_s / worth.plain_error_s if worth.plain_error_s else 0
    return (
        f"{worth.jobs:,} | {worth.wait_s:,.0f} | {worth.error_s:,.0f} | {worth.plain_error_s:,.0f} | {ratio:.0%} "
        f"| {worth.hit_rate:.0%} | {worth.plain_hit_rate:.0%} |"
    )


def _draw(told: dict[float, list[EstimatedJob]]) -> None:
    file = os.environ.get("HEADGATE_BENCH_PLOT")
    if file is None:
        return
    worths = {load: worth_of(each) for load, each in told.items()}
    groups = [
        Group(f"load {load:.0%}", {"forecast": worth.error_s, "plain formula": worth.plain_error_s})
        for load, worth in worths.items()
    ]
    Path(file).write_text(svg("Mean absolute error of the estimate", groups, ["forecast", "plain formula"], unit="s"))


def _scene(queued: int, slots: int) -> Scene:
    """A full system: users of whom each has a few jobs, all slots taken."""
    rng = random.Random(queued)
    seeds = tuple(Seed(_row(number, rng, queued, runs=number <= slots), 0) for number in range(1, queued + slots + 1))
    standing = StandingOrders(arrivals=queued + slots, defaults=defaults_of(POLICY))
    return Scene(now_ms=4_000_000, seeds=seeds, standing=standing, pools=(PoolSlots("default", slots),))


def _row(number: int, rng: random.Random, queued: int, *, runs: bool) -> Row:
    tier = rng.choice(list(Tier))
    user = f"{tier.value}-{rng.randrange(max(4, queued // 3))}"
    name = f"job-{number}"
    return Row(
        id=name,
        status="code" if runs else "queued",
        seq=number,
        first_seq=number,
        attempt=int(runs),
        user=user,
        project=user,
        workflow=None,
        pool="default",
        tier=tier.value,
        class_number=rng.choice([Priority.NORMAL, Priority.NORMAL, Priority.LOW]).class_number,
        boost=POLICY.tier_limits(tier).boost,
        arrival=number,
        place=None if runs else number * ARRIVAL_STEP,
        entered_ms=3_500_000,
        groups=(f"user:{user}", f"project:{user}"),
        holder=f"{name}:1" if runs else None,
        started_ms=3_900_000 if runs else None,
        timers={} if runs else {"age": 7_100_000},
    )


def _fastest_ms(work: Callable[[], object], times: int = 5) -> float:
    """The machine is shared: the fastest of a few tells what the work is."""
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return 1000 * min(took)

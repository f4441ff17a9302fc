"""The leader's forecast: when it is made, what is published, and that nothing of it can hurt."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
import pytest_asyncio

from headgate_contracts.shown import Analytics
from headgate_contracts.vocabulary import Tier
from libs.capacity.answers import WorkerStatus
from libs.capacity.errors import ViewLost
from libs.capacity.memory import MemoryView
from libs.forecast import analytics, table
from libs.forecast.machine import PoolSlots
from libs.forecast.table import Forecast, wanted_of
from libs.runtime.eventually import eventually
from services.scheduler import forecasting
from services.scheduler.forecasting import ANYWAY_MS, EVERY_MS, Forecaster, pools_of
from services.scheduler.replica import Replica
from tests.fixtures.lives import job_after
from tests.fixtures.schedulers import EPOCH, MemorySchedulers


class Published(MemoryView):
    """The world's view, that remembers what was published, or cannot."""

    def __init__(self, world: MemorySchedulers) -> None:
        super().__init__(EPOCH, clock=world.clock.now_ms, store=world.store)
        self.names: list[str] = []
        self.fault: Exception | None = None

    async def publish(self, name: str, text: str) -> None:
        if self.fault is not None:
            raise self.fault
        self.names.append(name)
        await super().publish(name, text)


@pytest_asyncio.fixture
async def leader(world: MemorySchedulers) -> Replica:
    leader = await world.leading()
    await world.beat(slots=1)
    for number in range(3):
        await world.submit(f"job-{number}", user=f"user-{number}", project=f"project-{number}")
    await world.settle(leader)
    return leader


@pytest.fixture
def published(world: MemorySchedulers) -> Published:
    return Published(world)


@pytest.fixture
def forecaster(world: MemorySchedulers, leader: Replica, published: Published) -> Forecaster:
    meter = world._telemetry["a"].meter
    return Forecaster(leader.ledger, published, clock=world.clock, leader=leader.leader, meter=meter)


async def told(world: MemorySchedulers) -> Forecast:
    return Forecast.load(await world.view.published(table.NAME), world.policy)


async def test_each_queued_job_has_a_start_and_a_new_one_the_end_of_the_line(
    world: MemorySchedulers, leader: Replica, forecaster: Forecaster
) -> None:
    await world.finish("job-0")
    await world.submit("job-3", user="user-3", project="project-3")
    await world.settle(leader)

    await forecaster.make()

    forecast = await told(world)
    job = await world.job("job-3")
    outlook = await world.view.outlook("job-3")
    assert outlook is not None
    assert outlook.score is not None
    last = wanted_of(job, score=outlook.score + 1, position=3)
    waits = [
        estimate.estimate_seconds
        for estimate in (
            forecast.estimate_of("job-2", last, now_ms=world.clock.now_ms()),
            forecast.estimate_of("job-3", last, now_ms=world.clock.now_ms()),
            forecast.estimate_new(last, now_ms=world.clock.now_ms()),
        )
        if estimate is not None
    ]
    assert set(forecast.starts) == {"job-2", "job-3"}
    assert waits == sorted(waits)
    assert len(set(waits)) == 3
    assert waits[0] > 60


async def test_a_long_queue_is_run_forward_in_its_front_and_told_from_there(
    world: MemorySchedulers, leader: Replica, forecaster: Forecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasting, "FORESEEN", 4)
    await world.finish("job-0")
    for number in range(3, 12):
        await world.submit(f"job-{number}", user=f"user-{number}", project=f"project-{number}")
    await world.settle(leader)
    queued = sorted(leader.ledger.roster.queued.values(), key=lambda job: job.standing.place if job.standing else 0)

    await forecaster.make()

    forecast, waits = await told(world), list[int]()
    for job in queued:
        outlook = await world.view.outlook(job.id)
        assert outlook is not None
        assert outlook.score is not None
        assert outlook.position is not None
        wanted = wanted_of(job, score=outlook.score, position=outlook.position)
        estimate = forecast.estimate_of(job.id, wanted, now_ms=world.clock.now_ms())
        assert estimate is not None
        waits.append(estimate.estimate_seconds)
    assert set(forecast.starts) == {job.id for job in queued[:4]}
    behind = waits[4:]
    assert waits[3] < behind[0]
    assert {later - sooner for sooner, later in pairwise(behind)} == {round(forecast.average_s(tier="partner"))}


async def test_first_starts_are_counted_and_shown_as_analytics(
    world: MemorySchedulers, leader: Replica, forecaster: Forecaster
) -> None:
    await forecaster.make()
    await world.finish("job-0")
    await world.settle(leader)

    await forecaster.make()

    said = await world.view.published(analytics.NAME)
    assert said is not None
    shown = Analytics.model_validate_json(said)
    assert [(waits.tier, waits.count) for waits in shown.waits] == [(Tier.PARTNER, 2)]


async def test_it_is_made_when_the_queue_has_changed_and_else_now_and_then(
    world: MemorySchedulers, leader: Replica, forecaster: Forecaster, published: Published
) -> None:
    async def made(times: int) -> None:
        await eventually(lambda: len(published.names) == 2 * times and world.clock.sleeping == 1)

    loop = asyncio.create_task(forecaster.run(asyncio.Event()))
    await eventually(lambda: world.clock.sleeping == 1)
    await world.clock.advance_ms(EVERY_MS)
    await made(1)

    for _ in range(5):
        await world.clock.advance_ms(EVERY_MS)
    await made(1)

    await world.submit("job-9", user="user-9", project="project-9")
    await world.settle(leader)
    await world.clock.advance_ms(EVERY_MS)
    await made(2)

    await leader.leader.renew()
    for _ in range(ANYWAY_MS // EVERY_MS):
        await world.clock.advance_ms(EVERY_MS)
        await leader.leader.renew()
    await made(3)
    loop.cancel()


@pytest.mark.parametrize("fault", [ViewLost("gone"), RuntimeError("a fault of ours")])
async def test_a_forecast_that_fails_ends_nothing(
    world: MemorySchedulers, leader: Replica, forecaster: Forecaster, published: Published, fault: Exception
) -> None:
    published.fault = fault
    loop = asyncio.create_task(forecaster.run(asyncio.Event()))
    await eventually(lambda: world.clock.sleeping == 1)
    await world.clock.advance_ms(EVERY_MS)
    await eventually(lambda: world.clock.sleeping == 1)
    published.fault = None

    await leader.leader.renew()
    await world.clock.advance_ms(EVERY_MS)

    await eventually(lambda: published.names == [table.NAME, analytics.NAME])
    loop.cancel()


async def test_who_does_not_lead_makes_none(
    world: MemorySchedulers, leader: Replica, forecaster: Forecaster, published: Published
) -> None:
    await leader.leader.resign()
    loop = asyncio.create_task(forecaster.run(asyncio.Event()))
    await eventually(lambda: world.clock.sleeping == 1)

    await world.clock.advance_ms(3 * EVERY_MS)
    await eventually(lambda: world.clock.sleeping == 1)

    assert published.names == []
    loop.cancel()


async def test_hits_are_a_metric(world: MemorySchedulers, leader: Replica, published: Published) -> None:
    meter = world._telemetry["a"].meter
    forecaster = Forecaster(leader.ledger, published, clock=world.clock, leader=leader.leader, meter=meter)
    forecaster._worth.skip(leader.ledger.waits)
    waited = leader.ledger.waits[-1]
    estimate = {"estimate_seconds": 60, "lower_bound": 40, "upper_bound": 80, "confidence": "low"}
    shown = job_after("queued", estimate=estimate).standing
    assert shown is not None

    for wait_s in (50.0, 100.0):
        leader.ledger.waits.append(type(waited)(waited.at, "partner", "normal", "default", wait_s, shown.estimate))
    await forecaster.make()

    metrics = world.metrics(leader)
    assert 'headgate_forecast_hits_total{hit="true"' in metrics.replace('otel_scope_name="headgate",', "")
    for hit in ("true", "false"):
        line = next(line for line in metrics.splitlines() if "forecast_hits_total{" in line and f'hit="{hit}"' in line)
        assert 'tier="partner"' in line
        assert line.endswith(" 1.0")
    assert "headgate_forecast_error_seconds_sum" in metrics


def test_slots_are_those_of_workers_that_take_jobs() -> None:
    def worker(name: str, pool: str, *, draining: bool = False) -> WorkerStatus:
        return WorkerStatus(worker=name, pool=pool, slots=4, draining=draining, heard_ms=0, until_ms=1, holders=())

    workers = [worker("a", "default"), worker("b", "default", draining=True), worker("c", "gpu", draining=True)]

    assert pools_of(workers) == (PoolSlots("default", 4), PoolSlots("gpu", 0))

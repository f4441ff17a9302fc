"""What has ended costs nothing: nobody walks through it."""

from __future__ import annotations

from typing import NoReturn

from headgate_contracts import Job
from headgate_contracts.commands import PositionChanged
from services.scheduler.forecasting import Forecaster
from services.scheduler.positions import Announcer
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import World


class Unwalkable(dict[str, Job]):
    """All jobs of a ledger: one may be looked up, and who would look through them fails."""

    def __iter__(self) -> NoReturn:
        raise AssertionError("somebody walks all jobs")

    def values(self) -> NoReturn:
        raise AssertionError("somebody walks all jobs")

    def items(self) -> NoReturn:
        raise AssertionError("somebody walks all jobs")


async def test_nobody_walks_all_jobs(world: World, leader: Replica) -> None:
    """Positions, forecast, metrics, timers, pauses and starts go by what has not ended."""
    for name in ("job-1", "job-2", "job-3", "job-4"):
        await world.submit(name, user=f"u-{name}", project=f"p-{name}")
    await world.beat(slots=1)
    await world.settle(leader)
    told = list[str]()

    async def tell(user: str, moved: PositionChanged) -> None:
        told.append(moved.job_id)

    announcer = Announcer(leader.ledger, world.view, world.policy, world.clock, leader.leader, tell)
    meter = world._telemetry["a"].meter
    forecaster = Forecaster(leader.ledger, world.view, clock=world.clock, leader=leader.leader, meter=meter)
    leader.ledger.jobs = Unwalkable(leader.ledger.jobs)

    await world.pause("user:u-job-3")
    await world.finish("job-1")
    await world.pass_ms(10_000, leader)
    await announcer.round()
    await forecaster.make()
    await leader.gauges.look()

    assert set(told) == {"job-3", "job-4"}
    assert 'headgate_queue_length{pool="default"} 2.0' in world.metrics(leader)

"""What has ended costs nothing: nobody walks through it, it is forgotten, and who still needs it asks the log."""

from __future__ import annotations

from typing import NoReturn

from headgate_contracts import Job
from headgate_contracts.commands import PositionChanged, Watching
from libs.eventlog import LogUnavailable, Record
from libs.eventlog.memory import MemoryLog
from services.scheduler.forecasting import Forecaster
from services.scheduler.opinions import Opinion, opinions_of
from services.scheduler.positions import Announcer
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import MemorySchedulers


class Unwalkable(dict[str, Job]):
    """All jobs of a ledger: one may be looked up, and who would look through them fails."""

    def __iter__(self) -> NoReturn:
        raise AssertionError("somebody walks all jobs")

    def values(self) -> NoReturn:
        raise AssertionError("somebody walks all jobs")

    def items(self) -> NoReturn:
        raise AssertionError("somebody walks all jobs")


async def test_nobody_walks_all_jobs(world: MemorySchedulers, leader: Replica) -> None:
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
    announcer.watch(Watching(jobs=("job-1", "job-3"), users=("u-job-4",)))
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


async def forgotten(world: MemorySchedulers, leader: Replica, name: str) -> None:
    """The job has ended, and so long ago that the fold does not know it any more."""
    await world.pass_ms(round(world.policy.retention.ended_s * 1000) + 1, leader)
    await world.submit(f"after-{name}", user="somebody", project="else")
    await world.settle(leader)
    assert name not in leader.ledger.jobs


async def test_a_worker_that_was_long_away_hears_that_its_attempt_is_over(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)
    await world.finish("job-1")
    await world.settle(leader)
    await forgotten(world, leader, "job-1")

    reply = await world.beat(holders=("job-1:1", "never-was:1"))

    assert (reply.not_yours, reply.kept) == (("job-1:1",), ("never-was:1",))


async def test_what_cannot_be_asked_of_the_log_goes_on(world: MemorySchedulers, leader: Replica) -> None:
    class Away(MemoryLog):
        async def last(self, subject_filter: str) -> Record | None:
            raise LogUnavailable(reason=subject_filter)

    opinions = await opinions_of(leader.ledger, ("job-1:1",), log=Away(world.server, clock=world.clock))

    assert opinions == {"job-1:1": Opinion.RUNS}


async def test_a_forced_attempt_that_is_long_over_is_not_remembered(world: MemorySchedulers, leader: Replica) -> None:
    """What the worker says it has stopped is known until its end is folded, also where that was before it spoke."""
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)
    await world.finish("job-1")
    await world.settle(leader)
    await forgotten(world, leader, "job-1")

    reply = await world.beat(stopped=("job-1:1",))

    assert reply.not_yours == ("job-1:1",)
    assert not leader.handlers.stopped

"""The pool's end of the log: each dispatch to one open request, and none stranded."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count
from random import Random

import pytest
import pytest_asyncio
from nats.aio.client import Client

from headgate_contracts import Event
from headgate_contracts.events import JobDispatched
from libs.eventlog import Appended, JetStreamLog, LogMissing, LogUnavailable, migrate, open_log, pools
from libs.eventlog.dispatches import JetStreamDispatch, PoolDispatches
from libs.local.servers import NatsServer
from libs.runtime.clock import SystemClock
from libs.runtime.eventually import eventually
from tests.fixtures.lives import life_of, submission
from tests.fixtures.logs import connected, new_epoch, settings


class Scene:
    """A log, and the pool's workers on connections of their own."""

    def __init__(self, nc: Client, log: JetStreamLog) -> None:
        self.nc = nc
        self.log = log
        self._numbers = count(1)

    async def dispatch(self, number: int = 1, *, pool: str = "default") -> list[str]:
        """Jobs that wait for a worker."""
        jobs = [f"job-{next(self._numbers)}" for _ in range(number)]
        for job in jobs:
            last = None
            for event in life_of(job, "queued dispatched", submission=submission(pool=pool)):
                answer = await self.log.append(event, after=last)
                assert isinstance(answer, Appended)
                last = answer.records[0].seq
        return jobs

    async def open_requests(self, number: int) -> None:
        """Until the server knows of so many that wait."""

        async def known() -> bool:
            seen = await self.nc.jetstream().consumer_info("JOBS", "worker-default")
            return seen.num_waiting == number

        await eventually(known)

    def pool(self, name: str = "default", *, nc: Client | None = None) -> PoolDispatches:
        return PoolDispatches(nc or self.nc, pool=name, clock=SystemClock())


@pytest_asyncio.fixture
async def scene(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """Where what is stranded does not come back while its test lasts."""
    monkeypatch.setattr(pools, "ACK_WITHIN_S", 600)
    async with connected(nats_url) as nc:
        await migrate(nc, settings(), new_epoch=new_epoch())
        yield Scene(nc, await open_log(nc, settings()))


def job_of(dispatch: JetStreamDispatch) -> str:
    assert isinstance(dispatch.record.event, Event)
    assert isinstance(dispatch.record.event.data, JobDispatched)
    return dispatch.record.event.data.job_id


async def test_each_dispatch_of_the_pool_goes_to_one_who_waits(scene: Scene) -> None:
    here, there = scene.pool(), scene.pool()
    await here.start()
    await there.start()
    waiting = [asyncio.create_task(each.next()) for each in (here, there, here, there)]

    jobs = await scene.dispatch(4)
    await scene.dispatch(1, pool="another")

    taken = await asyncio.gather(*waiting)
    assert sorted(map(job_of, taken)) == jobs
    for dispatch in taken:
        await dispatch.ack()
    await here.stop()
    await there.stop()


async def test_who_stops_waiting_strands_nothing(scene: Scene, nats_url: str) -> None:
    leaver, stayer = scene.pool(), scene.pool()
    await leaver.start()
    left = asyncio.create_task(leaver.next())
    await scene.open_requests(1)

    left.cancel()
    await scene.dispatch(1)  # the server answers the open request, as it knows no better
    dispatch = await asyncio.wait_for(stayer.next(), 30)

    assert job_of(dispatch) == "job-1"


async def test_none_of_many_is_stranded_while_slots_come_and_go(scene: Scene, nats_url: str) -> None:
    random, pools = Random(7), [scene.pool() for _ in range(3)]
    await pools[0].start()
    taken: set[str] = set()

    async def impatient(pool: PoolDispatches) -> None:
        while len(taken) < 60:
            with suppress(TimeoutError):
                dispatch = await asyncio.wait_for(pool.next(), random.uniform(0.0005, 0.02))
                taken.add(job_of(dispatch))
                with suppress(LogUnavailable):
                    await dispatch.ack()

    workers = [asyncio.create_task(impatient(pool)) for pool in pools for _ in range(3)]
    jobs = await scene.dispatch(60)

    await asyncio.wait_for(asyncio.gather(*workers), 60)
    assert taken == set(jobs)


async def test_a_pool_that_stops_hands_back_what_was_on_its_way(scene: Scene, nats_url: str) -> None:
    async with connected(nats_url) as nc:
        stopping, staying = scene.pool(nc=nc), scene.pool()
        await stopping.start()
        waiting = [asyncio.create_task(stopping.next()) for _ in range(8)]
        await scene.open_requests(8)

        dispatching = asyncio.create_task(scene.dispatch(8))
        for each in waiting:
            each.cancel()
        await stopping.stop()
        await dispatching

        taken = [job_of(await asyncio.wait_for(staying.next(), 30)) for _ in range(8)]
        assert sorted(taken) == [f"job-{number}" for number in range(1, 9)]


async def test_what_was_not_acked_comes_again_and_what_was_does_not(scene: Scene) -> None:
    pool = scene.pool()
    await pool.start()
    await scene.dispatch(2)
    first, second = await pool.next(), await pool.next()

    await first.nak()
    await second.ack(sure=False)
    again = await asyncio.wait_for(pool.next(), 30)

    assert job_of(again) == job_of(first)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pool.next(), 0.3)


async def test_dispatches_come_again_after_the_server_was_killed(nats_server: NatsServer) -> None:
    async with connected(nats_server.url) as nc:
        await migrate(nc, settings(), new_epoch=new_epoch())
        scene = Scene(nc, await open_log(nc, settings()))
        pool = scene.pool()
        await pool.start()
        waiting = asyncio.create_task(pool.next())
        await scene.open_requests(1)

        await nats_server.kill()
        await nats_server.start()
        await eventually(lambda: nc.is_connected)
        await scene.dispatch(1)

        assert job_of(await asyncio.wait_for(waiting, 30)) == "job-1"


async def test_a_consumer_that_was_deleted_is_awaited_until_an_operator_makes_it_again(scene: Scene) -> None:
    pool = scene.pool()
    await pool.start()
    waiting = asyncio.create_task(pool.next())
    await scene.open_requests(1)

    await scene.nc.jetstream().delete_consumer("JOBS", pool.consumer)
    with pytest.raises(LogMissing, match=r"There is no consumer JOBS\.worker-default\. Run `headgate migrate`"):
        await pool.start()

    assert (await migrate(scene.nc, settings(), new_epoch=new_epoch())).made == (pool.consumer,)
    await scene.dispatch(1)
    assert job_of(await asyncio.wait_for(waiting, 30)) == "job-1"

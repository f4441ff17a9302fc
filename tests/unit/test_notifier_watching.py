"""Whose streams are open, as schedulers are told it: at once where somebody new is followed, and all now and then."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from headgate_contracts.commands import Watching
from libs.policy import Policy
from libs.runtime.clock import ManualClock
from libs.runtime.lifecycle import Loop
from services.notifier.fanout import Fanout, OfJob, OfToken, OfUser
from services.notifier.watching import WatchTeller, words_of

TICK_MS = 250


class WatchedStreams:
    """A fan-out, and what schedulers were told of it."""

    def __init__(self) -> None:
        self.clock, self.fanout, self.said = ManualClock(), Fanout(), list[Watching]()

    async def tell(self, said: Watching) -> None:
        self.said.append(said)

    async def heard(self, *, ticks: int = 1) -> list[Watching]:
        for _ in range(ticks):
            await self.clock.advance_ms(TICK_MS)
        said, self.said = self.said, []
        return said


@pytest_asyncio.fixture
async def world() -> AsyncIterator[WatchedStreams]:
    world = WatchedStreams()
    telling = Loop("watching", WatchTeller(world.fanout, world.tell, Policy(), world.clock).run)
    await telling.start()
    await world.heard()
    yield world
    await telling.stop()


async def test_who_is_followed_for_the_first_time_is_named_within_a_quarter_of_a_second(world: WatchedStreams) -> None:
    with world.fanout.attached([OfJob("job-1"), OfToken("t")]), world.fanout.attached([OfUser("ann")]):
        first = await world.heard()
        with world.fanout.attached([OfJob("job-1")]), world.fanout.attached([OfJob("job-2")]):
            second = await world.heard()

    assert first == [Watching(jobs=("job-1",), users=("ann",))]
    assert second == [Watching(jobs=("job-2",))]


async def test_all_are_named_again_every_five_seconds_whoever_comes_meanwhile(world: WatchedStreams) -> None:
    with world.fanout.attached([OfJob("job-1")]):
        await world.heard()
        with world.fanout.attached([OfJob("job-2")]):
            said = await world.heard(ticks=20)

    assert [*said[0].jobs] == ["job-2"]
    assert [sorted(each.jobs) for each in said[1:]] == [["job-1", "job-2"]]


async def test_whose_stream_has_ended_is_named_no_more(world: WatchedStreams) -> None:
    with world.fanout.attached([OfJob("gone")]):
        pass

    assert await world.heard(ticks=24) == []


@pytest.mark.parametrize(("streams", "messages"), [(0, []), (1000, [1000]), (2001, [1000, 1000, 1])])
def test_many_are_named_in_several_messages(streams: int, messages: list[int]) -> None:
    named = [OfJob(f"job-{number}") for number in range(streams)]

    words = list(words_of([OfToken("t"), *named]))

    assert [len(each.jobs) for each in words] == messages
    assert [job for each in words for job in each.jobs] == [each.job_id for each in named]

"""Schedulers are told whose streams are open here, so that they tell nobody's position but theirs.

    a stream opens whose job, or user, nobody followed here ──► said within a quarter of a second
    every few seconds                                       ──► all are said again

A word that is lost is made up for by the next one. Where a job stands as its stream opens, the scheduler is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from headgate_contracts.commands import MOST_WATCHED, Watching
from libs.policy import Policy
from libs.runtime.clock import Clock
from services.notifier.fanout import Fanout, Interest, OfJob, OfUser

TellWatching = Callable[[Watching], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class WatchTeller:
    """Says it for as long as the process lives."""

    fanout: Fanout
    tell: TellWatching
    policy: Policy
    clock: Clock

    async def run(self, stopping: asyncio.Event) -> None:
        rules, said_ms = self.policy.stream, self.clock.monotonic_ms()
        while not stopping.is_set():
            await self.clock.sleep_ms(1000 // rules.positions_per_second)
            interests: Iterable[Interest] = self.fanout.take_new()
            if self.clock.monotonic_ms() - said_ms >= rules.position_every_s * 1000:
                interests, said_ms = self.fanout.interests, self.clock.monotonic_ms()
            for said in words_of(interests):
                await self.tell(said)


def words_of(interests: Iterable[Interest]) -> Iterator[Watching]:
    """In as few messages as they fit into; none where nobody is watched."""
    named = iter([each for each in interests if isinstance(each, OfJob | OfUser)])
    while some := tuple(islice(named, MOST_WATCHED)):
        jobs = tuple(each.job_id for each in some if isinstance(each, OfJob))
        yield Watching(jobs=jobs, users=tuple(each.user_id for each in some if isinstance(each, OfUser)))

"""Where waiting jobs stand: asked for by the notifier for its snapshots, and told by the leader when it changes.

    stirred?   something was folded or heard since the last round; all are told again every few seconds
    watched?   by a stream that some notifier has open: of others no reader is there
    changed?   each watched job's outlook is compared with the one that was told last
    told       to `headgate.live.v1.<shard>.position.<user>.<job>`, at most 4 times a second

Owns what was told last. It is no part of any decision, so whatever goes wrong with it costs positions and nothing else.
A lost message costs nothing: soon all are told again. A job that the view does not hold in its queue yet is told in a
later round: where it stood when it entered says nothing of one that has come back. An estimate counts down by itself,
so it is told with whatever else has changed and is no change of its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from headgate_contracts import Job
from headgate_contracts.commands import PositionChanged, Watching
from headgate_contracts.envelope import utc
from headgate_contracts.shown import WaitingOn
from libs.capacity.answers import Outlook
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ledger import Ledger
from libs.capacity.ports import ViewReadings
from libs.forecast.place import shown_standing
from libs.forecast.table import NAME, Forecast
from libs.policy import Policy
from libs.policy.daily_cap import EPOCH_DAY
from libs.runtime.clock import Clock
from services.scheduler.leader import Leader
from services.scheduler.watchers import Watchers

AT_ONCE: Final = 100  # outlooks in one round trip: a few milliseconds of the view's time, and of ours to tell them
REST: Final = 3  # times as long as a round took: where thousands wait, the view has other things to do

logger = logging.getLogger(__name__)

TellPosition = Callable[[str, PositionChanged], Awaitable[None]]
ShownPosition = tuple[int | None, int, tuple[WaitingOn, ...]]  # position, passed by, what it waits for


async def position_of(job: Job, *, view: ViewReadings, policy: Policy, clock: Clock) -> PositionChanged:
    """Where this job stands now, and how much of its user's day is used up."""
    now_ms = clock.now_ms()
    today = (utc(now_ms).date() - EPOCH_DAY).days
    outlook, used, text = await asyncio.gather(
        view.outlook(job.id), view.day_used(job.user_id, today), view.published(NAME)
    )
    moved = _position(job, outlook, forecast=Forecast.load(text, policy), now_ms=now_ms)
    return moved.model_copy(update={"used_today": used})


@dataclass(frozen=True, slots=True)
class SentPosition:
    """What was told of one job, and by what."""

    seq: int
    outlook: Outlook
    shown: ShownPosition


@dataclass(slots=True)
class Announcer:
    """Tells positions while its replica leads."""

    ledger: Ledger
    view: ViewReadings
    policy: Policy
    clock: Clock
    leader: Leader
    tell: TellPosition
    watchers: Watchers = field(init=False)
    _told: dict[str, SentPosition] = field(default_factory=dict[str, SentPosition])
    _applied: int = -1  # the ledger's, at the last round
    _stirred: bool = False
    _published: str | None = None
    _forecast: Forecast | None = None

    def __post_init__(self) -> None:
        self.watchers = Watchers(self._all_every_ms)

    def watch(self, said: Watching) -> None:
        """Streams are open. Who was not watched before is told in the next round."""
        if self.watchers.note(said, now_ms=self.clock.monotonic_ms()):
            self.stir()

    def stir(self) -> None:
        """A worker was heard, or a slot changed hands: places may mean something else now."""
        self._stirred = True

    async def run(self, stopping: asyncio.Event) -> None:
        all_told_ms = self.clock.monotonic_ms()
        rest_ms = every_ms = 1000 // self.policy.stream.positions_per_second
        while not stopping.is_set():
            await self.clock.sleep_ms(rest_ms)
            now_ms, rest_ms = self.clock.monotonic_ms(), every_ms
            if not self.leader.leads or now_ms - all_told_ms >= self._all_every_ms:
                self.watchers.forget(now_ms=now_ms)
                self._told.clear()
                self._applied, all_told_ms = -1, now_ms
            if self.leader.leads and (self._stirred or self._applied != self.ledger.applied):
                await self._try_round()
                rest_ms = max(rest_ms, REST * (self.clock.monotonic_ms() - now_ms))

    async def _try_round(self) -> None:
        try:
            await self.round()
        except Exception:
            logger.exception("positions are not told")  # the queue needs none told: it must not end the leader

    async def round(self) -> None:
        """Publish the standing of each watched job that has changed since it was published last."""
        self._applied, self._stirred = self.ledger.applied, False
        told, self._told = self._told, {}
        watched = list(_in_parts(self.watchers.among(self.ledger.roster)))
        if not watched:
            return
        try:
            forecast = await self._newest_forecast()
            for jobs in watched:
                outlooks = await self.view.outlooks([job.id for job in jobs])
                for job, outlook in zip(jobs, outlooks, strict=True):
                    if outlook is None or outlook.position is None:
                        self._stirred = True  # the view follows the ledger, and knows soon
                    else:
                        self._told[job.id] = await self._tell_change(job, outlook, told.get(job.id), forecast)
        except (ViewLost, ViewUnavailable):
            self._stirred = True  # it will be back, and much may be different then

    async def _tell_change(
        self, job: Job, outlook: Outlook, told: SentPosition | None, forecast: Forecast
    ) -> SentPosition:
        if told and (told.seq, told.outlook) == (job.seq, outlook):
            return told
        moved = _position(job, outlook, forecast=forecast, now_ms=self.clock.now_ms())
        shown = _shown(moved)
        if told is None or told.shown != shown:
            await self.tell(job.user_id, moved)
        return SentPosition(job.seq, outlook, shown)

    @property
    def _all_every_ms(self) -> int:
        return round(self.policy.stream.position_every_s * 1000)

    async def _newest_forecast(self) -> Forecast:
        text = await self.view.published(NAME)
        if self._forecast is None or text != self._published:
            self._published, self._forecast = text, Forecast.load(text, self.policy)
        return self._forecast


def _position(job: Job, outlook: Outlook | None, *, forecast: Forecast, now_ms: int) -> PositionChanged:
    standing = shown_standing(job, outlook, forecast=forecast, now_ms=now_ms)
    return PositionChanged(job_id=job.id, queue=standing.queue, waiting_on=standing.waiting_on)


def _shown(moved: PositionChanged) -> ShownPosition:
    queue = moved.queue
    return (queue and queue.position, queue.passed_by if queue else 0, moved.waiting_on)


def _in_parts(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    rest = iter(jobs)
    while part := list(islice(rest, AT_ONCE)):
        yield part

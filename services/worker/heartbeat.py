"""The sign of life of a worker, and what comes back: how long its attempts are its own.

    Heartbeat   every few seconds, and at once when something has changed, a moment after a claim: all attempts, all
                slots inside them
    Watchdog    an attempt whose lease has ended by our own clock is lost, whatever anybody says

Both rest on one rule: **a lease runs only while somebody could give the job away.** Where there is no connection, or
no scheduler at its other end, no event can say that a job was given back, so the leases are longer by that time; the
schedulers do the same on their side. Where a scheduler may be there and is silent, the leases run. A worker that alone
is cut off cannot know it, so leases become longer by no more than policy says (`leases.cut_off_s`).

Time in which this process was stopped is never counted as such an outage: who slept through the end of a lease has lost
it. Owns the leases. What is said of a single attempt is only a hint to look into the log.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from headgate_contracts import Holder
from headgate_contracts.commands import Beat, BeatReply
from libs.policy.sections import Leases
from libs.runtime.clock import Clock, sleep_or
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.logs import about_job
from services.worker.attempts import Attempts
from services.worker.domain import Interruption
from services.worker.ports import Scheduler, Unheard

logger = logging.getLogger(__name__)

UNHEARD_AGAIN_MS: Final = 500
SOONEST: Final = 10  # of the usual pause, a tenth: each claim wants one, and a stage may in every turn of a loop
TICK_MS: Final = 100
LONGEST_TICK_MS: Final = 1000  # a longer one was no outage of NATS: this process itself was stopped


class HeartbeatLoop:
    """Speaks for all attempts of a worker."""

    def __init__(
        self,
        attempts: Attempts,
        scheduler: Scheduler,
        *,
        worker: str,
        pool: str,
        slots: int,
        every_ms: int,
        clock: Clock,
        soon: asyncio.Event,
    ) -> None:
        self._attempts = attempts
        self._scheduler = scheduler
        self._worker = worker
        self._pool = pool
        self._slots = slots
        self._every_ms = every_ms
        self._soonest_ms = every_ms // SOONEST
        self._clock = clock
        self._soon = soon
        self.nobody_there = False

    async def beat(self) -> bool:
        """Say once that we live; whether anybody heard it."""
        sent_ms = self._clock.monotonic_ms()
        answer = await self._scheduler.beat(self._message())
        self._note(answer)
        if isinstance(answer, Unheard):
            return False
        self._obey(answer, sent_ms=sent_ms)
        for lease in answer.lost_leases:
            for attempt in self._attempts:
                await attempt.slots.lost(lease)
        return True

    async def run(self, stopping: asyncio.Event) -> None:
        """Until cancelled; the last heartbeat is sent by its owner, who stops it."""
        while True:
            self._soon.clear()
            heard = await self.beat()
            await self._clock.sleep_ms(self._soonest_ms)
            in_peace = heard and not self._attempts.stopped  # the leader has to hear of those
            every_ms = self._every_ms if in_peace else min(self._every_ms, UNHEARD_AGAIN_MS)
            await sleep_or(self._soon, max(0, every_ms - self._soonest_ms), clock=self._clock)

    def _message(self) -> Beat:
        return Beat(
            worker=self._worker,
            pool=self._pool,
            slots=self._slots,
            draining=self._attempts.draining,
            holders=tuple(attempt.holder for attempt in self._attempts),
            leases=tuple(lease for attempt in self._attempts for lease in attempt.slots.named),
            stopped=tuple(self._attempts.stopped),
        )

    def _note(self, answer: BeatReply | Unheard) -> None:
        """An outage is said once, and its end."""
        nobody = answer is Unheard.NOBODY
        if nobody and not self.nobody_there:
            logger.warning("no scheduler can be reached: attempts go on, and their leases do not run meanwhile")
        if not nobody and self.nobody_there:
            logger.warning("a scheduler can be reached again")
        self.nobody_there = nobody

    def _obey(self, reply: BeatReply, *, sent_ms: int) -> None:
        lease_ms = round(reply.lease_s * 1000)
        for holder in (*reply.kept, *reply.cancel):
            if attempt := self._attempts.find(holder):
                attempt.hold_until(attempt.lease.extended(sent_ms=sent_ms, lease_ms=lease_ms))
        for holder in reply.not_yours:
            self._attempts.stopped.pop(holder, None)
        for holder in (*reply.cancel, *reply.not_yours):
            if attempt := self._attempts.find(holder):
                attempt.look_soon()


class Watchdog:
    """Ends what is not ours any more. While there is no attempt it sleeps."""

    def __init__(self, attempts: Attempts, heartbeat: HeartbeatLoop, *, cut_off_ms: int, clock: Clock) -> None:
        self._attempts = attempts
        self._heartbeat = heartbeat
        self._cut_off_ms = cut_off_ms
        self._clock = clock
        self._looked_ms = clock.monotonic_ms()
        self._was_away = False

    def look(self) -> None:
        now_ms, away = self._clock.monotonic_ms(), self._heartbeat.nobody_there
        passed_ms, self._looked_ms = now_ms - self._looked_ms, now_ms
        outage_ms = min(passed_ms, LONGEST_TICK_MS) if away and self._was_away else 0
        self._was_away = away
        for attempt in self._attempts:
            if outage_ms:
                attempt.hold_until(attempt.lease.longer(outage_ms, most_ms=self._cut_off_ms))
            if attempt.lease.ended(now_ms):
                late_ms = now_ms - attempt.lease.ends_ms
                with about_job(Holder.parse(attempt.holder).job):
                    logger.warning("the lease of %s ended %.1f s ago, unheard", attempt.holder, late_ms / 1000)
                attempt.interrupt(Interruption.LOST)

    async def run(self, stopping: asyncio.Event) -> None:
        while True:
            if self._attempts.is_idle:
                await self._attempts.until_some()
                self._begin()
            await self._clock.sleep_ms(TICK_MS)
            self.look()

    def _begin(self) -> None:
        """The time before, in which no attempt held a lease, is no outage of the attempts that hold one now."""
        self._looked_ms, self._was_away = self._clock.monotonic_ms(), self._heartbeat.nobody_there


# ── started ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LifeTerms:
    """Who speaks for the attempts, and how often."""

    worker: str
    pool: str
    slots: int
    leases: Leases


async def show_life(
    service: Service, attempts: Attempts, scheduler: Scheduler, terms: LifeTerms, *, clock: Clock, soon: asyncio.Event
) -> None:
    """The heartbeat and who acts on its silence, until the last beat: then there is no attempt left."""
    heartbeat = HeartbeatLoop(
        attempts,
        scheduler,
        worker=terms.worker,
        pool=terms.pool,
        slots=terms.slots,
        every_ms=round(terms.leases.heartbeat_s * 1000),
        clock=clock,
        soon=soon,
    )
    watchdog = Watchdog(attempts, heartbeat, cut_off_ms=round(terms.leases.cut_off_s * 1000), clock=clock)
    service.closing("the last heartbeat", heartbeat.beat)
    await service.start(Loop("heartbeat", heartbeat.run))
    await service.start(Loop("watchdog", watchdog.run))

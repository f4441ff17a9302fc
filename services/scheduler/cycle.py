"""The leader's loop. Nothing is decided before all that is known was taken; only what is in the log has happened.

                 ┌───────── a record, a nudge, the lead, or one second ─────────┐
                 ▼                                                              │
    take ──► leads? ─no─► stand by ────────────────────────────────────────────►┤
                 │yes                                                           │
             caught up? ─no────────────────────────────────────────────────────►┤
                 │yes                                                           │
             update the view, beside all that follows; what asks it waits       │
                 │                                                              │
             each second: mark, prolong, sweep, due                             │
                 │                                                              │
             propose, claim ─nothing────────────────────────────────────────────►┤
                 │                                                              │
             commit ──► stored, refused or unknown: the log says what is so ───►┘

While the store is silent, the replica that led last goes on: it updates no view, claims nothing, and starts what needs
neither.

After a commit the cycle waits until it reads its own records in the log, in their turn. Where its outcome is not known,
it looks around at once: so the log's leader is asked how far the log goes, and all up to there is folded first.

Owns when things happen. What is decided is `domain`, by which questions is `planning`, how it is written `chain`.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from libs.capacity.answers import DueTimer, Grant
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.folder import Folder
from libs.capacity.projection import defaults_of
from libs.capacity.rows import Change
from libs.eventlog.errors import LogFull, LogUnavailable, OutcomeUnknown, WentBack
from libs.eventlog.values import Record
from libs.foundation.ground import LOG, VIEW
from libs.foundation.policing import POLICY
from services.scheduler.batches import Batch
from services.scheduler.chain import Chain
from services.scheduler.domain import Due
from services.scheduler.folding import Folding
from services.scheduler.handlers import Granting
from services.scheduler.inbox import Inbox
from services.scheduler.leader import Leader
from services.scheduler.outages import Outages
from services.scheduler.planning import Planner
from services.scheduler.ports import Adapters
from services.scheduler.signals import Signals

logger = logging.getLogger(__name__)

FOLD: Final = "the fold of the log"
LOG_AWAY: Final = (LogUnavailable, OutcomeUnknown, LogFull)  # it passes, and is tried again
LOOK_EVERY_MS: Final = 1000  # or more often, where an outage begins sooner
TAKE_AT_ONCE: Final = 100  # records: some milliseconds
PAUSE_MS: Final = 100  # after a fault, or without the store, however much wakes the cycle


class Cycle:
    """One replica's turns. To set `woken` is to say that there may be something to do."""

    def __init__(
        self,
        adapters: Adapters,
        *,
        folder: Folder,
        inbox: Inbox,
        leader: Leader,
        planner: Planner,
        chain: Chain,
        outages: Outages,
        folding: Folding,
        granting: Granting,
        signals: Signals,
        woken: asyncio.Event,
    ) -> None:
        self._log = adapters.log
        self._view = adapters.view
        self._commands = adapters.commands
        self._health = adapters.health
        self._clock = adapters.clock
        self._folder = folder
        self._inbox = inbox
        self._leader = leader
        self._planner = planner
        self._chain = chain
        self._outages = outages
        self._folding = folding
        self._granting = granting
        self._signals = signals
        self._woken = woken
        self._look_at_ms = self._clock.monotonic_ms()
        self._look_every_ms = min(LOOK_EVERY_MS, outages.patience_ms // 3)
        self._configured = False
        self._counts_by = 0  # the record of the policy by which the view counts
        self._stopped: frozenset[str] = frozenset()  # attempts whose workers were told to end them
        self.folded = asyncio.Event()  # all that was in the log at the start is, and there is a view

    async def run(self, stopping: asyncio.Event) -> None:
        """Turn after turn. Only what passes by itself is waited for; anything else ends the process."""
        ending = asyncio.create_task(self._wake_at_the_end(stopping))
        try:
            while not stopping.is_set():
                self._woken.clear()
                again = await self._try_turn()
                if self._leader.goes_on:  # the replica that may lead by the store is to have its turn
                    await self._clock.sleep_ms(PAUSE_MS)
                if not again and not stopping.is_set():
                    await self._until_woken()
        finally:
            ending.cancel()

    async def _wake_at_the_end(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        self._woken.set()

    async def _try_turn(self) -> bool:
        try:
            return await self.turn()
        except LOG_AWAY as fault:
            self._health.is_missing(LOG, str(fault))
        except ViewUnavailable as fault:
            self._health.is_missing(VIEW, str(fault))
        except ViewLost as fault:
            logger.info("the view was lost in this turn: %s", fault)
        await self._clock.sleep_ms(PAUSE_MS)
        return False

    async def turn(self) -> bool:
        """One round; whether another should follow at once."""
        with self._signals.turn():
            await self._take()
            if self.folded.is_set() and not self._inbox.keeps_up:
                self._health.is_missing(FOLD, f"the log is read up to {self._inbox.reached} of {self._inbox.ends_at}")
            if self._leader.goes_on:
                return await self._go_on()
            if not self._leader.leads:
                await self._stand_by()
                return False
            if not self._inbox.caught_up:
                return False
            async with self._folding.beside(self._update_view()):
                if not self._configured:
                    await self._folding.over()
                due = await self._look_around() if self._is_time_to_look else ()
                await self._stop_forced()
                await self._chain.find()
                return not self._inbox.caught_up or await self._decide(due)

    async def _take(self) -> None:
        while page := self._inbox.take():
            for start in range(0, len(page.records), TAKE_AT_ONCE):
                records = page.records[start : start + TAKE_AT_ONCE]
                self._note(self._folder.take(records), records)
                await asyncio.sleep(0)  # a long log is read bit by bit: heartbeats are answered in between

    def _note(self, changes: Iterable[Change], records: Iterable[Record]) -> None:
        for change in changes:
            if change.complaint:
                logger.error("record %s of the log: %s", change.seq, change.complaint)
        for record in records:
            self._chain.note(record)
        if self._leader.leads and self.folded.is_set():
            self._signals.read(records)

    async def _stand_by(self) -> None:
        self._configured = False
        self._planner.stand_by()
        if self._is_time_to_look:
            await self._mark()
            mark = await self._folder.stand_by()
            if mark is not None and mark.open:
                self._is_folded()

    async def _go_on(self) -> bool:
        """Start what can be started without the view."""
        self._configured = False
        if self._is_time_to_look:
            await self._mark()
        if self._inbox.caught_up:
            await self._chain.find()
        if not self._inbox.caught_up:
            return False
        proposal = await self._planner.go_on(leader=self._leader.name, now=self._leader.now)
        if proposal.batch is None or not self._leader.goes_on:
            return proposal.more
        await self._commit(proposal.batch)
        return True

    async def _update_view(self) -> None:
        """The view is a fold of all that was taken, and counts with the limits of today's policy."""
        rebuilt = self._folder.rebuilt
        await self._tell(await self._folder.update_view())
        if self._folder.rebuilt != rebuilt:
            logger.warning("the view was folded anew, up to record %s of the log", self._planner.ledger.applied)
            self._signals.rebuilt()
            self._outages.interrupted()
        reloaded_at = self._planner.ledger.policy_seq
        if not self._configured or self._counts_by != reloaded_at:
            await self._view.configure(defaults_of(self._planner.policy))
            self._planner.engine.staff.take(await self._view.workers())
            self._configured, self._counts_by = True, reloaded_at
        self._is_folded()

    def _is_folded(self) -> None:
        self._health.note(POLICY, *filter(None, [self._planner.ledger.policy_refused]))
        if self._inbox.caught_up:
            self._health.is_there(FOLD)
            self.folded.set()

    @property
    def _is_time_to_look(self) -> bool:
        return self._clock.monotonic_ms() >= self._look_at_ms

    async def _look_around(self) -> tuple[DueTimer, ...]:
        """What time alone has changed. Reservations lapse here, so the log's leader is asked first what there is."""
        await self._mark()
        await self._folding.over()
        self._stopped = frozenset()  # what was told may have been lost: it is told again
        if not self._inbox.caught_up:
            self._look_at_ms = self._clock.monotonic_ms()
            return ()
        if self._outages.owed_ms:
            logger.warning("leases are %s ms longer, for an outage", self._outages.owed_ms)
            await self._view.prolong(self._outages.owed_ms)
            self._outages.settled()
        if self._outages.can_judge:
            await self._tell((await self._view.sweep()).grants)
        else:
            await self._planner.border.serve()
        self._planner.look_at_workers()
        due = await self._planner.look()
        return tuple(each for each in due if each.kind != Due.LEASE or self._outages.can_judge)

    async def _mark(self) -> None:
        """Ask the log's leader where the log ends, and whether workers can be heard."""
        mark = await self._log.mark()
        if mark.seq < self._inbox.reached:
            raise WentBack(found=mark.seq, seen=self._inbox.reached)
        self._health.is_there(LOG)
        self._inbox.expect(mark.seq)
        self._outages.reached("log")
        if await self._commands.answers():
            self._outages.reached("commands")
        self._look_at_ms = self._clock.monotonic_ms() + self._look_every_ms

    async def _decide(self, due: tuple[DueTimer, ...]) -> bool:
        proposal = await self._planner.propose(
            due, leader=self._leader.name, now=self._leader.now, excused=self._outages.excuses
        )
        if proposal.overdue:
            self._look_at_ms = self._clock.monotonic_ms()
        if proposal.batch is not None and self._leader.leads:
            await self._commit(proposal.batch)
            return True
        return proposal.more

    async def _commit(self, batch: Batch) -> None:
        look_at_ms, self._look_at_ms = self._look_at_ms, self._clock.monotonic_ms()  # at once, unless all went well
        try:
            stored = await self._chain.commit(batch)
        except LOG_AWAY:
            self._planner.border.settled()
            raise
        if stored:
            self._planner.border.settled()
            self._look_at_ms = look_at_ms

    async def _tell(self, grants: Sequence[Grant]) -> None:
        await self._granting.send(grants, now=self._leader.now)

    async def _stop_forced(self) -> None:
        forced = self._planner.duties.to_stop
        await self._granting.stop(holder for holder in forced if holder not in self._stopped)
        self._stopped = frozenset(forced)

    async def _until_woken(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._look_every_ms / 1000):
                await self._woken.wait()

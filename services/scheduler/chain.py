"""The one way in which the scheduler writes: batch after batch, each behind a link of the shard's chain.

    link ◄── link ◄── link      each expects the last one that this replica has folded

So of two leaders one is refused by the log. Where a commit was refused, a job or the chain has moved on: that is folded
before anything is planned again. Where its outcome is not known, the log is asked how far it goes, and folded up to
there. A copy that lands later finds the chain's place taken, or takes it and has ours refused: nothing is ever counted
twice.

Owns where the chain ends. Refuses to choose what is written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import nullcontext

from headgate_contracts import Event, SchedSubject
from headgate_contracts.events import JobData, SchedulerCommitted
from libs.eventlog.errors import LogError
from libs.eventlog.values import Appended, Conflicted, Entry, Record
from libs.runtime.telemetry import carried_context, traceparent
from services.scheduler.batches import Batch, linked, signed
from services.scheduler.inbox import Inbox
from services.scheduler.leader import Leader
from services.scheduler.ports import Adapters
from services.scheduler.signals import Signals

logger = logging.getLogger(__name__)


class Chain:
    """One replica's end of it."""

    def __init__(self, adapters: Adapters, *, shard: str, inbox: Inbox, leader: Leader, signals: Signals) -> None:
        self._log = adapters.log
        self._new_id = adapters.new_id
        self._shard = shard
        self._inbox = inbox
        self._leader = leader
        self._signals = signals
        self._ends_at: int | None = None  # the sequence of its last record; null: not seen yet

    def note(self, record: Record) -> None:
        """This record was folded."""
        match record.event:
            case Event(data=SchedulerCommitted(shard=self._shard, leader=leader)):
                self._ends_at = record.seq
                if leader != self._leader.name:
                    self._leader.followed()
            case _:
                pass

    async def find(self) -> None:
        """Where it ends, for a fold that began after its last link."""
        if self._ends_at is not None:
            return
        last = await self._log.last(str(SchedSubject(self._shard)))
        if last is not None and last.seq > self._inbox.reached:
            self._inbox.expect(last.seq)  # it is folded first, like everything
        else:
            self._ends_at = last.seq if last else 0

    async def commit(self, batch: Batch) -> bool:
        """Write all of it or nothing; whether it is in the log. Raises `LogError` where that is not known."""
        spans = [self._signals.decided(decision) for decision in batch.decisions]
        entries = self._entries(batch, [traceparent(span.get_span_context()) for span in spans])
        try:
            outcome = await self._log.append_batch(entries)
        except LogError:
            self._signals.refused(spans)
            raise
        match outcome:
            case Appended(records):
                self._inbox.expect(records[-1].seq)
                self._signals.committed(batch, spans, now=self._leader.now)
                return True
            case Conflicted():
                self._signals.refused(spans)
                await self._give_way(outcome)
                return False

    async def _give_way(self, conflict: Conflicted) -> None:
        """Somebody else stood first. What they wrote is folded before anything is planned again."""
        data, winner = conflict.entry.event.data, conflict.winner
        with carried_context(data.job_id, conflict.entry.traceparent) if isinstance(data, JobData) else nullcontext():
            logger.info("a commit was refused: %s has moved on", data.about())
        if winner is not None:
            self._inbox.expect(winner.seq)
        if isinstance(data, SchedulerCommitted):
            await self._leader.renew()  # another one commits: do we lead still?

    def _entries(self, batch: Batch, traceparents: Iterable[str | None]) -> list[Entry]:
        """The link of the chain first: who stands in its place tells about all of them."""
        now = self._leader.now
        link = Entry(linked(batch.link, event_id=self._new_id(), now=now), self._ends_at)
        events = (
            Entry(signed(decision, event_id=self._new_id(), now=now), decision.job.seq, parent)
            for decision, parent in zip(batch.decisions, traceparents, strict=True)
        )
        return [link, *events]

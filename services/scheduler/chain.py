"""The one way in which the scheduler writes: batch after batch, each behind a link of the shard's chain, and single
starts in between.

    link ◄── link ◄── link · start · start ◄── link      a link expects the last one that this replica has folded
                                                         a lone start, that the log ends where it was folded to

So of two leaders one is refused by the log. Where a commit was refused, a job or the chain has moved on: that is folded
before anything is planned again. Where its outcome is not known, the log is asked how far it goes, and folded up to
there.

A link does not notice the lone starts before it. So a leader begins with a link that names nothing, and plans once it
has folded that: from there on no other's start can be stored, as the log has gone on, and no other's batch, as the
chain has. The same where the outcome of a write of its own was not known: what may still be under way finds its place
taken. Within this a batch is planned over all starts before it, and nothing is ever counted twice.

Owns where the chain ends, and whether it ends with us. Refuses to choose what is written.
"""

import logging
from collections.abc import Sequence
from contextlib import nullcontext

from headgate_contracts import Event, SchedSubject
from headgate_contracts.events import JobData, SchedulerCommitted
from libs.eventlog.errors import LogError
from libs.eventlog.values import Appended, Conflicted, Entry, Record
from libs.runtime.telemetry import carried_context, traceparent
from services.scheduler.batches import Batch, linked, lone_start, signed
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
        self._own: int | None = None  # our last link; null: none, or something of ours may be under way behind it

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
        """Write all of it or nothing; whether it is in the log. Raises `LogError` where that is not known.

        Where the chain does not end with us, a link that names nothing is written, and nothing of it.
        """
        if not self._is_ours():
            await self._begin()
            return False
        spans = [self._signals.decided(decision) for decision in batch.decisions]
        parents = [traceparent(span.get_span_context()) for span in spans]
        try:
            outcome = await self._start_alone(batch, parents)
            if not isinstance(outcome, Appended):
                outcome = await self._write(self._entries(batch, parents))
        except LogError:
            self._signals.refused(spans)
            raise
        match outcome:
            case Appended():
                self._signals.committed(batch, spans, now=self._leader.now)
                return True
            case Conflicted():
                self._signals.refused(spans)
                await self._give_way(outcome)
                return False

    def _is_ours(self) -> bool:
        return self._own is not None and self._own == self._ends_at

    async def _begin(self) -> None:
        if self._own is not None and not await self._leader.renew():
            return  # another one has begun since
        link = SchedulerCommitted(shard=self._shard, leader=self._leader.name, jobs=())
        outcome = await self._write([self._linked(link)])
        if isinstance(outcome, Conflicted):
            await self._give_way(outcome)

    async def _start_alone(self, batch: Batch, parents: Sequence[str | None]) -> Appended | Conflicted | None:
        """One message where that is enough; null where it is not tried. Who refused it may stand in the way of the
        message alone: the batch is planned over the same records, and finds out."""
        if self._own is None or not self._inbox.is_at_the_end:
            return None
        over = self._inbox.reached
        decision = lone_start(batch, link=self._own, over=over)
        if decision is None:
            return None
        event = signed(decision, event_id=self._new_id(), now=self._leader.now)
        return await self._write([Entry(event, decision.job.seq, parents[0], over)])

    async def _write(self, entries: Sequence[Entry]) -> Appended | Conflicted:
        """No link counts as ours until it is known what became of this."""
        own, self._own = self._own, None
        outcome = await self._log.append_batch(entries)
        self._own = own
        if isinstance(outcome, Appended):
            first, last = outcome.records[0], outcome.records[-1]
            self._inbox.expect(last.seq)
            if isinstance(first.event.data, SchedulerCommitted):
                self._own = first.seq
        return outcome

    async def _give_way(self, conflict: Conflicted) -> None:
        """Somebody else stood first. What they wrote is folded before anything is planned again."""
        data, winner = conflict.entry.event.data, conflict.winner
        with carried_context(data.job_id, conflict.entry.traceparent) if isinstance(data, JobData) else nullcontext():
            logger.info("a commit was refused: %s has moved on", data.about())
        if winner is not None:
            self._inbox.expect(winner.seq)
        if isinstance(data, SchedulerCommitted):
            await self._leader.renew()  # another one commits: do we lead still?

    def _entries(self, batch: Batch, parents: Sequence[str | None]) -> list[Entry]:
        """The link of the chain first: who stands in its place tells about all of them."""
        now = self._leader.now
        events = (
            Entry(signed(decision, event_id=self._new_id(), now=now), decision.job.seq, parent)
            for decision, parent in zip(batch.decisions, parents, strict=True)
        )
        return [self._linked(batch.link), *events]

    def _linked(self, link: SchedulerCommitted) -> Entry:
        return Entry(linked(link, event_id=self._new_id(), now=self._leader.now), self._ends_at)

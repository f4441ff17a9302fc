"""How an event is appended, and how it is found out whether it was.

A server that is killed, a connection that breaks and an answer that comes too late look all the same from here:
silence. After a silence the event may be stored, may be lost, or may still be under way and land in a minute. To
guess wrong is the one mistake that nothing can mend later: a job lost, or a slot given twice. So nothing is guessed.
Three facts make it possible to know:

    1. An event has an id that was made once, and every copy of it carries that id and the same bytes.
    2. An event names the sequence that it expects its subjects to end at: the server stores it right there or nowhere.
    3. So one place in the log tells the whole story: the first record of those subjects after that sequence.

        expected
            │   what stands after it
    ── 17 ─ 21 ─ ·            nobody       not stored yet: send the same bytes again
    ── 17 ─ 21 ─ 30 (ours)    ourselves    stored, by whichever copy
    ── 17 ─ 21 ─ 30 (other)   another      not stored by any copy, however late it lands: a conflict

Send, and if the server accepts it is done. If it contradicts, look at that place, as the stream's leader shows it. If
it is silent, send again, and wait for twice as long: a server that has more to do than it can answer in time is not
made to do it all twice, again and again. A late copy does no harm: it finds the place taken by its twin or by the
winner, and is refused.

An event that expects besides where the whole log ends stands right behind that record or nowhere: so the one record
behind it is its place, and tells the same. Only where nobody stands there is the job's own place looked at.

A batch is stored as a whole or not at all, so the place of its first entry, the witness, answers for all of them. Only
where nobody stands there are the others' places looked at, to find who made the server refuse. (A server that dies or
whose disk fails in mid-commit may show a part of a batch; it completes the batch before it takes anything else.)

An operator's act expects nothing and has no such place. The server knows its id for two minutes and takes a copy for
what it is; `settle_within_s` is far below that.

What cannot be known within `settle_within_s` is not made up: `OutcomeUnknown` says just that. The caller may ask
again with the same event at any later time, and the same place in the log still tells.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence

from headgate_contracts import Job, job_filter
from headgate_contracts.envelope import AnyEvent
from libs.eventlog.errors import LogUnavailable, OutcomeUnknown
from libs.eventlog.expectation import WHOLE_LOG, Message, messages_of
from libs.eventlog.values import Appended, Conflicted, Entry, Fill, Mark, Page, Record, Stored, Wanted
from libs.eventlog.wire import Accepted, Contradicted, Declined, Unanswered, Unsent, Wire, WireAnswer
from libs.runtime.clock import Clock

SETTLE_WITHIN_S = 15.0  # an election among three servers takes 4 to 9 s in the worst case
FIRST_TRY_S, LONGEST_TRY_S = 1.0, 4.0
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 5, 250


class SettlingLog:
    """An `EventLog` over any far end."""

    def __init__(self, wire: Wire, *, clock: Clock, settle_within_s: float = SETTLE_WITHIN_S) -> None:
        self._wire = wire
        self._clock = clock
        self._settle_within_s = settle_within_s

    async def append(
        self, event: AnyEvent, *, after: Job | int | None, traceparent: str | None = None
    ) -> Appended | Conflicted:
        """Store the event if `after` is still its job's last. It is a batch of one."""
        return await self.append_batch([Entry(event, after, traceparent)])

    async def append_batch(self, entries: Sequence[Entry]) -> Appended | Conflicted:
        """Store all entries or none, and come back when it is known which."""
        messages = messages_of(entries)
        in_doubt, reason, within_s = False, "", FIRST_TRY_S
        for pause_ms in self._pauses():
            answer = await self._wire.send(messages, within_s=within_s)
            outcome = await self._outcome(messages, answer, in_doubt=in_doubt)
            if outcome is not None:
                return outcome
            in_doubt = in_doubt or not isinstance(answer, Unsent)
            reason = "" if isinstance(answer, Accepted) else answer.reason
            if isinstance(answer, Unanswered):
                within_s = min(2 * within_s, LONGEST_TRY_S)
            await self._clock.sleep_ms(pause_ms)
        if in_doubt:
            raise OutcomeUnknown(what=_named(messages), within_s=self._settle_within_s, reason=reason)
        raise LogUnavailable(reason=reason)

    async def read(self, job_id: str, *, after: int = 0) -> list[Record]:
        """The job's records, oldest first, from the leader."""
        subject_filter, records = job_filter(job_id), list[Record]()
        while record := await self._wire.next(subject_filter, after=after):
            records.append(record)
            after = record.seq
        return records

    async def last(self, subject_filter: str) -> Record | None:
        """The newest record of these subjects, from the leader."""
        return await self._wire.last(subject_filter)

    async def mark(self) -> Mark:
        """Epoch and last sequence, from the leader."""
        return await self._wire.mark()

    async def fill(self) -> Fill:
        """How full it is, from the leader."""
        return await self._wire.fill()

    def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[Page, None]:
        """Every record from `after` + 1 on, in pages, for ever; or those that are wanted."""
        return self._wire.follow(after=after, wanted=wanted)

    async def _outcome(
        self, messages: Sequence[Message], answer: WireAnswer, *, in_doubt: bool
    ) -> Appended | Conflicted | None:
        """What the answer means; null where it settles nothing. `in_doubt`: an earlier copy may be under way."""
        match answer:
            case Accepted(last_seq):
                return _appended(messages, first_seq=last_seq - len(messages) + 1)
            case Declined(error) if not in_doubt:
                raise error
            case Declined() | Contradicted():
                return await self._seen_in_the_log(messages, in_doubt=in_doubt)
            case Unanswered() | Unsent():
                return None

    async def _seen_in_the_log(self, messages: Sequence[Message], *, in_doubt: bool) -> Appended | Conflicted | None:
        """What the one place that tells says; null where it says nothing yet, or cannot be seen."""
        try:
            for message in messages:
                standing = await self._standing_after(message)
                if standing is not None:
                    return await self._judged(messages, message, standing)
            return None if in_doubt else await self._expecting_too_much(messages)
        except LogUnavailable:
            return None

    async def _judged(self, messages: Sequence[Message], message: Message, standing: Record) -> Appended | Conflicted:
        witness = messages[0]
        first = standing if message is witness else await self._standing_after(witness)  # it may have landed meanwhile
        if first is not None and first.event_id == witness.id:
            return _appended(messages, first_seq=first.seq)
        return Conflicted(message.entry, standing)

    async def _standing_after(self, message: Message) -> Record | None:
        """Who stands in the one place where the message can."""
        expectation, over = message.expectation, message.entry.over
        if over is not None and (standing := await self._wire.next(WHOLE_LOG, after=over)) is not None:
            return standing
        return expectation and await self._wire.next(expectation.subject_filter, after=expectation.last_seq)

    async def _expecting_too_much(self, messages: Sequence[Message]) -> Conflicted | None:
        """A sequence that the log has not reached. It is believed only where no copy can be under way."""
        for expectation, entry in ((message.expectation, message.entry) for message in messages):
            if expectation and expectation.last_seq:
                last = await self._wire.last(expectation.subject_filter)
                if last is None or last.seq < expectation.last_seq:
                    return Conflicted(entry, None)
            if entry.over and (await self._wire.mark()).seq < entry.over:
                return Conflicted(entry, None)
        return None

    def _pauses(self) -> Iterator[int]:
        """How long to wait after each try, until the time is over."""
        give_up_at_ms = self._clock.monotonic_ms() + round(self._settle_within_s * 1000)
        pause_ms = FIRST_PAUSE_MS
        while self._clock.monotonic_ms() < give_up_at_ms:
            yield pause_ms
            pause_ms = min(2 * pause_ms, LONGEST_PAUSE_MS)


def _appended(messages: Sequence[Message], *, first_seq: int) -> Appended:
    stored = (Stored(seq, message.entry.event) for seq, message in enumerate(messages, first_seq))
    return Appended(tuple(stored))


def _named(messages: Sequence[Message]) -> str:
    first, *others = messages
    name = f"{first.entry.event.type} {first.id}"
    return f"{name} and {len(others)} more" if others else name

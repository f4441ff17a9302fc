"""The log in memory: the twin of JetStream for tests and simulations.

Owns the server's side alone: ids, expectations, batches, a bound on size, age, and the ways in which an answer fails
to come. How one appends against such a server is `settling`, the same code for both. A test decides by `fate` what
becomes of each try, and by `connected` whether there is a connection; nothing here is random.
"""

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from itertools import islice

from headgate_contracts.envelope import utc
from libs.eventlog.decoding import event_in
from libs.eventlog.errors import LogFull, LogUnavailable, WentBack
from libs.eventlog.expectation import TRACEPARENT, Message
from libs.eventlog.settling import SETTLE_WITHIN_S, SettlingLog
from libs.eventlog.snapshots import PLACES, age_of
from libs.eventlog.streams import DUPLICATE_WINDOW_S
from libs.eventlog.values import Fill, Mark, Page, Record, Wanted
from libs.eventlog.wire import Accepted, Contradicted, Declined, Unanswered, Unsent, WireAnswer
from libs.runtime.clock import Clock

PAGE_SIZE = 1000


class Fate(Enum):
    """What becomes of one try to send."""

    ARRIVES = auto()
    LOST = auto()  # it never arrives, and nobody says so
    UNHEARD = auto()  # it arrives, and the answer is lost
    LATE = auto()  # it lies about, and arrives when the test says `land`


ChooseFate = Callable[[Sequence[Message]], Fate]


def always_arrives(messages: Sequence[Message]) -> Fate:
    return Fate.ARRIVES


@dataclass(frozen=True, slots=True)
class _Kept:
    """A stored message, as bytes: what is read has made the same journey as over a wire."""

    seq: int
    at: datetime
    message: Message

    def record(self) -> Record:
        event = event_in(self.message.subject, self.message.payload)
        return Record(self.seq, self.at, event, self.message.headers.get(TRACEPARENT))


class MemoryServer:
    """One stream. Any number of logs write to it, each over a wire of its own."""

    def __init__(self, clock: Clock, *, epoch: str, max_bytes: int | None = None) -> None:
        self.epoch = epoch
        self.first_seq = 1
        self.late: list[Sequence[Message]] = []  # copies that lie about
        self._clock = clock
        self._max_bytes = max_bytes
        self._kept: list[_Kept] = []
        self._by_filter: dict[str, list[int]] = defaultdict(list)
        self._looked: dict[str, tuple[list[int], int]] = {}  # other filter → what matches it, up to which sequence
        self._ids: dict[str, tuple[int, int]] = {}  # id → sequence, when
        self._grown = asyncio.Event()

    @property
    def last_seq(self) -> int:
        return self.first_seq + len(self._kept) - 1

    def receive(self, messages: Sequence[Message]) -> WireAnswer:
        """All messages or none, in the order in which the real server looks: expectations, ids, room."""
        for expectation in filter(None, (message.expectation for message in messages)):
            last_seq = self._last_seq(expectation.subject_filter)
            if last_seq != expectation.last_seq:
                return Contradicted(f"wrong last sequence: {last_seq}")
        if messages[0].entry.over not in (None, self.last_seq):
            return Contradicted(f"wrong last sequence: {self.last_seq}")
        known = [seq for message in messages if (seq := self._known(message.id))]
        if known:
            return Accepted(known[0]) if len(messages) == 1 else Contradicted("a batch holds an id that is known")
        if self._max_bytes is not None and self._bytes() + _size(messages) > self._max_bytes:
            return Declined(LogFull(reason="maximum bytes exceeded"))
        for message in messages:
            self._store(message)
        self._grown.set()
        self._grown = asyncio.Event()
        return Accepted(self.last_seq)

    def fill(self) -> Fill:
        return Fill(self._bytes(), self._max_bytes)

    def land(self) -> list[WireAnswer]:
        """The copies that lie about arrive, long after their writers have given them up."""
        landing, self.late = self.late, []
        return [self.receive(messages) for messages in landing]

    def expire(self, through: int) -> None:
        """What age does to the oldest records."""
        del self._kept[: through + 1 - self.first_seq]
        self.first_seq = through + 1
        self._looked.clear()

    def go_back(self, to: int) -> None:
        """What a power cut does where the disk was not synced."""
        del self._kept[to + 1 - self.first_seq :]
        self._ids = {each: (seq, at) for each, (seq, at) in self._ids.items() if seq <= to}
        self._looked.clear()
        for seqs in self._by_filter.values():
            del seqs[bisect_right(seqs, to) :]

    def next(self, subject_filter: str, *, after: int) -> Record | None:
        return next((kept.record() for kept in self._matching(subject_filter, after=after)), None)

    def last(self, subject_filter: str) -> Record | None:
        seqs = self._seqs_of(subject_filter)
        return self._kept[seqs[-1] - self.first_seq].record() if seqs and seqs[-1] >= self.first_seq else None

    def records(self, filters: Sequence[str], *, after: int = 0) -> list[Record]:
        """All that stands under any of these filters now."""
        rest = islice(self._kept, max(after + 1 - self.first_seq, 0), None)
        return [kept.record() for kept in rest if any(matches(kept.message.subject, each) for each in filters)]

    async def pages(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[Page, None]:
        seen, greeted = after, False
        while True:
            if self.last_seq < seen:
                raise WentBack(found=self.last_seq, seen=seen)
            grown, start = self._grown, max(seen + 1 - self.first_seq, 0)
            come = self._kept[start : start + PAGE_SIZE]
            records = tuple(kept.record() for kept in come if wanted is None or wanted(kept.message.subject))
            seen = come[-1].seq if come else seen
            if records or not (come or greeted):
                yield Page(records, self.last_seq)
            elif not come:
                await grown.wait()
            greeted = True

    def _store(self, message: Message) -> None:
        now_ms, seq = self._clock.now_ms(), self.last_seq + 1
        self._kept.append(_Kept(seq, utc(now_ms), message))
        self._ids[message.id] = (seq, now_ms)
        if message.expectation:
            self._by_filter[message.expectation.subject_filter].append(seq)

    def _bytes(self) -> int:
        return _size([kept.message for kept in self._kept])

    def _known(self, message_id: str) -> int | None:
        seq, at_ms = self._ids.get(message_id, (None, 0))
        return seq if self._clock.now_ms() - at_ms < DUPLICATE_WINDOW_S * 1000 else None

    def _last_seq(self, subject_filter: str) -> int:
        seqs = self._by_filter.get(subject_filter)
        return seqs[-1] if seqs and seqs[-1] >= self.first_seq else 0

    def _matching(self, subject_filter: str, *, after: int) -> Iterator[_Kept]:
        after = max(after, self.first_seq - 1)
        seqs = self._seqs_of(subject_filter)
        return (self._kept[seq - self.first_seq] for seq in seqs[bisect_right(seqs, after) :])

    def _seqs_of(self, subject_filter: str) -> list[int]:
        """By index for the filters of expectations, by a look at each message for any other, once."""
        if subject_filter in self._by_filter:
            return self._by_filter[subject_filter]
        seqs, looked = self._looked.get(subject_filter, ([], self.first_seq - 1))
        rest = islice(self._kept, looked + 1 - self.first_seq, None)
        seqs += [kept.seq for kept in rest if matches(kept.message.subject, subject_filter)]
        self._looked[subject_filter] = seqs, self.last_seq
        return seqs


class MemoryWire:
    """One process's connection to the server."""

    def __init__(self, server: MemoryServer, fate: ChooseFate = always_arrives) -> None:
        self.server = server
        self._fate = fate
        self._online = asyncio.Event()
        self._online.set()

    @property
    def connected(self) -> bool:
        return self._online.is_set()

    @connected.setter
    def connected(self, there: bool) -> None:
        if there:
            self._online.set()
        else:
            self._online.clear()

    async def send(self, messages: Sequence[Message], *, within_s: float) -> WireAnswer:
        await asyncio.sleep(0)  # others get their turn, as they do during a round trip
        if not self.connected:
            return Unsent("not connected")
        match self._fate(messages):
            case Fate.ARRIVES:
                return self.server.receive(messages)
            case Fate.UNHEARD:
                self.server.receive(messages)
            case Fate.LATE:
                self.server.late.append(messages)
            case Fate.LOST:
                pass
        return Unanswered("no answer")

    async def next(self, subject_filter: str, *, after: int) -> Record | None:
        await self._round_trip()
        return self.server.next(subject_filter, after=after)

    async def last(self, subject_filter: str) -> Record | None:
        await self._round_trip()
        return self.server.last(subject_filter)

    async def mark(self) -> Mark:
        await self._round_trip()
        return Mark(self.server.epoch, self.server.last_seq)

    async def fill(self) -> Fill:
        await self._round_trip()
        return self.server.fill()

    async def follow(self, *, after: int, wanted: Wanted | None) -> AsyncGenerator[Page, None]:
        async with aclosing(self.server.pages(after=after, wanted=wanted)) as pages:
            async for page in pages:
                await self._online.wait()
                yield page

    async def _round_trip(self) -> None:
        await asyncio.sleep(0)
        if not self.connected:
            raise LogUnavailable(reason="not connected")


class MemoryLog(SettlingLog):
    """A log over a server in memory."""

    def __init__(
        self,
        server: MemoryServer,
        *,
        clock: Clock,
        fate: ChooseFate = always_arrives,
        settle_within_s: float = SETTLE_WITHIN_S,
    ) -> None:
        self.wire = MemoryWire(server, fate)
        self.epoch = server.epoch
        super().__init__(self.wire, clock=clock, settle_within_s=settle_within_s)


class MemorySnapshots:
    """Two snapshots, in memory."""

    def __init__(self) -> None:
        self._kept: list[tuple[Mark, bytes]] = []

    async def put(self, data: bytes, *, mark: Mark) -> None:
        self._kept.append((mark, data))
        self._kept.sort(key=lambda kept: age_of(kept[0], mark))
        del self._kept[: -len(PLACES)]

    async def newest(self, epoch: str) -> tuple[Mark, bytes] | None:
        ours = [(mark, data) for mark, data in self._kept if mark.epoch == epoch]
        return max(ours, key=lambda kept: kept[0].seq, default=None)


def _size(messages: Sequence[Message]) -> int:
    return sum(len(message.payload) + len(message.subject) for message in messages)


def matches(subject: str, subject_filter: str) -> bool:
    have, want = subject.split("."), subject_filter.split(".")
    if want[-1] == ">":
        have, want = have[: len(want) - 1], want[:-1] if len(have) >= len(want) else ["", *want]
    return len(have) == len(want) and all(w in ("*", h) for h, w in zip(have, want, strict=True))

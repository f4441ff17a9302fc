"""A stream, read to its end: one sequence of events, however often the connection is lost, and whichever replica is
behind the next one.

The first connection to a job asks for all there was. The last id and the last line are sent with each later one, so
what comes after them comes once and in order; who reads here does not notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from headgate.errors import HeadgateError, NotHeadgate, TryLater, Unreachable, fault_of
from headgate.exchange import (
    Answer,
    Give,
    NoAnswer,
    Patience,
    Pause,
    Request,
    Stream,
    opened,
    path_of,
    sifted,
    taken,
    terms,
)
from headgate.happenings import End, Event, LogLine, Resync, typed
from headgate.sse import FrameReader, Retry

SILENT_AFTER_S: Final = 45.0  # a comment comes every 15 s
RETRY_MS: Final = 2000
TRIES: Final = 20  # in a row without a word: about a minute


@dataclass(frozen=True, slots=True)
class Place:
    """How far a stream was heard: its last id, and where the last line of the job's log stands."""

    id: str | None = None
    line: int = 0

    def after(self, event: Event) -> Place:
        match event:
            case LogLine():
                return replace(self, line=event.data.get("seq", self.line))
            case Resync():
                return Place()
            case _:
                return replace(self, id=event.id or self.id)


def of_job(job_id: str) -> Callable[[Place], Request]:
    """What to ask for a job's stream from a place on; from the beginning where nothing was heard."""

    def request(place: Place) -> Request:
        query = {"log_after": str(place.line)} if place.id else {"replay": "true"}
        return _request(path_of("jobs", job_id, "stream"), place, query)

    return request


def of_all(place: Place) -> Request:
    """The stream of all of one's own jobs."""
    return _request(path_of("stream"), place, {})


@dataclass(slots=True)
class Ear:
    """What was heard of a stream, and what that means for the next connection. Pure."""

    asks: Callable[[Place], Request]
    patience: Patience
    place: Place = field(default_factory=Place)
    over: bool = False
    failures: int = 0
    retry_ms: int = RETRY_MS
    _reader: FrameReader | None = None
    _after_s: float | None = None

    @property
    def connected(self) -> bool:
        return self._reader is not None

    @property
    def request(self) -> Request:
        return self.asks(self.place)

    def begins(self, outcome: Answer | NoAnswer) -> Iterator[Event]:
        """With an answer's head: the stream, or the news that nothing follows. A refusal is raised, and so is what
        is no stream."""
        self._after_s = None
        if isinstance(outcome, Answer) and outcome.status == 204:  # nothing follows that id
            self.over = True
            yield End("end", {})
        elif (fault := fault_of(outcome)) is not None:
            passing = isinstance(outcome, NoAnswer) or outcome.status >= 500 or isinstance(fault, TryLater)
            self._failed(fault, passing=passing)
        elif _is_stream(outcome):
            self._reader = FrameReader()
        else:
            raise NotHeadgate

    def take(self, piece: bytes | NoAnswer) -> Iterator[Event]:
        """What a piece tells. An empty one is the end of the connection."""
        reader = self._reader
        assert reader is not None
        if isinstance(piece, NoAnswer) or not piece:
            self._ends(piece.reason if isinstance(piece, NoAnswer) else None, heard=reader.heard)
            return
        for frame in reader.feed(piece):
            if isinstance(frame, Retry):
                self.retry_ms = min(frame.after_ms, int(self.patience.within_s * 1000))
                continue
            event = typed(frame)
            self.place = self.place.after(event)
            yield event
            if isinstance(event, End):
                self.over, self._reader = True, None
                return

    def pause_s(self, random: float) -> float:
        """Before the next connection: spread, so that not all come back at once."""
        return max(self._after_s or 0.0, self.retry_ms / 1000 * (0.5 + random / 2))

    def _ends(self, reason: str | None, *, heard: bool) -> None:
        """The connection. One that was open and on which nobody spoke is as good as none."""
        if heard:
            self.failures = 0
        if reason or not heard:
            self._failed(Unreachable(reason or "the stream ended without a word"), passing=True)
        self._reader = None

    def _failed(self, fault: HeadgateError, *, passing: bool) -> None:
        self._reader = None
        self.failures += 1
        self._after_s = fault.retry_after if isinstance(fault, TryLater) else None
        if not passing or self.failures >= TRIES or (self._after_s or 0.0) > self.patience.within_s:
            raise fault


def _is_stream(outcome: Answer | NoAnswer) -> bool:
    kind = outcome.headers.get("content-type", "") if isinstance(outcome, Answer) else ""
    return kind.partition(";")[0].strip().lower() == "text/event-stream"


def follow(asks: Callable[[Place], Request]) -> Stream[Event]:
    """Every event of the stream, from its first to its end."""
    known = yield from terms()
    ear = Ear(asks, known.patience)
    while not ear.over:
        for event in ear.begins((yield from opened(ear.request))):
            yield Give(event)
        while ear.connected:
            for event in ear.take((yield from taken())):
                yield Give(event)
        if not ear.over:
            yield Pause(ear.pause_s(known.random()))


def lines(job_id: str) -> Stream[LogLine]:
    """What a job says, from its first line to its last."""
    yield from sifted(follow(of_job(job_id)), lambda event: event if isinstance(event, LogLine) else None)


def _request(path: str, place: Place, query: dict[str, str]) -> Request:
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": place.id} if place.id else {})
    return Request(path=path, query=query, headers=headers, within_s=SILENT_AFTER_S)

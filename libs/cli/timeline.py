"""One job's life as a waterfall: each hop with its beginning, its length and a bar, told by the log alone.

Pure: the events of `GET /v1/jobs/{id}/events` and the pieces of `GET /v1/jobs/{id}/waits` in, hops and bars out. A hop
begins with the event that opens it and lasts until the next one that does; what changes nothing about where the job is
(a new place, a reminder) is a moment without a length. What held the job stands below the hop in which it waited. All
times are the log's own, but for the first: when it was submitted is told by admission's clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from headgate.values import JobWait
from headgate_contracts.table import TABLE
from headgate_contracts.vocabulary import EventName, Status
from libs.cli.bars import bar

HEAD: Final = ("AT", "TOOK", "TRY", "HOP", "")
ENDS: Final = frozenset(status.value for status in Status if status.is_end)
OPENS: Final = frozenset(row.event.value for row in TABLE if row.then) | {EventName.STARTED.value}
MOMENTS: Final = frozenset(name.value for name in EventName) - OPENS
WORDS: Final[Mapping[str, str]] = {
    "submitted": "on its way into the log",
    "queued": "in the queue",
    "scheduled": "waits for its day",
    "waiting": "waits for its earlier phase",
    "dispatched": "on its way to a worker",
    "started": "claimed by",
    "awaiting_confirmation": "asks its user",
    "confirmed": "confirmed, in the queue",
    "answered": "answered, in the queue",
    "given_back": "given back, waits again:",
}
BESIDE: Final[Mapping[str, str]] = {"started": "worker", "given_back": "reason"}
HELD: Final = "held"
TOLD_BY_EVENTS: Final = frozenset({"turn", "daily_window", "earlier_phase", "confirmation", "retry", "provider_paused"})
RUNNING: Final = frozenset({"dispatched", "started", "stage"})
BAR_WIDTH: Final = 60  # where no terminal says how wide it is


@dataclass(frozen=True, slots=True)
class Hop:
    """`took_ms` is 0 for a moment and for an end, null where the job still is there. `seq` is null before the log."""

    event: str
    words: str
    attempt: int
    at_ms: float
    took_ms: float | None
    seq: int | None

    @property
    def row(self) -> tuple[str, str, str, str]:
        took = "…" if self.took_ms is None else f"{in_ms(self.took_ms)} ms" if self._lasts else ""
        return f"+{in_ms(self.at_ms)} ms", took, str(self.attempt or ""), self.words

    @property
    def as_data(self) -> dict[str, object]:
        return {
            "event": self.event,
            "hop": self.words,
            "attempt": self.attempt,
            "at_ms": round(self.at_ms, 3),
            "took_ms": None if self.took_ms is None else round(self.took_ms, 3),
            "seq": self.seq,
        }

    @property
    def _lasts(self) -> bool:
        return self.event not in ENDS | MOMENTS


def hops(history: Sequence[Mapping[str, Any]]) -> tuple[Hop, ...]:
    """From the submission to the end, in the order of the log."""
    if not history:
        return ()
    begun = _submitted_at(history[0])
    opened = [Hop("submitted", WORDS["submitted"], 0, 0.0, 0.0, None)] if begun < _at(history[0]) else []
    opened += [_hop(event, since=min(begun, _at(history[0]))) for event in history]
    lasting = [number for number, hop in enumerate(opened) if hop.event not in MOMENTS]
    for number, following in zip(lasting, [*lasting[1:], None], strict=True):
        opened[number] = _lasted(opened[number], None if following is None else opened[following])
    return tuple(opened)


def with_waits(told: Sequence[Hop], history: Sequence[Mapping[str, Any]], waits: Iterable[JobWait]) -> tuple[Hop, ...]:
    """What held the job, below the hop in which it began to. What its own events say is in the hops already."""
    if not history:
        return ()
    begun = min(_submitted_at(history[0]), _at(history[0]))
    held = (_held(wait, begun) for wait in waits if wait.reason not in TOLD_BY_EVENTS)
    return tuple(sorted((*told, *held), key=lambda hop: hop.at_ms))  # stable: a hop stands above what begins with it


def _held(wait: JobWait, begun: datetime) -> Hop:
    at_ms = (wait.since - begun).total_seconds() * 1000
    took_ms = None if wait.until is None else (wait.until - wait.since).total_seconds() * 1000
    return Hop(HELD, f"· {wait.message}", 0, at_ms, took_ms, None)


def attempts(told: Iterable[Hop]) -> dict[int, float]:
    """How long each attempt was under way, from its dispatch; without what still lasts."""
    taken: dict[int, float] = {}
    for hop in told:
        if hop.event in RUNNING:
            taken[hop.attempt] = taken.get(hop.attempt, 0.0) + (hop.took_ms or 0.0)
    return taken


def in_ms(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def bars(told: Sequence[Hop], *, width: int) -> list[str]:
    """One for each hop, all to one scale. What still lasts is drawn as far as the log tells."""
    whole_ms = max((hop.at_ms + (hop.took_ms or 0) for hop in told), default=0.0)
    return [_bar(hop, whole_ms, width=width) for hop in told]


def _bar(hop: Hop, whole_ms: float, *, width: int) -> str:
    if whole_ms <= 0:
        return ""
    before = min(int(width * hop.at_ms / whole_ms), width - 1)
    drawn = "…" if hop.took_ms is None else bar(hop.took_ms, whole_ms, width=width) or "▏"
    return " " * before + drawn[: width - before]


def _lasted(hop: Hop, following: Hop | None) -> Hop:
    if hop.event in ENDS:
        return hop
    return replace(hop, took_ms=None if following is None else max(0.0, following.at_ms - hop.at_ms))


def _hop(event: Mapping[str, Any], *, since: datetime) -> Hop:
    at_ms = (_at(event) - since).total_seconds() * 1000
    return Hop(event["event"], _words(event), int(event["attempt"]), at_ms, 0.0, int(event["seq"]))


def _words(event: Mapping[str, Any]) -> str:
    name = str(event["event"])
    if name == EventName.STAGE:
        iteration = f", iteration {event['iteration']}" if event.get("iteration", 1) > 1 else ""
        return f"stage {event['stage']}{iteration}{', restored' if event.get('restored') else ''}"
    beside = str(event.get(BESIDE.get(name, ""), ""))
    return f"{WORDS.get(name, name.replace('_', ' '))} {beside}".rstrip()


def _submitted_at(event: Mapping[str, Any]) -> datetime:
    submission: Mapping[str, Any] = event.get("submission") or {}
    told = submission.get("submitted_at")
    return datetime.fromisoformat(told) if told else _at(event)


def _at(event: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(event["at"])

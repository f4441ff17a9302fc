"""What is counted of the log for charts, and the lines that a span of time has of it. Pure.

    queued, running         by pool: how many at the end of each step; kept as what each event adds or takes away
    started, ready, …       by pool: how many in the step
    wait_p50, wait_p90      seconds from the queue to the first start, of those that started in the step
    provider_paused         by provider: attempts that were given back as it had paused
    calls                   by provider: calls of models that events tell in the step
    tokens_input, …         by provider: tokens that events tell in the step; `tokens_cached` are among the input
    refused                 by reason: the view knows them by the hour, for a day

Owns the names. A job whose first events have gone by age is not counted, in either direction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from headgate_contracts import Event, Job, Status
from headgate_contracts.envelope import utc
from headgate_contracts.events import AttemptData, JobGivenBack
from headgate_contracts.shown import ShownStats, StatsLine
from headgate_contracts.vocabulary import GivenBackReason
from libs.capacity.projection import epoch_ms
from libs.eventlog import Record
from libs.forecast.intervals import quantile

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
MOST_STEPS: Final = 1000
USUAL_STEPS: Final = 100
LEVELS: Final = ("queued", "running")
TOKENS: Final = ("input", "output", "cached")
UNKNOWN: Final = (
    "refused: counted by the hour, for 24 hours or since the view was made; headgate_admission_refused_total has more",
)


@dataclass(frozen=True, slots=True)
class ChartSpan:
    """From `start` on, so many steps of so many minutes; both in minutes since 1970."""

    start: int
    step: int
    count: int

    @classmethod
    def between(cls, since: datetime, until: datetime, *, step_s: int | None) -> ChartSpan:
        """Steps begin where they would begin for anybody else; of too short ones there are longer ones instead. No log
        is older than 1970."""
        first, last = max(0, epoch_ms(since) // MINUTE_MS), epoch_ms(until) // MINUTE_MS
        wide = max(last - first, 1)
        wanted = max(1, -(-wide // USUAL_STEPS) if step_s is None else step_s // 60)
        step = max(wanted, -(-wide // (MOST_STEPS - 2)))
        start = first // step * step
        return cls(start, step, max(0, (last - start) // step) + 1)

    def step_of(self, ms: int) -> int:
        return (ms // MINUTE_MS - self.start) // self.step

    def times(self) -> tuple[datetime, ...]:
        return tuple(utc((self.start + n * self.step) * MINUTE_MS) for n in range(self.count))


@dataclass(frozen=True, slots=True)
class Counted:
    """What the index has of a span: the levels before it, what each step adds, and the waits of each step in order."""

    before: Mapping[tuple[str, str], int]
    steps: tuple[tuple[int, str, str, int], ...]
    waits: tuple[tuple[int, int], ...]


def changes(before: Job | None, after: Job, record: Record) -> Iterator[tuple[str, str, int]]:
    """What an event changes: a name, of which pool or provider, and by how much."""
    pool = after.submission.pool
    for name, is_in in (("queued", _is_queued), ("running", _is_running)):
        change = int(is_in(after)) - int(before is not None and is_in(before))
        if change:
            yield name, pool, change
    if wait_ms(before, after, record) is not None:
        yield "started", pool, 1
    if after.status.is_end and not (before is not None and before.status.is_end):
        yield after.status.value, pool, 1
    match record.event:
        case Event(data=JobGivenBack(reason=GivenBackReason.PROVIDER, provider=provider)):
            yield "provider_paused", provider or "", 1
        case _:
            pass
    yield from _model_usage(record)


def _model_usage(record: Record) -> Iterator[tuple[str, str, int]]:
    match record.event:
        case Event(data=AttemptData(usage=usage)):
            for each in usage:
                yield "calls", each.provider, each.calls
                yield from ((f"tokens_{kind}", each.provider, getattr(each, f"{kind}_tokens")) for kind in TOKENS)
        case _:
            pass


def wait_ms(before: Job | None, after: Job, record: Record) -> int | None:
    """How long it was in the queue, where this is its first start."""
    if before is None or before.attempt or not after.attempt or before.standing is None:
        return None
    return max(0, epoch_ms(record.at) - epoch_ms(before.standing.entered_at))


def stats_of(span: ChartSpan, counted: Counted, refused: Mapping[tuple[int, str], int], *, now_ms: int) -> ShownStats:
    """The lines of every name, in the order of the names."""
    lines = [
        *_levels(span, counted),
        *_numbers(span, counted),
        *_waits(span, counted),
        *_refused(span, refused, now_ms),
    ]
    times = span.times()
    return ShownStats(
        since=times[0],
        until=utc(now_ms),
        step_s=span.step * 60,
        times=times,
        lines=tuple(sorted(lines, key=lambda line: (line.name, line.of or ""))),
        unknown=UNKNOWN,
    )


def _levels(span: ChartSpan, counted: Counted) -> Iterator[StatsLine]:
    added = defaultdict[tuple[str, str], dict[int, int]](dict)
    for key in counted.before:
        added[key] = {}
    for n, name, of, count in counted.steps:
        if name in LEVELS:
            added[name, of][n] = count
    for (name, of), by_step in added.items():
        level, values = counted.before.get((name, of), 0), list[float]()
        for n in range(span.count):
            level += by_step.get(n, 0)
            values.append(level)
        yield StatsLine(name=name, of=of, values=tuple(values))


def _numbers(span: ChartSpan, counted: Counted) -> Iterator[StatsLine]:
    found = defaultdict[tuple[str, str], list[float]](lambda: [0.0] * span.count)
    for n, name, of, count in counted.steps:
        if name not in LEVELS and 0 <= n < span.count:
            found[name, of][n] += count
    yield from (StatsLine(name=name, of=of, values=tuple(values)) for (name, of), values in found.items())


def _waits(span: ChartSpan, counted: Counted) -> Iterator[StatsLine]:
    by_step = defaultdict[int, list[float]](list)
    for n, wait in counted.waits:
        by_step[n].append(wait / 1000)
    for name, share in (("wait_p50", 0.5), ("wait_p90", 0.9)):
        values = (round(quantile(by_step[n], share), 3) if n in by_step else None for n in range(span.count))
        yield StatsLine(name=name, values=tuple(values))


def _refused(span: ChartSpan, refused: Mapping[tuple[int, str], int], now_ms: int) -> Iterator[StatsLine]:
    """By the step in which their hour began; what was before the last 24 hours nobody knows."""
    known = [now_ms - 24 * HOUR_MS <= (span.start + n * span.step) * MINUTE_MS for n in range(span.count)]
    found = defaultdict[str, list[float | None]](lambda: [0.0 if each else None for each in known])
    for (hour, why), count in refused.items():
        n = span.step_of(hour)
        if 0 <= n < span.count:
            found[why][n] = (found[why][n] or 0.0) + count
    yield from (StatsLine(name="refused", of=why, values=tuple(values)) for why, values in found.items())


def _is_queued(job: Job) -> bool:
    return job.status is Status.QUEUED


def _is_running(job: Job) -> bool:
    return job.status.is_running


def minute_of(record: Record) -> int:
    return epoch_ms(record.at) // MINUTE_MS


def summed(found: Iterable[tuple[int, str, str, int]]) -> dict[tuple[int, str, str], int]:
    """By minute, name and what it is of."""
    counts = defaultdict[tuple[int, str, str], int](int)
    for minute, name, of, count in found:
        counts[minute, name, of] += count
    return {key: count for key, count in counts.items() if count}

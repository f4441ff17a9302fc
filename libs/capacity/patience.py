"""How long each job that has never started was paused, by the log: that time does not count against its time to live.

    queued ──paused──► a span begins ──resumed──► it ends       a job that leaves the queue is forgotten

Owns the spans. What else does not count, the log does not know: who leads does.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from headgate_contracts import Job, Status

Span = tuple[int, int]  # from when to when, in ms since 1970
SPANS_MAX: Final = 50  # of one job; older ones become one, with what lies between them


@dataclass(slots=True)
class Patience:
    """The pauses of all jobs that wait for their first start."""

    over: dict[str, list[Span]] = field(default_factory=dict[str, list[Span]])
    since: dict[str, int] = field(default_factory=dict[str, int])

    def fold(self, job: Job, *, paused: bool, at_ms: int) -> None:
        """The job is like this now."""
        if job.started_at is not None or job.status not in (Status.QUEUED, Status.STARTING):
            self.since.pop(job.id, None)
            self.over.pop(job.id, None)
        elif paused and job.status is Status.QUEUED:
            self.since.setdefault(job.id, at_ms)
        elif job.id in self.since:
            spans = self.over.setdefault(job.id, [])
            spans.append((self.since.pop(job.id), at_ms))
            self.over[job.id] = joined(spans)

    def spans(self, job_id: str, *, now_ms: int) -> list[Span]:
        """When it was paused, up to now."""
        since_ms = self.since.get(job_id)
        return [*self.over.get(job_id, ()), *([] if since_ms is None else [(since_ms, now_ms)])]


def joined(spans: list[Span]) -> list[Span]:
    """No more than are kept: the first ones as one, which is never less."""
    if len(spans) <= SPANS_MAX:
        return spans
    cut = len(spans) - SPANS_MAX
    return [(spans[0][0], spans[cut][1]), *spans[cut + 1 :]]


def covered_ms(spans: Iterable[Span], *, begin_ms: int, end_ms: int) -> int:
    """How much of that time lies in any of the spans."""
    total, reached = 0, begin_ms
    for start_ms, stop_ms in sorted(spans):
        from_ms, to_ms = max(start_ms, reached), min(stop_ms, end_ms)
        if to_ms > from_ms:
            total, reached = total + to_ms - from_ms, to_ms
    return total

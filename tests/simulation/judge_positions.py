"""I7 for readers: the position that a waiting job was told is the one that it had, a moment ago at the most.

The order is the auditor's, from records alone. Judged where nothing was wrong for a while, nothing was paused, and the
reader takes at once what it is sent: a late word may have been true when it was said. A higher one may be true: for a
minute the view holds places ahead for submissions that never came.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headgate_contracts import Event
from headgate_contracts.events import JobData, SchedulerCommitted
from tests.fixtures.audit import link_of
from tests.fixtures.audit_policies import PolicyHistory
from tests.fixtures.audit_queue import QueueAudit
from tests.simulation.evidence import Evidence, Finding, span_of
from tests.simulation.readers import Heard, Sent

WINDOW_S: Final = 2.0  # told at once after a change, at most four times a second
AHEAD_S: Final = 0.1  # the view holds a place before the log has its event
QUIET_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class _Moment:
    """From a record on: who stands where."""

    at_s: float
    places: dict[str, int]
    paused: bool


def positions_were_true(evidence: Evidence) -> Iterator[Finding]:
    """I7: a position that is told is one that the job had within the last moments."""
    told = [(heard, job, at_s, position) for heard in evidence.heard for job, at_s, position in _told(heard)]
    if not told:
        return
    moments = list(_moments(evidence))
    times = [moment.at_s for moment in moments]
    for heard, job, at_s, position in told:
        if heard.reader.slow_share or not _is_quiet(evidence, at_s):
            continue
        first, end = bisect_left(times, at_s - WINDOW_S), bisect_right(times, at_s + AHEAD_S)
        recent = moments[max(0, first - 1) : end]
        places = {moment.places.get(job) for moment in recent}
        had = sorted(place for place in places if place is not None)
        is_held_ahead = bool(had) and position > had[-1]
        if position not in places and not is_held_ahead and not any(moment.paused for moment in recent):
            yield Finding("I7", job, f"{heard.reader.name} is told #{position} at {at_s:.2f} s, and it was {had}")


def _told(heard: Heard) -> Iterator[tuple[str, float, int]]:
    for hearing in heard.hearings:
        for sent in hearing.sent:
            for job, queue in _queues(sent):
                if queue is not None:
                    yield job, sent.at_s, queue["position"]


def _queues(sent: Sent) -> Iterator[tuple[str, dict[str, Any] | None]]:
    if sent.kind == "position":
        yield sent.data["job_id"], sent.data["queue"]
    elif sent.kind == "snapshot":
        for job in sent.data.get("jobs", [sent.data]):
            yield job["id"], job["queue"]


def _moments(evidence: Evidence) -> Iterator[_Moment]:
    queue = QueueAudit(PolicyHistory(evidence.policy), lambda *_: None, lambda *_: True, lambda: None, strict=False)
    for record in evidence.records:
        queue.seq = record.seq
        match record.event:
            case Event(data=JobData()) as event:
                if (link := link_of(event)) is not None:
                    queue.read_link(Event(event.id, event.writer, event.time, link), record.at)
                queue.read_job(event, record.at)
            case Event(data=SchedulerCommitted()) as event:
                queue.read_link(event, record.at)
            case Event(data=act):
                queue.read_act(act, record.at)
            case _:
                pass
        order: Sequence[str] = queue.order()
        places = {job: number for number, job in enumerate(order, 1)}
        yield _Moment(evidence.at_s(record.at), places, paused=bool(queue.paused))


def _is_quiet(evidence: Evidence, at_s: float) -> bool:
    spans = [*map(span_of, evidence.plan.faults), *((rebuilt_s, rebuilt_s) for rebuilt_s in evidence.rebuilt_s)]
    return not any(began - AHEAD_S < at_s and at_s - QUIET_S < ended for began, ended in spans)

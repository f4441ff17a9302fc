"""I7: at the end the view holds what the log says, and nothing besides.

It reads the store's fields and none of the code that fills them. What must be there follows from the records alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, Final

from headgate_contracts.events import (
    JobCancelled,
    JobData,
    JobFailed,
    JobQueued,
    JobScheduled,
    JobStarted,
)
from headgate_contracts.vocabulary import Fault
from tests.simulation.evidence import ENDS, Evidence, Finding, Standing

EPOCH_DAY: Final = date(1970, 1, 1)
Held = dict[tuple[str, int], set[str]]  # user and day → jobs


def is_settled(view: Any, records: Sequence[Any]) -> bool:
    """Whether it has folded the log, and holds nothing for an event to come."""
    return view is not None and view.applied == len(records) and not (view.reservations or view.leases or view.waiting)


def view_is_what_the_log_says(evidence: Evidence) -> Iterator[Finding]:
    """I7."""
    if evidence.drained:
        for about, what in _differences(evidence, evidence.view):
            yield Finding("I7", about, what)


def _differences(evidence: Evidence, view: Any) -> Iterator[tuple[str, str]]:
    if view is None or view.applied != len(evidence.records):
        yield "the view", f"is at {view and view.applied} of {len(evidence.records)} records"
        return
    yield from _left_over(view)
    yield from _jobs(evidence, view)
    yield from _orders(evidence, view)
    days = _days(evidence)
    gone = {job for job, data in evidence.last.items() if data.status.value in ENDS} - view.rows.keys()
    for key, jobs in _differing({key: jobs - gone for key, jobs in days.items()}, view.quota):
        yield key[0], f"on day {key[1]}: {', '.join(sorted(jobs))} of one, the log or the view, alone"
    for key, jobs in days.items():
        if view.used[key] != len(jobs & gone):
            yield key[0], f"on day {key[1]}: {view.used[key]} of jobs that are gone, and the log has {len(jobs & gone)}"


def _left_over(view: Any) -> Iterator[tuple[str, str]]:
    for job in view.reservations:
        yield job, "a place or a day is still held for it, and no event has come"
    for lease in (*view.leases, *view.waiting):
        yield lease, "its slots are still held or waited for, and everybody has gone"


def _jobs(evidence: Evidence, view: Any) -> Iterator[tuple[str, str]]:
    for job, data in evidence.last.items():
        row = view.rows.get(job)
        if row is None and data.status.value not in ENDS:
            yield job, f"is {data.status.value} and not in the view"
        elif row is not None and row.status != data.status.value:
            yield job, f"is {row.status} in the view and {data.status.value} in the log"
    queued = {job for job, data in evidence.last.items() if data.status.value == "queued"}
    for job in sorted(queued.symmetric_difference(view.spots)):
        yield job, "is in the queue of one, the log or the view, alone"


def _orders(evidence: Evidence, view: Any) -> Iterator[tuple[str, str]]:
    standing = Standing()
    for record in evidence.records:
        standing.hear(record)
    for scope in sorted(standing.paused.symmetric_difference(view.paused)):
        yield scope, "is paused in one, the log or the view, alone"
    for group, limit in standing.limits.items():
        if view.limits.get(group) != limit:
            yield group, f"an operator set {limit}, and the view has {view.limits.get(group)}"


def _days(evidence: Evidence) -> Held:
    """Who has a place of which day: the last that was given, unless it was given back."""
    days: dict[str, tuple[str, int]] = {}
    started = set[str]()
    for data in evidence.datas:
        if isinstance(data, JobQueued | JobScheduled) and data.quota_day is not None:
            days[data.job_id] = (data.user_id, (data.quota_day - EPOCH_DAY).days)
        if isinstance(data, JobStarted):
            started.add(data.job_id)
        if _gives_back(data, started=data.job_id in started):
            days.pop(data.job_id, None)
    held: Held = defaultdict(set)
    for job, key in days.items():
        held[key].add(job)
    return held


def _gives_back(data: JobData, *, started: bool) -> bool:
    match data:
        case JobCancelled():
            return not started
        case JobFailed():
            return data.fault is Fault.SYSTEM
        case _:
            return False


def _differing(log: Held, view: Held) -> Iterator[tuple[tuple[str, int], set[str]]]:
    for key in sorted({*log, *view}):
        differing = log.get(key, set()) ^ view.get(key, set())
        if differing:
            yield key, differing

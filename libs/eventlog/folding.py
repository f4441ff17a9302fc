"""From a job's records to the job. Refuses a record that cannot be read: a reader that must not halt steps over it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from headgate_contracts import Event, IllegalTransition, Job, JobEvent, UnknownEvent, advance, step_over
from libs.eventlog.values import Record


def job_in(records: Iterable[Record], *, onto: Job | None = None) -> Job | None:
    """The job that these records add up to; null where there is none."""
    job = onto
    for record in records:
        match record.event:
            case Event() as event:
                job = advance(job, cast("JobEvent", event), seq=record.seq, at=record.at)
            case UnknownEvent() as event:
                job = step_over(job, event, seq=record.seq, at=record.at)
            case unreadable:
                raise IllegalTransition("event", f"record {record.seq} cannot be read: {unreadable.reason}")
    return job

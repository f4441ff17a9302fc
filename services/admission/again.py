"""From where a job that has ended can be run again, as pure functions of its records.

A stage can be run again on the workspace that it began with, the last time that it ran. Its first stage begins with
nothing, in its first cycle: so a job can always be run again from the beginning. Owns no decision about what is still
stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate_contracts import Event, Job
from headgate_contracts.events import JobStage
from libs.eventlog import Record
from libs.eventlog.decoding import job_in


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """What is finished before the stage, and the workspace that holds it; null where those stages left none."""

    stage: str
    finished: tuple[str, ...] = ()
    checkpoint: str | None = None


def starting_points(records: Iterable[Record]) -> dict[str, StartingPoint]:
    """By stage, in the job's order: the first one, and each that ran in this job."""
    job: Job | None = None
    found: dict[str, StartingPoint] = {}
    for record in records:
        job = job_in((record,), onto=job)
        data = record.event.data if isinstance(record.event, Event) else None
        if job is not None and isinstance(data, JobStage) and not data.restored:
            found[data.stage] = _point(job, data.stage)
    names = () if job is None else job.stage_names
    if names:
        found[names[0]] = StartingPoint(names[0])
    return {name: found[name] for name in names if name in found}


def _point(job: Job, stage: str) -> StartingPoint:
    names = job.stage_names
    return StartingPoint(stage, names[: names.index(stage)], job.checkpoint)

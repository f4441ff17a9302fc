"""How a job that has ended is submitted again: with the work that its finished stages left, or from a named stage.

The new job is made of the same submission and has its own copy of the input, or another input. A phase is retried with
all phases after it, as a workflow of their own. It is submitted like any other: it takes a place of the day, or waits
for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headgate_contracts import Event, Job
from headgate_contracts.events import JobStage
from headgate_contracts.shown import ShownStart, ShownStarts
from headgate_contracts.titles import title_in
from headgate_contracts.tokens import input_name
from libs.eventlog import Record
from libs.eventlog.decoding import job_in
from libs.eventlog.ports import EventLog, Inputs, Objects, Titles
from services.admission.domain import (
    NO_WORK,
    LeftWork,
    NewJob,
    may_be_retried,
    retried_job,
)
from services.admission.limits import Asker, NotAllowed, canonical, retry_refusal
from services.admission.outcomes import InputGone, NoStart, NotOver, RetryOutcome
from services.admission.phases import phases_from
from services.admission.submitting import Submitting
from services.admission.workflows import retried_phases

NEVER_RAN: Final = "it did not run in this job"
GONE: Final = "the workspace that it began with is no longer kept"
GOES_ON: Final = "the job has not ended"


@dataclass(frozen=True, slots=True)
class Retrying:
    """The use case, with what it needs."""

    submitting: Submitting
    log: EventLog
    inputs: Inputs
    titles: Titles
    workspaces: Objects

    async def retry(
        self,
        job: Job,
        *,
        new_id: str,
        asker: Asker,
        start: str | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> RetryOutcome:
        """Submit the job again. `new_id` is the new job's, or the new workflow's where the job is a phase. `start`: a
        stage, `content`: the input instead of the first one."""
        if not may_be_retried(job, start=start):
            return NotOver(job, with_stage=start is not None)
        jobs = await phases_from(self.log, job)
        if (refusal := retry_refusal(jobs, content, asker)) is not None:
            return refusal
        first, *later = await asyncio.gather(*map(self._input, jobs))
        inputs = [first if content is None else canonical(content), *later]
        kept = [(each, found) for each, found in zip(jobs, inputs, strict=True) if found is not None]
        if len(kept) < len(jobs):
            return InputGone(job)
        work = await self._left_work(job) if start is None else await self._work_before(job, start)
        if not isinstance(work, LeftWork):
            return work
        new: Sequence[NewJob] = [retried_job(job, kept[0][1], job_id=new_id, asker=asker, work=work)]
        if job.submission.workflow is not None:
            new = retried_phases(kept, workflow_id=new_id, asker=asker, work=work)
        titles = await self.titles.of([each.id for each in jobs])
        if first is not None and titles.get(job.id) == title_in(first):
            titles.pop(job.id)  # its input gave it, and the input may be another now
        return await self.submitting.submit(*_titled(new, [titles.get(each.id) for each in jobs]))

    async def starts(self, job: Job) -> ShownStarts:
        """From where the job can be run again, and why not from elsewhere."""
        points = await self._points(job)
        kept = await asyncio.gather(*(self._why_not(job, points.get(each.name)) for each in job.stages))
        shown = (
            ShownStart(stage=stage.name, title=stage.title, can_start=not why, why_not=why)
            for stage, why in zip(job.stages, kept, strict=True)
        )
        return ShownStarts(job_id=job.id, stages=tuple(shown))

    async def _work_before(self, job: Job, start: str) -> LeftWork | NotAllowed | NoStart:
        if start not in job.stage_names:
            names = ", ".join(job.stage_names) or "none, as no worker has had it"
            return NotAllowed("from", f"{start} is no stage of the job; its stages: {names}")
        points = await self._points(job)
        point = points.get(start)
        why = await self._why_not(job, point)
        if why or point is None:
            possible = [name for name, each in points.items() if not await self._why_not(job, each)]
            return NoStart(start, why, tuple(possible))
        return LeftWork(point.finished, point.checkpoint, start)

    async def _points(self, job: Job) -> dict[str, StartingPoint]:
        return starting_points(await self.log.read(job.id))

    async def _why_not(self, job: Job, point: StartingPoint | None) -> str:
        """Nothing where it can be."""
        if not job.status.is_end:
            return GOES_ON
        if point is None:
            return NEVER_RAN
        return "" if await self._is_kept(point.checkpoint) else GONE

    async def _input(self, job: Job) -> bytes | None:
        return await self.inputs.get(input_name(job.id, job.submission.input_digest))

    async def _left_work(self, job: Job) -> LeftWork:
        """What the finished stages left, as far as it can be gone on from."""
        return LeftWork(job.finished_stages, job.checkpoint) if await self._is_kept(job.checkpoint) else NO_WORK

    async def _is_kept(self, checkpoint: str | None) -> bool:
        """Some stages leave nothing: then nothing can be gone."""
        return checkpoint is None or await self.workspaces.find(checkpoint) is not None


def _titled(new: Sequence[NewJob], titles: Sequence[str | None]) -> list[NewJob]:
    """Each as the one was called that it is made of, or as its input says."""
    return [replace(job, title=title or title_in(job.input)) for job, title in zip(new, titles, strict=True)]


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

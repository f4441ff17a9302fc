"""How a job that failed or was cancelled is submitted again, with the work that its finished stages left.

The new job is made of the same submission and has its own copy of the input. A phase is retried with all phases after
it, as a workflow of their own. It is submitted like any other: it takes a place of the day, or waits for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headgate_contracts import Job
from headgate_contracts.titles import title_in
from headgate_contracts.tokens import input_name
from services.admission.domain import Asker, NewJob, may_be_retried, pool_refusal, retried_job
from services.admission.outcomes import InputGone, NotOver, RetryOutcome
from services.admission.phases import phases_from
from services.admission.ports import Inputs, Log, Titles, Workspaces
from services.admission.submitting import Submitting
from services.admission.workflows import retried_phases


@dataclass(frozen=True, slots=True)
class Retrying:
    """The use case, with what it needs."""

    submitting: Submitting
    log: Log
    inputs: Inputs
    titles: Titles
    workspaces: Workspaces

    async def retry(self, job: Job, *, new_id: str, asker: Asker) -> RetryOutcome:
        """Submit the job again. `new_id` is the new job's, or the new workflow's where the job is a phase."""
        if not may_be_retried(job):
            return NotOver(job)
        jobs = await phases_from(self.log, job)
        for each in jobs:
            if (refusal := pool_refusal(each.submission.pool, asker.policy)) is not None:
                return refusal
        inputs = await asyncio.gather(*map(self._input, jobs))
        kept = [(each, content) for each, content in zip(jobs, inputs, strict=True) if content is not None]
        titles = await self.titles.of([each.id for each in jobs])
        if len(kept) < len(jobs):
            return InputGone(job)
        with_work = await self._left_work(job)
        if job.submission.workflow is None:
            [(_, content)] = kept
            new = (retried_job(job, content, job_id=new_id, asker=asker, with_work=with_work),)
        else:
            new = retried_phases(kept, workflow_id=new_id, asker=asker, with_work=with_work)
        return await self.submitting.submit(*_titled(new, [titles.get(each.id) for each in jobs]))

    async def _input(self, job: Job) -> bytes | None:
        return await self.inputs.get(input_name(job.id, job.submission.input_digest))

    async def _left_work(self, job: Job) -> bool:
        """Whether what the finished stages left can be gone on from. Some leave nothing: then nothing can be gone."""
        return job.checkpoint is None or await self.workspaces.find(job.checkpoint) is not None


def _titled(new: Sequence[NewJob], titles: Sequence[str | None]) -> list[NewJob]:
    """Each as the one was called that it is made of, or as its input says."""
    return [replace(job, title=title or title_in(job.input)) for job, title in zip(new, titles, strict=True)]

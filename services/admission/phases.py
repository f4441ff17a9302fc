"""The jobs of one workflow, as the log has them. Their ids follow from the workflow's."""

import asyncio

from headgate_contracts import Job
from headgate_contracts.tokens import phase_job_id
from libs.eventlog import Unreadable
from libs.eventlog.decoding import job_in
from libs.eventlog.ports import EventLog


async def job_in_log(log: EventLog, job_id: str) -> Job | None:
    """The job as the log's leader has it now; null where there is none, or its first events have gone by age."""
    records = await log.read(job_id)
    first = records[0].event if records else None
    gone = first is not None and not isinstance(first, Unreadable) and first.sequence != 1
    return None if gone else job_in(records)


async def workflow_phases(log: EventLog, workflow_id: str) -> tuple[Job, ...]:
    """All phases in order; none where there is no such workflow."""
    first = await job_in_log(log, phase_job_id(workflow_id, 1))
    if first is None:
        return ()
    return (first, *await _phases(log, workflow_id, after=1, until=first.submission.phases or 1))


async def phases_from(log: EventLog, job: Job) -> tuple[Job, ...]:
    """The job and all phases of its workflow that come after it."""
    asked = job.submission
    if asked.workflow is None or asked.phase is None:
        return (job,)
    return (job, *await _phases(log, asked.workflow, after=asked.phase, until=asked.phases or asked.phase))


async def _phases(log: EventLog, workflow_id: str, *, after: int, until: int) -> tuple[Job, ...]:
    """A workflow is in the log as a whole or not at all; of one whose events have expired some may be missing."""
    ids = (phase_job_id(workflow_id, number) for number in range(after + 1, until + 1))
    found = await asyncio.gather(*(job_in_log(log, job_id) for job_id in ids))
    return tuple(job for job in found if job is not None)

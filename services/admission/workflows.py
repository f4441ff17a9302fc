"""Workflows, as pure functions: the phases that were asked for, those that are retried, and how the whole stands.

A workflow is no thing of its own in the log: it is its phases, whose ids follow from the workflow's.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from headgate_contracts import Job, Status
from headgate_contracts.asked import SubmitWorkflow
from headgate_contracts.tokens import phase_job_id
from services.admission.domain import (
    NO_WORK,
    LeftWork,
    NewJob,
    job_of,
    retried_job,
)
from services.admission.limits import Asker, NotAllowed, submission_refusal

NewPhases = tuple[NewJob, ...]


def new_workflow(body: SubmitWorkflow, *, workflow_id: str, asker: Asker) -> NewPhases | NotAllowed:
    """Every phase that was asked for, in order, or the first thing that is not allowed about them."""
    refusal = submission_refusal(body, asker)
    if refusal is not None:
        return refusal
    count = len(body.phases)
    return tuple(
        job_of(
            body,
            order,
            job_id=phase_job_id(workflow_id, number),
            asker=asker,
            run_at=body.run_at if number == 1 else None,  # the others wait for the one before them anyway
            **_seat(workflow_id, number, count),
        )
        for number, order in enumerate(body.phases, 1)
    )


def retried_phases(
    jobs: Sequence[tuple[Job, bytes]], *, workflow_id: str, asker: Asker, work: LeftWork
) -> tuple[NewJob, ...]:
    """A phase and all that come after it, as a workflow of their own. Only the first of them can have left work."""
    return tuple(
        retried_job(
            job,
            content,
            job_id=phase_job_id(workflow_id, number),
            asker=asker,
            work=work if number == 1 else NO_WORK,
            **_seat(workflow_id, number, len(jobs)),
        )
        for number, (job, content) in enumerate(jobs, 1)
    )


def workflow_status(phases: Iterable[Status]) -> Status:
    """That of the first phase which is not ready: the ones after it can be no further."""
    return next((status for status in phases if status is not Status.READY), Status.READY)


def _seat(workflow_id: str, number: int, count: int) -> dict[str, Any]:
    return {"workflow": workflow_id, "phase": number, "phases": count}

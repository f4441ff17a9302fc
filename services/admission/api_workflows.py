"""HTTP: workflows. Each is its phases, in order; it is taken in, shown and ended as a whole."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from headgate_contracts import Job
from headgate_contracts.asked import CancelJob, SubmitWorkflow
from headgate_contracts.shown import ShownJob, ShownWorkflow
from headgate_contracts.tokens import phase_job_id
from libs.runtime.auth import Principal
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Changer, Edge, JobIdPath, Reader, Submitter, route_group
from services.admission.api_jobs import DryRun, IdempotencyKey, act_of
from services.admission.intake import Intake, key_of
from services.admission.workflows import workflow_status


def workflow_submit_routes(edge: Edge) -> APIRouter:
    """Workflows come in."""
    router = route_group(edge.counts.route())
    intake = Intake(edge)

    @router.post("/workflows", status_code=202, response_model=ShownWorkflow, responses={200: {"model": ShownWorkflow}})
    async def submit_workflow(
        body: SubmitWorkflow, who: Submitter, idempotency_key: IdempotencyKey = None, *, dry_run: DryRun = False
    ) -> JSONResponse:
        """Submits several jobs as phases of a workflow: all of them or none. A phase is queued once the one before it
        is ready."""
        key = key_of(idempotency_key)
        if dry_run:
            return _answer(await intake.workflow_preview(body, who, key))
        accepted = await intake.workflow(body, who, key)
        located = {"Location": f"/v1/workflows/{accepted.job.submission.workflow}"}
        shown = await edge.reading.taken(accepted.jobs, titles=accepted.titles)
        return _answer(shown, status=202, headers=located)

    return router


def workflow_routes(edge: Edge) -> APIRouter:
    """Those that are in."""
    router = route_group()

    @router.get("/workflows/{workflow_id}", response_model=ShownWorkflow)
    async def get_workflow(workflow_id: JobIdPath, who: Reader) -> JSONResponse:
        """The phases of the workflow, in order, and where each stands."""
        return await _shown(edge, await _own(edge, workflow_id, who), who)

    @router.post("/workflows/{workflow_id}/cancel", status_code=202, response_model=ShownWorkflow)
    async def cancel_workflow(workflow_id: JobIdPath, who: Changer, body: CancelJob | None = None) -> JSONResponse:
        """Cancels all phases that have not ended."""
        phases = await _own(edge, workflow_id, who)
        outcome = await edge.changing.cancel(*phases, act=act_of(who, body.reason if body else ""))
        return await _shown(edge, (await edge.changed(outcome)).jobs, who, status=202)

    return router


async def _own(edge: Edge, workflow_id: str, who: Principal) -> tuple[Job, ...]:
    """All phases of one of the asker's workflows; another's does not exist."""
    first = await edge.reading.find(phase_job_id(workflow_id, 1))
    if first is None or not who.may_see(first):
        raise Refused(problems.no_workflow(workflow_id))
    numbers = range(2, (first.submission.phases or 1) + 1)
    later = await asyncio.gather(*(edge.reading.find(phase_job_id(workflow_id, number)) for number in numbers))
    return (first, *(job for job in later if job is not None))


async def _shown(edge: Edge, phases: Sequence[Job], who: Principal, *, status: int = 200) -> JSONResponse:
    return _answer(await edge.reading.shown(phases, owner=who.owns(phases[0])), status=status)


def _answer(phases: Sequence[ShownJob], *, status: int = 200, headers: dict[str, str] | None = None) -> JSONResponse:
    first, next_status = phases[0], workflow_status([job.status for job in phases])
    workflow = ShownWorkflow(
        id=first.workflow or "",
        project_id=first.project_id,
        user_id=first.user_id,
        priority=next((job.priority for job in phases if not job.status.is_end), first.priority),
        status=next_status,
        phases=tuple(phases),
    )
    return JSONResponse(workflow.model_dump(mode="json"), status, headers=headers)

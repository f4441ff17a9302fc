"""HTTP: the routes that take jobs in and change them, one at a time."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import JSONResponse
from pydantic import Field

from headgate_contracts.asked import KEY, AnswerQuestion, CancelJob, ChangePriority, MoveJob, RetryJob, SubmitJob
from headgate_contracts.shown import ShownJob, ShownStarts
from libs.runtime.auth import OPS, Principal
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Changer, Edge, JobIdPath, Operator, SeenTags, Submitter, route_group
from services.admission.events import Actor
from services.admission.intake import Intake, key_of
from services.admission.limits import NotAllowed, priority_refusal

IdempotencyKey = Annotated[
    Annotated[str, Field(json_schema_extra={"pattern": KEY})] | None,  # said here, and checked with a reason: `key_of`
    Header(alias="Idempotency-Key"),
]
DryRun = Annotated[bool, Query(description="what would come of it; nothing is submitted")]


def submit_routes(edge: Edge) -> APIRouter:
    """Jobs come in."""
    router = route_group(edge.counts.route())
    intake = Intake(edge)

    @router.post("/jobs", status_code=202, response_model=ShownJob, responses={200: {"model": ShownJob}})
    async def submit_job(
        body: SubmitJob, who: Submitter, idempotency_key: IdempotencyKey = None, *, dry_run: DryRun = False
    ) -> JSONResponse:
        """Submits a job, or with `dry_run` says what would become of it. The same Idempotency-Key with the same job
        gives the first one back."""
        key = key_of(idempotency_key)
        if dry_run:
            preview = await intake.job_preview(body, who, key)
            return JSONResponse(preview.model_dump(mode="json"))
        accepted = await intake.job(body, who, key)
        return await edge.located(accepted.job, who, titles=accepted.titles)

    @router.post("/jobs/{job_id}/retry", status_code=202, response_model=ShownJob)
    async def retry_job(
        job_id: JobIdPath, who: Submitter, body: RetryJob | None = None, idempotency_key: IdempotencyKey = None
    ) -> JSONResponse:
        """Runs a failed or cancelled job again, from the work that its finished stages left. With `from`, any job that
        has ended is run again from that stage, on the workspace that the stage began with. It becomes a new job."""
        job = await edge.own(job_id, who)
        key = key_of(idempotency_key, "retry")
        return await edge.located(await intake.retry(job, who, key, body or RetryJob()), who)

    @router.get("/jobs/{job_id}/retry", response_model=ShownStarts)
    async def list_starts(job_id: JobIdPath, who: Submitter) -> ShownStarts:
        """The stages from which the job can be run again now, and why not from the others."""
        return await edge.retrying.starts(await edge.own(job_id, who))

    return router


def life_routes(edge: Edge) -> APIRouter:
    """A job is ended, or may go on."""
    router = route_group()

    @router.post("/jobs/{job_id}/cancel", status_code=202, response_model=ShownJob)
    async def cancel_job(job_id: JobIdPath, who: Changer, body: CancelJob | None = None) -> JSONResponse:
        """Cancels the job. A running one ends once its worker has noticed."""
        job = await edge.own(job_id, who)
        outcome = await edge.changing.cancel(job, act=act_of(who, body.reason if body else ""))
        return await edge.answer_change(outcome, who, status=202)

    @router.post("/jobs/{job_id}/confirm", status_code=202, response_model=ShownJob)
    async def confirm_job(job_id: JobIdPath, who: Submitter) -> JSONResponse:
        """Lets a job that asks "Continue?" go on for another batch of iterations."""
        job = await edge.own(job_id, who)
        outcome = await edge.changing.confirm(job, by=who.user)
        return await edge.answer_change(outcome, who, status=202)

    @router.post("/jobs/{job_id}/answer", status_code=202, response_model=ShownJob)
    async def answer_job(job_id: JobIdPath, who: Submitter, body: AnswerQuestion) -> JSONResponse:
        """Answers the job's open question. "Continue?" is answered by `yes` or `no`."""
        job = await edge.own(job_id, who)
        outcome = await edge.answering.answer(job, body, by=who.user)
        if isinstance(outcome, NotAllowed):
            raise Refused(problems.invalid(outcome))
        return await edge.answer_change(outcome, who, status=202)

    return router


def place_routes(edge: Edge) -> APIRouter:
    """A job gets another class or place."""
    router = route_group()

    @router.patch("/jobs/{job_id}", response_model=ShownJob)
    async def prioritize_job(job_id: JobIdPath, who: Changer, body: ChangePriority, expected: SeenTags) -> JSONResponse:
        """Changes the priority of a job that has not started, and of its workflow's phases that have not."""
        job = await edge.own(job_id, who)
        refusal = None if who.may(OPS) else priority_refusal(body.priority, who.tier, edge.policy)
        if refusal is not None:
            raise Refused(problems.invalid(refusal))
        act = act_of(who, body.reason)
        outcome = await edge.changing.prioritize(job, body.priority, act=act, expected=expected)
        return await edge.answer_change(outcome, who)

    @router.post("/queue/move", response_model=ShownJob)
    async def move_job(who: Operator, body: MoveJob) -> JSONResponse:
        """Puts a queued job right before or right after another one, in that one's class."""
        if body.job_id in (body.before, body.after):
            field = "before" if body.before else "after"
            raise Refused(problems.invalid(NotAllowed(field, "a job cannot stand next to itself: name another one")))
        job = await edge.own(body.job_id, who)
        act = act_of(who, body.reason)
        outcome = await edge.changing.move(job, before=body.before, after=body.after, act=act)
        return await edge.answer_change(outcome, who)

    return router


def act_of(who: Principal, reason: str) -> Actor:
    """Who does it, as what, and why."""
    return Actor(who.user, reason, operator=who.may(OPS))

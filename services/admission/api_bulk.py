"""HTTP: the routes that do one thing to many jobs. Each has its own outcome: one that is refused spoils no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from headgate_contracts import ContractError, Job, Status
from headgate_contracts.asked import CancelJobs, SubmitBatch, SubmitJob
from headgate_contracts.shown import ItemOutcome, Outcomes, Refusal
from headgate_contracts.tokens import foreign_token
from libs.foundation.ground import LATER
from libs.runtime.auth import Principal
from libs.runtime.problems import Problem, Refused, known_query, problem_for, problem_of_item
from services.admission import problems
from services.admission.api import Edge, Writer
from services.admission.api_jobs import act_of
from services.admission.intake import Intake, key_of
from services.admission.outcomes import Accepted
from services.admission.refusals import AWAY

AT_ONCE: Final = 16  # cancellations of one request under way; the log syncs its disk once for all of them


def bulk_routes(edge: Edge) -> APIRouter:
    router = APIRouter(prefix="/v1", dependencies=[Depends(known_query)])

    @router.post("/jobs/batch", status_code=207, response_model=Outcomes)
    async def submit_all(
        body: SubmitBatch, who: Writer, idempotency_key: Annotated[str | None, Header(alias="Idempotency-Key")] = None
    ) -> JSONResponse:
        """In order, each by the code of a single one, by the user's rate too: of more than may be submitted in a minute
        the later ones are 429, each with `retry_after_s`; send those again then, under the same Idempotency-Key and in
        their old places. With a server away the rest is not tried. There is no dry run of many."""
        key_of(idempotency_key)  # a bad one is the whole request's fault
        outcomes: list[ItemOutcome] = []
        away: Problem | None = None
        for number, item in enumerate(body.jobs):
            try:
                outcome = _refused(away) if away else await _submit_one(edge, item, who, idempotency_key, number)
            except AWAY as fault:
                away = problem_for(fault, LATER)
                outcome = _refused(away)
            outcomes.append(outcome)
        return _outcomes(outcomes)

    @router.post("/jobs/cancel", status_code=207, response_model=Outcomes)
    async def cancel_all(body: CancelJobs, who: Writer) -> JSONResponse:
        """Each of one's own jobs that is meant and has not ended."""
        if body.project is not None and not who.may_use(foreign_token(body.project)):
            raise Refused(problems.other_project(body.project))
        jobs = await edge.changing.unfinished(who.user, wanted=_meant(body, who))
        turn = asyncio.Semaphore(AT_ONCE)

        async def in_turn(job: Job) -> ItemOutcome:
            async with turn:
                return await _cancel_one(edge, job, who, body.reason)

        return _outcomes(await asyncio.gather(*map(in_turn, jobs)))

    return router


async def _submit_one(edge: Edge, item: dict[str, Any], who: Principal, header: str | None, number: int) -> ItemOutcome:
    try:
        job = await Intake(edge).job(SubmitJob.model_validate(item), who, key_of(header, number))
    except (ValidationError, Refused, ContractError) as fault:
        problem = problem_of_item(fault) if isinstance(fault, ValidationError) else problem_for(fault, {})
        await edge.refusals.count(problem)
        return _refused(problem)
    return ItemOutcome(status=202, job=await edge.taken(job, who))


async def _cancel_one(edge: Edge, job: Job, who: Principal, reason: str) -> ItemOutcome:
    try:
        outcome = await edge.changing.cancel(job, act=act_of(who, reason))
    except AWAY as fault:
        return _refused(problem_for(fault, LATER))
    if isinstance(outcome, Accepted) or outcome.job.status is Status.CANCELLED:  # with the phase before it
        return ItemOutcome(status=202, job=await edge.show(outcome.job, who))
    return _refused(problems.not_changed(outcome))


def _meant(body: CancelJobs, who: Principal) -> Callable[[Job], bool]:
    project = body.project and foreign_token(body.project)
    name, _, value = (body.label or "").partition("=")

    def meant(job: Job) -> bool:
        asked = job.submission
        return who.may_use(job.project_id) and (
            (project is not None and job.project_id == project)
            or (body.workflow is not None and asked.workflow == body.workflow)
            or (body.label is not None and asked.labels.get(name) == value)
        )

    return meant


def _refused(problem: Problem) -> ItemOutcome:
    when = {} if problem.retry_after_s is None else {"retry_after_s": problem.retry_after_s}  # an item has no headers
    return ItemOutcome(status=problem.status, problem=Refusal.model_validate(problem.body() | when))


def _outcomes(outcomes: list[ItemOutcome]) -> JSONResponse:
    return JSONResponse(Outcomes(results=tuple(outcomes)).model_dump(mode="json"), 207)

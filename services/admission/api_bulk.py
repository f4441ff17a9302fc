"""HTTP: the routes that do one thing to many jobs. Each has its own outcome: one that is refused spoils no other."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from headgate_contracts import ContractError, Job, Status
from headgate_contracts.asked import CancelJobs, SubmitBatch, SubmitJob
from headgate_contracts.shown import ItemOutcome, Outcomes, Refusal, ShownJob
from headgate_contracts.tokens import foreign_token
from libs.foundation.public import LATER
from libs.runtime.auth import Principal
from libs.runtime.faults import Refused, problem_for, problem_of_item
from libs.runtime.problems import Problem
from services.admission import problems
from services.admission.api import Edge, Submitter, route_group
from services.admission.api_jobs import IdempotencyKey, act_of
from services.admission.intake import Intake, key_of
from services.admission.outcomes import Accepted, Ended
from services.admission.submission_counts import AWAY

AT_ONCE: Final = 16  # cancellations of one request under way; the log syncs its disk once for all of them


def bulk_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.post("/jobs/batch", status_code=207, response_model=Outcomes)
    async def submit_jobs(body: SubmitBatch, who: Submitter, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        """Submits up to 100 jobs in order, each as if it came alone, and counts each against the user's rate. Items
        above the rate are 429, each with `retry_after_s`: send the whole batch again after that time, under the same
        Idempotency-Key and in the same order. If a server is away, the remaining items are not tried. There is no dry
        run of a batch."""
        key_of(idempotency_key)  # a bad one is the whole request's fault
        return _outcomes(await _submit_each(edge, body.jobs, who, idempotency_key))

    @router.post("/jobs/cancel", status_code=207, response_model=Outcomes)
    async def cancel_jobs(body: CancelJobs, who: Submitter) -> JSONResponse:
        """Cancels the user's own unfinished jobs of a project, a workflow or a label. Jobs above the rate at which a
        user may change jobs are 429, each with `retry_after_s`: send the request again after that time."""
        jobs = await edge.changing.unfinished(who.user, wanted=_meant(body))
        return _outcomes(await _cancel_each(edge, jobs, who, body.reason))

    return router


async def _submit_each(
    edge: Edge, items: Iterable[dict[str, Any]], who: Principal, header: str | None
) -> list[ItemOutcome]:
    outcomes: list[ItemOutcome] = []
    away: Problem | None = None
    for number, item in enumerate(items):
        began_s = time.perf_counter()
        try:
            end = away or await _submit_one(edge, item, who, header, number)
        except AWAY as fault:
            end = away = problem_for(fault, LATER)
        outcomes.append(await _counted(edge, end, began_s, who))
    return outcomes


async def _submit_one(
    edge: Edge, item: dict[str, Any], who: Principal, header: str | None, number: int
) -> ShownJob | Problem:
    try:
        accepted = await Intake(edge).job(SubmitJob.model_validate(item), who, key_of(header, number))
    except (ValidationError, Refused, ContractError) as fault:
        return problem_of_item(fault) if isinstance(fault, ValidationError) else problem_for(fault, {})
    return await edge.taken(accepted.job, who, titles=accepted.titles)


async def _counted(edge: Edge, end: ShownJob | Problem, began_s: float, who: Principal) -> ItemOutcome:
    if isinstance(end, Problem):
        await edge.counts.refused(end, began_s, who.user)
        return _refused(end)
    edge.counts.took(202, began_s)
    return ItemOutcome(status=202, job=end)


async def _cancel_each(edge: Edge, jobs: Iterable[Job], who: Principal, reason: str) -> list[ItemOutcome]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def in_turn(job: Job) -> Job | Problem:
        async with turn:
            return await _cancel_one(edge, job, who, reason)

    ends = await asyncio.gather(*map(in_turn, jobs))
    cancelled = [end for end in ends if isinstance(end, Job)]
    await edge.folded(max((job.seq for job in cancelled), default=0))
    shown = iter(await edge.reading.taken(cancelled))
    return [ItemOutcome(status=202, job=next(shown)) if isinstance(end, Job) else _refused(end) for end in ends]


async def _cancel_one(edge: Edge, job: Job, who: Principal, reason: str) -> Job | Problem:
    try:
        outcome = await edge.changing.cancel(job, act=act_of(who, reason))
    except AWAY as fault:
        return problem_for(fault, LATER)
    match outcome:
        case Accepted() | Ended(Job(status=Status.CANCELLED)):  # ended with the phase before it
            return outcome.job
        case refusal:
            return problems.not_changed(refusal)


def _meant(body: CancelJobs) -> Callable[[Job], bool]:
    project = body.project and foreign_token(body.project)
    name, _, value = (body.label or "").partition("=")

    def meant(job: Job) -> bool:
        asked = job.submission
        return (
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

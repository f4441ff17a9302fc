"""The HTTP edge of admission: parse, call a use case, turn its outcome into an answer. No decision is made here."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.responses import JSONResponse

from headgate_contracts import Job
from headgate_contracts.asked import CancelJob, SubmitJob
from headgate_contracts.envelope import utc
from headgate_contracts.shown import ShownJob
from headgate_contracts.tokens import job_id_for_key
from libs.forecast.shown import shown_job
from libs.forecast.standing import queue_part, waiting_on
from libs.policy import Policy
from libs.runtime.auth import Principal, principal
from libs.runtime.clock import Clock
from libs.runtime.problems import Problem, Refused, known_query
from libs.runtime.telemetry import Telemetry, job_trace, traceparent
from services.admission.domain import NotAllowed, day_of, new_job
from services.admission.handlers import (
    Accepted,
    Admission,
    Ended,
    KeyReused,
    NoDayLeft,
    NotAsked,
    OverShare,
    SubmitOutcome,
    SystemBusy,
)
from services.admission.ports import Results

READ: Final = "jobs:read"
WRITE: Final = "jobs:write"
OPS: Final = "ops"
KEY: Final = re.compile(r'"?([!-~]{1,255}?)"?')  # the draft quotes it, most clients do not
JobIdPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
Reader = Annotated[Principal, Depends(principal(scope=READ))]
Writer = Annotated[Principal, Depends(principal(scope=WRITE))]


@dataclass(frozen=True, slots=True)
class Edge:
    """What the routes share."""

    admission: Admission
    results: Results
    policy: Policy
    clock: Clock
    telemetry: Telemetry
    new_id: Callable[[], str]

    async def submit(self, body: SubmitJob, who: Principal, key: str | None) -> tuple[Job, bool]:
        """The job, and whether it was there before; raises what the client is to be told instead."""
        started_ns = time.time_ns()
        job_id = self.new_id() if key is None else job_id_for_key(who.user, _key(key))
        now = utc(self.clock.now_ms())
        new = new_job(body, job_id=job_id, user_id=who.user, tier=who.tier, policy=self.policy, now=now)
        if isinstance(new, NotAllowed):
            raise Refused(_invalid(new))
        if not who.may_use(new.project_id):
            raise Refused(_other_project(body.project_id))
        outcome = await self.admission.submit(new, traceparent=traceparent(job_trace(job_id).root))
        match outcome:
            case Accepted(job, again):
                if not again:
                    self.telemetry.emit_root("accept", job.id, started_ns=started_ns)
                return job, again
            case refusal:
                raise Refused(_refusal(refusal))

    async def own(self, job_id: str, who: Principal) -> Job:
        """A job of the asker's; another's does not exist."""
        job = await self.admission.find(job_id)
        if job is None or not (who.may(OPS) or (job.user_id == who.user and who.may_use(job.project_id))):
            raise Refused(_not_found(job_id))
        return job

    async def show(self, job: Job) -> ShownJob:
        standing = await self.admission.standing(job)
        return shown_job(
            job,
            policy=self.policy,
            used_today=standing.used_today,
            now=utc(self.clock.now_ms()),
            debug_id=job_trace(job.id).debug_id,
            queue=queue_part(job, standing.outlook),
            waiting_on=waiting_on(job, standing.outlook),
        )


def writing(edge: Edge) -> APIRouter:
    """The routes that write events."""
    router = APIRouter(prefix="/v1", dependencies=[Depends(known_query)])

    @router.post("/jobs", status_code=202, response_model=ShownJob)
    async def submit(
        body: SubmitJob, who: Writer, idempotency_key: Annotated[str | None, Header()] = None
    ) -> JSONResponse:
        job, _ = await edge.submit(body, who, idempotency_key)
        return _shown(await edge.show(job), status=202, seq=job.seq, headers={"Location": f"/v1/jobs/{job.id}"})

    @router.post("/jobs/{job_id}/cancel", status_code=202, response_model=ShownJob)
    async def cancel(job_id: JobIdPath, who: Writer, body: CancelJob | None = None) -> JSONResponse:
        found = await edge.own(job_id, who)
        outcome = await edge.admission.cancel(found, by=who.user, reason=body.reason if body else "")
        if isinstance(outcome, Ended):
            raise Refused(_ended(outcome.job))
        return _shown(await edge.show(outcome.job), status=202, seq=outcome.job.seq)

    @router.post("/jobs/{job_id}/confirm", status_code=202, response_model=ShownJob)
    async def confirm(job_id: JobIdPath, who: Writer) -> JSONResponse:
        found = await edge.own(job_id, who)
        outcome = await edge.admission.confirm(found, by=who.user)
        if isinstance(outcome, NotAsked):
            raise Refused(_not_asked(outcome.job))
        return _shown(await edge.show(outcome.job), status=202, seq=outcome.job.seq)

    return router


def reading(edge: Edge) -> APIRouter:
    """The routes that change nothing."""
    router = APIRouter(prefix="/v1", dependencies=[Depends(known_query)])

    @router.get("/jobs", response_model=list[ShownJob])
    async def jobs(who: Reader, limit: Annotated[int, Query(ge=1, le=100)] = 50) -> JSONResponse:
        mine = await edge.admission.jobs_of(who.user, count=limit)
        found = [job for job in mine if who.may_use(job.project_id)]
        return JSONResponse([(await edge.show(job)).model_dump(mode="json") for job in found])

    @router.get("/jobs/{job_id}", response_model=ShownJob)
    async def job(job_id: JobIdPath, who: Reader) -> JSONResponse:
        found = await edge.own(job_id, who)
        return _shown(await edge.show(found), status=200, seq=found.seq)

    @router.get("/jobs/{job_id}/events")
    async def events(job_id: JobIdPath, who: Reader) -> list[dict[str, object]]:
        found = await edge.own(job_id, who)
        return await edge.admission.history(found.id)

    @router.get("/jobs/{job_id}/result", response_class=Response)
    async def result(job_id: JobIdPath, who: Reader) -> Response:
        found = await edge.own(job_id, who)
        content = await edge.results.get(found.result) if found.result else None
        if content is None:
            raise Refused(_no_result(found))
        name = f'attachment; filename="{found.id}.tar.gz"'
        return Response(content, media_type="application/gzip", headers={"Content-Disposition": name})

    return router


def _shown(job: ShownJob, *, status: int, seq: int, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(job.model_dump(mode="json"), status, headers={"ETag": f'"{seq}"', **(headers or {})})


def _key(header: str) -> str:
    found = KEY.fullmatch(header)
    if found is None:
        detail = "Idempotency-Key: use 1 to 255 visible ASCII characters, quoted or not"
        raise Refused(Problem(status=422, slug="invalid", title="Invalid request", detail=detail))
    return found[1]


def _refusal(outcome: SubmitOutcome) -> Problem:
    match outcome:
        case SystemBusy(minutes):
            detail = f"system busy, try again in {minutes} minutes"
            more = {"retry_after_minutes": minutes}
            return Problem(
                status=503, slug="busy", title="System busy", detail=detail, retry_after_s=minutes * 60, more=more
            )
        case OverShare(held):
            detail = f"you hold {held} places of the queue, as many as one user may: wait until one of your jobs starts"
            return Problem(status=429, slug="share", title="Your share of the queue is full", detail=detail)
        case NoDayLeft(last_day):
            detail = f"every day up to {day_of(last_day)} is taken by your jobs: submit again later"
            return Problem(status=429, slug="horizon", title="No day left", detail=detail)
        case KeyReused(job_id):
            detail = f"Idempotency-Key: it stands for another request, job {job_id}; use a new key for a new request"
            return Problem(status=422, slug="key-reused", title="Key reused", detail=detail)
        case Accepted():
            raise AssertionError("an accepted job is no refusal")


def _invalid(refusal: NotAllowed) -> Problem:
    error = {"in": "body", "field": refusal.field, "message": refusal.reason}
    detail = f"{refusal.field}: {refusal.reason}"
    return Problem(status=422, slug="invalid", title="Invalid request", detail=detail, more={"errors": [error]})


def _other_project(project_id: str) -> Problem:
    detail = f"your token is not for project {project_id!r}: use one of the projects that it names"
    return Problem(status=403, slug="other-project", title="Not allowed", detail=detail)


def _not_found(job_id: str) -> Problem:
    return Problem(status=404, slug="not-found", title="No such job", detail=f"you have no job {job_id}")


def _ended(job: Job) -> Problem:
    detail = f"the job is {job.status.value}: it has ended and nothing was changed"
    return Problem(status=409, slug="ended", title="Already ended", detail=detail)


def _not_asked(job: Job) -> Problem:
    detail = f"the job is {job.status.value} and asks nothing: nothing was changed"
    return Problem(status=409, slug="not-asked", title="Nothing to confirm", detail=detail)


def _no_result(job: Job) -> Problem:
    if job.result is None:
        detail = f"the job is {job.status.value}: a result is there once it is ready"
        return Problem(status=409, slug="no-result", title="No result yet", detail=detail)
    return Problem(status=410, slug="result-gone", title="Result gone", detail="results are kept for a few days only")

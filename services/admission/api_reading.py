"""HTTP: the routes that tell about jobs and change nothing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse

from headgate_contracts import Status
from headgate_contracts.asked import ForeignId
from headgate_contracts.shown import Explanation, HistoryEntry, ShownJob, Usage
from headgate_contracts.tokens import Token, foreign_token
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Edge, JobIdPath, Reader, next_link, route_group
from services.admission.listing import JobFilter, cursor_of, read_cursor


def wanted_jobs(
    who: Reader,
    status: Annotated[list[Status] | None, Query(description="one or more")] = None,
    project: Annotated[ForeignId | None, Query()] = None,
    workflow: Annotated[Token | None, Query()] = None,
) -> JobFilter:
    """The filters, and that they are about one's own jobs."""
    return JobFilter(
        user=who.user,
        statuses=frozenset(status or ()),
        project=None if project is None else foreign_token(project),
        workflow=workflow,
    )


def list_routes(edge: Edge) -> APIRouter:
    """All of one's jobs, and what they use."""
    router = route_group()

    @router.get("/jobs", response_model=list[ShownJob])
    async def jobs(
        request: Request,
        wanted: Annotated[JobFilter, Depends(wanted_jobs)],
        limit: Annotated[int, Query(ge=1, le=100)] = 50,
        cursor: Annotated[str | None, Query(max_length=256)] = None,
    ) -> JSONResponse:
        """One's own jobs, newest first. `Link` names the next page where there is one."""
        name = wanted.name(edge.reading.log.epoch)
        before = read_cursor(cursor, name=name) if cursor else None
        if cursor and before is None:
            raise Refused(problems.foreign_cursor())
        page = await edge.listing.page(wanted, before=before, count=limit)
        more = next_link(request, cursor_of(page.before, name=name)) if page.before is not None else {}
        shown = await edge.reading.shown(page.jobs)
        return JSONResponse([each.model_dump(mode="json") for each in shown], headers=more)

    @router.get("/usage")
    async def usage(who: Reader) -> Usage:
        """What is used of today; of iterations, what a job has that is submitted now."""
        return await edge.reading.usage(who.user, who.tier)

    return router


def job_routes(edge: Edge) -> APIRouter:
    """One of them."""
    router = route_group()

    @router.get("/jobs/{job_id}", response_model=ShownJob)
    async def job(job_id: JobIdPath, who: Reader) -> JSONResponse:
        return await edge.answer(await edge.own(job_id, who), who)

    @router.get("/jobs/{job_id}/events")
    async def events(job_id: JobIdPath, who: Reader) -> list[HistoryEntry]:
        """Its history, from the log."""
        found = await edge.own(job_id, who)
        return await edge.reading.history(found.id)

    @router.get("/jobs/{job_id}/explain")
    async def explain(job_id: JobIdPath, who: Reader) -> Explanation:
        """Why the job waits, in order, and what would let it run."""
        found = await edge.own(job_id, who)
        return await edge.reading.explained(found, owner=who.owns(found))

    return router

"""HTTP: the routes that tell about jobs and change nothing."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse

from headgate_contracts import Status
from headgate_contracts.asked import LABEL, ONE_LINE, ForeignId, Moment
from headgate_contracts.shown import Explanation, HistoryEntry, JobCounts, ShownJob, ShownWaits, Usage
from headgate_contracts.tokens import JobId, Token, foreign_token
from libs.runtime.auth import OPS
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Edge, JobIdPath, Reader, next_link, route_group
from services.admission.finding import Facet, JobFilter, Sort, cursor_of, read_cursor
from services.admission.indexing import Progress

CATCHING_UP: Final = "Headgate-Catching-Up"
LISTED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "headers": {
            CATCHING_UP: {
                "description": "while the index is made anew: records of the log that it has, and how many there are",
                "schema": {"type": "string"},
            }
        }
    }
}


@dataclass(frozen=True, slots=True)
class What:
    """What jobs are looked for by, beside whose they are."""

    id: Annotated[tuple[JobId, ...], Query(max_length=100, description="one or more: these jobs alone")] = ()
    q: Annotated[str, Query(max_length=200, pattern=ONE_LINE, description="words of title, id or labels, or parts")] = (
        ""
    )
    status: Annotated[tuple[Status, ...], Query(description="one or more")] = ()
    project: Annotated[ForeignId | None, Query()] = None
    pipeline: Annotated[Token | None, Query()] = None
    pool: Annotated[Token | None, Query()] = None
    label: Annotated[str | None, Query(pattern=LABEL)] = None
    workflow: Annotated[Token | None, Query()] = None
    since: Annotated[Moment | None, Query(description="submitted then or later")] = None
    until: Annotated[Moment | None, Query(description="submitted before")] = None


def wanted_jobs(
    who: Reader,
    what: Annotated[What, Depends()],
    user: Annotated[ForeignId | None, Query(description="operators: whose; without it everybody's")] = None,
) -> JobFilter:
    """The filters. Only operators look at others' jobs."""
    named = None if user is None else foreign_token(user)
    if not who.may(OPS):
        if named not in (None, who.user):
            raise Refused(problems.others_jobs())
        named = who.user
    return JobFilter(
        user=named,
        ids=frozenset(what.id),
        text=what.q,
        statuses=frozenset(what.status),
        project=None if what.project is None else foreign_token(what.project),
        pipeline=what.pipeline,
        pool=what.pool,
        label=what.label,
        workflow=what.workflow,
        since=what.since,
        until=what.until,
    )


def list_routes(edge: Edge) -> APIRouter:
    """Jobs, page by page."""
    router = route_group()

    @router.get("/jobs", response_model=list[ShownJob], responses=LISTED)
    async def list_jobs(
        request: Request,
        who: Reader,
        wanted: Annotated[JobFilter, Depends(wanted_jobs)],
        *,
        sort: Sort = Sort.NEWEST,
        limit: Annotated[int, Query(ge=1, le=100)] = 50,
        cursor: Annotated[str | None, Query(max_length=256)] = None,
    ) -> JSONResponse:
        """The user's own jobs; for operators, everybody's. `Link` names the next page if there is one."""
        name = wanted.name(edge.reading.log.epoch, sort)
        page = await edge.listing.page(wanted, sort, before=_begins_at(cursor, name), count=limit)
        if page is None:
            raise Refused(problems.no_index())
        shown = await edge.reading.shown(page.jobs, owner=wanted.user == who.user)
        following = {} if page.before is None else next_link(request, cursor_of(page.before, name=name))
        headers = following | catching_up(page.progress)
        return JSONResponse([each.model_dump(mode="json") for each in shown], headers=headers)

    return router


def _begins_at(cursor: str | None, name: str) -> int | None:
    before = read_cursor(cursor, name=name) if cursor else None
    if cursor and before is None:
        raise Refused(problems.foreign_cursor())
    return before


def count_routes(edge: Edge) -> APIRouter:
    """How many jobs there are, and what is used. They stand before those of one job, whose path they match too."""
    router = route_group()

    @router.get("/jobs/counts", response_model=JobCounts, responses=LISTED)
    async def count_jobs(
        wanted: Annotated[JobFilter, Depends(wanted_jobs)],
        by: Annotated[tuple[Facet, ...], Query(description="one or more; `status` where none is named")] = (),
    ) -> JSONResponse:
        """How many jobs the same filters find, by status, project and the like: the 100 most frequent names of each.
        Counting by `user` is for operators."""
        counted = await edge.listing.counts(wanted, by or (Facet.STATUS,))
        if counted is None:
            raise Refused(problems.no_index())
        progress, counts = counted
        return JSONResponse(
            JobCounts(counts={facet.value: names for facet, names in counts.items()}).model_dump(mode="json"),
            headers=catching_up(progress),
        )

    @router.get("/usage")
    async def get_usage(who: Reader) -> Usage:
        """What the user has used today, and how many iterations a job submitted now would have."""
        return await edge.reading.usage(who.user, who.tier)

    return router


def catching_up(progress: Progress) -> dict[str, str]:
    return {} if progress.is_whole else {CATCHING_UP: f"{progress.applied}/{progress.last}"}


def job_routes(edge: Edge) -> APIRouter:
    """One of them."""
    router = route_group()

    @router.get("/jobs/{job_id}", response_model=ShownJob)
    async def get_job(job_id: JobIdPath, who: Reader) -> JSONResponse:
        """The job as it stands now."""
        return await edge.answer(await edge.own(job_id, who), who)

    @router.get("/jobs/{job_id}/events")
    async def list_events(job_id: JobIdPath, who: Reader) -> list[HistoryEntry]:
        """The job's history, from the log."""
        found = await edge.own(job_id, who)
        return await edge.reading.history(found.id)

    @router.get("/jobs/{job_id}/waits", response_model=ShownWaits, responses=LISTED)
    async def list_waits(job_id: JobIdPath, who: Reader) -> JSONResponse:
        """What held the job while it waited, piece by piece: pauses, full groups, its day, its user's answer."""
        found = await edge.own(job_id, who)
        told = await edge.waiting.waits(found.id, owner=who.owns(found))
        if told is None:
            raise Refused(problems.no_index())
        return JSONResponse(told[1].model_dump(mode="json"), headers=catching_up(told[0]))

    @router.get("/jobs/{job_id}/explain")
    async def explain_job(job_id: JobIdPath, who: Reader) -> Explanation:
        """Why the job waits, in order, and what would let it run."""
        found = await edge.own(job_id, who)
        return await edge.reading.explained(found, owner=who.owns(found))

    return router

"""HTTP: the queue as a whole, who works on it, and what operators do and did to it."""

from datetime import timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from headgate_contracts.asked import ChangeScope, Moment
from headgate_contracts.envelope import utc
from headgate_contracts.shown import Analytics, AuditEntry, ScopeChange, ShownQueue, ShownWorker
from libs.runtime.auth import OPS
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Edge, Operator, Reader, next_link, route_group
from services.admission.finding import cursor_of, read_cursor
from services.admission.naming import scope_named
from services.admission.operating import AlreadyPaused, Done, NotPaused

AUDITED: Final = timedelta(days=1)  # where nobody says since when


def queue_routes(edge: Edge) -> APIRouter:
    """How it stands."""
    router = route_group()

    @router.get("/queue")
    async def get_queue(who: Reader) -> ShownQueue:
        """For operators all queued jobs in order; for users the queue's length and where their own jobs stand."""
        return await (edge.overseeing.whole_queue() if who.may(OPS) else edge.overseeing.queue_of(who.user))

    @router.get("/queue/analytics")
    async def get_analytics(who: Operator) -> Analytics:
        """Waits by priority and tier, and how accurate the forecast was."""
        return await edge.overseeing.analytics()

    @router.get("/workers")
    async def list_workers(who: Operator) -> list[ShownWorker]:
        """The live workers: pool, slots, the jobs they run, and when they were last heard."""
        return await edge.overseeing.workers()

    return router


def pause_routes(edge: Edge) -> APIRouter:
    """A part of it stands still, or goes on."""
    router = route_group()

    @router.post("/queue/pause")
    async def pause(body: ChangeScope, who: Operator) -> ScopeChange:
        """Starts no more jobs of the scope. Pausing a scope that is paused changes nothing and says so. A pool that
        does not exist is refused."""
        scope = scope_named(body.scope)
        pool = scope.removeprefix("pool:")
        if pool != scope and pool not in edge.policy.pools.served:
            raise Refused(problems.no_such_pool(pool, edge.policy.pools.served))
        outcome = await edge.operating.pause(scope, by=who.user, reason=body.reason)
        return await _changed(edge, scope, outcome)

    @router.post("/queue/resume")
    async def resume(body: ChangeScope, who: Operator) -> ScopeChange:
        """Lets jobs of the scope start again. Resuming a scope that is not paused changes nothing and says so."""
        scope = scope_named(body.scope)
        outcome = await edge.operating.resume(scope, by=who.user, reason=body.reason)
        return await _changed(edge, scope, outcome)

    return router


def audit_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.get("/audit", response_model=list[AuditEntry])
    async def list_audit(
        request: Request,
        who: Operator,
        since: Moment | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
        cursor: Annotated[str | None, Query(max_length=256)] = None,
    ) -> JSONResponse:
        """What operators did, oldest first; without `since`, of the last day."""
        since = since or utc(edge.clock.now_ms()) - AUDITED
        name = f"audit {edge.reading.log.epoch}"
        after = read_cursor(cursor, name=name) if cursor else 0
        if after is None:
            raise Refused(problems.foreign_cursor())
        found = await edge.overseeing.acts(since=since, after=after, count=limit)
        more = next_link(request, cursor_of(found[-1].seq, name=name)) if len(found) == limit else {}
        return JSONResponse([each.model_dump(mode="json") for each in found], headers=more)

    return router


async def _changed(edge: Edge, scope: str, outcome: Done | AlreadyPaused | NotPaused) -> ScopeChange:
    return ScopeChange(
        scope=scope,
        changed=isinstance(outcome, Done),
        message=_words(outcome),
        paused=await edge.overseeing.paused(),
    )


def _words(outcome: Done | AlreadyPaused | NotPaused) -> str:
    match outcome:
        case Done(in_force):
            return "done" if in_force else "done: it is in force as soon as the scheduler has seen it"
        case AlreadyPaused(pause):
            why = f" ({pause.reason})" if pause.reason else ""
            return f"it is paused already, by {pause.by} since {utc(pause.since_ms):%Y-%m-%d %H:%M:%S} UTC{why}"
        case NotPaused():
            return "it is not paused: see `paused` for what is"

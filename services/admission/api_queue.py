"""HTTP: the queue as a whole, its groups and workers, and what operators do to them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AwareDatetime

from headgate_contracts.asked import ChangeScope, SetGroupLimit
from headgate_contracts.envelope import utc
from headgate_contracts.shown import (
    Analytics,
    AuditEntry,
    LeaseRelease,
    ScopeChange,
    ShownGroup,
    ShownQueue,
    ShownWorker,
)
from libs.runtime.problems import Refused, known_query
from services.admission import problems
from services.admission.api import OPS, Edge, Operator, Reader, Reason, next_link
from services.admission.listing import cursor_of, read_cursor
from services.admission.naming import group_named, scope_named
from services.admission.operating import AlreadyPaused, Done, ForcedFree, NoSuchLease, NotPaused, Operating
from services.admission.overseeing import Overseeing

AUDITED: Final = timedelta(days=1)  # where nobody says since when
GroupPath = Annotated[str, Path(min_length=1, max_length=400, description="as in `user:u1`, `group:shop:db`")]
LeasePath = Annotated[str, Path(min_length=1, max_length=160)]


def queue_routes(edge: Edge, overseeing: Overseeing, operating: Operating) -> APIRouter:
    router = APIRouter(prefix="/v1", dependencies=[Depends(known_query)])

    @router.get("/queue")
    async def queue(who: Reader) -> ShownQueue:
        """For operators every job in order, for users how long it is and where their own jobs stand."""
        return await (overseeing.whole_queue() if who.may(OPS) else overseeing.queue_of(who.user))

    @router.get("/queue/analytics")
    async def analytics(who: Operator) -> Analytics:
        return await overseeing.analytics()

    @router.post("/queue/pause")
    async def pause(body: ChangeScope, who: Operator) -> ScopeChange:
        """Nothing of the scope is started any more. Pausing what is paused changes nothing and says so."""
        scope = scope_named(body.scope)
        outcome = await operating.pause(scope, by=who.user, reason=body.reason)
        return await _changed(scope, outcome, overseeing)

    @router.post("/queue/resume")
    async def resume(body: ChangeScope, who: Operator) -> ScopeChange:
        """The scope may start again. Resuming what is not paused changes nothing and says so."""
        scope = scope_named(body.scope)
        outcome = await operating.resume(scope, by=who.user, reason=body.reason)
        return await _changed(scope, outcome, overseeing)

    @router.get("/workers")
    async def workers(who: Operator) -> list[ShownWorker]:
        return await overseeing.workers()

    @router.get("/audit", response_model=list[AuditEntry])
    async def audit(
        request: Request,
        who: Operator,
        since: AwareDatetime | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
        cursor: Annotated[str | None, Query(max_length=256)] = None,
    ) -> JSONResponse:
        """What operators did, oldest first; without `since` that of the last day."""
        since = since or utc(edge.clock.now_ms()) - AUDITED
        name = f"audit {edge.reading.log.epoch}"
        after = read_cursor(cursor, name=name) if cursor else 0
        if after is None:
            raise Refused(problems.foreign_cursor())
        found = await overseeing.acts(since=since, after=after, count=limit)
        more = next_link(request, cursor_of(found[-1].seq, name=name)) if len(found) == limit else {}
        return JSONResponse([each.model_dump(mode="json") for each in found], headers=more)

    return router


def group_routes(overseeing: Overseeing, operating: Operating) -> APIRouter:
    """A group's name may hold a slash where it is percent-encoded: users sign in with any id."""
    router = APIRouter(prefix="/v1/concurrency", dependencies=[Depends(known_query)])

    @router.get("")
    async def groups(who: Operator) -> list[ShownGroup]:
        return await overseeing.groups()

    @router.get("/{group:path}")
    async def group(group: GroupPath, who: Operator) -> ShownGroup:
        return await overseeing.group(_group(group))

    @router.put("/{group:path}")
    async def set_limit(group: GroupPath, body: SetGroupLimit, who: Operator) -> ShownGroup:
        """From now on, for the backlog too. It stands above the policy, survives restarts, and ends no running job."""
        name = _group(group)
        if name.startswith("pool:"):
            raise Refused(problems.pool_limit(name))
        await operating.set_limit(name, body.limit, by=who.user, reason=body.reason)
        return (await overseeing.group(name)).model_copy(update={"limit": body.limit})

    @router.delete("/{group:path}/leases/{lease}", response_model=LeaseRelease)
    async def release(group: GroupPath, lease: LeasePath, who: Operator, reason: Reason = "") -> Response:
        """Forces a slot free. A running job's own slot is free once its attempt was given back: then it is 202."""
        name = _group(group)
        match await operating.release(name, lease, by=who.user, reason=reason):
            case NoSuchLease(status):
                raise Refused(problems.no_such_lease(name, lease, holders=len(status.holders)))
            case ForcedFree() as freed:
                return _freed(name, freed)

    return router


def _group(text: str) -> str:
    name = group_named(text)
    if name is None:
        raise Refused(problems.no_group_name(text))
    return name


async def _changed(scope: str, outcome: Done | AlreadyPaused | NotPaused, overseeing: Overseeing) -> ScopeChange:
    return ScopeChange(
        scope=scope,
        changed=isinstance(outcome, Done),
        message=_words(outcome),
        paused=await overseeing.paused(),
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


def _freed(group: str, freed: ForcedFree) -> JSONResponse:
    holder = freed.holder
    own_slot = holder.job is not None and holder.name == f"{holder.job}:{holder.attempt}"
    message = "the attempt is given back, then its slots are free" if own_slot else "the lease has ended"
    shown = LeaseRelease(group=group, lease=holder.name, job_id=holder.job, attempt=holder.attempt, message=message)
    return JSONResponse(shown.model_dump(mode="json"), 202 if own_slot else 200)

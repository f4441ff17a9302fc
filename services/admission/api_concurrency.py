"""HTTP: the groups, who holds their slots, and what operators do about that.

A group's name may hold a slash where it is percent-encoded: users sign in with any id.
"""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Response
from fastapi.responses import JSONResponse

from headgate_contracts.asked import FOREIGN_GROUP, HELD_LEASE, SetGroupLimit
from headgate_contracts.shown import LeaseRelease, ShownGroup
from libs.capacity.scopes import OWNERS
from libs.runtime.auth import LEASES, OPS, Identity, Principal
from libs.runtime.faults import Refused
from services.admission import problems, problems_leases
from services.admission.api import Edge, Operator, ReasonQuery, route_group
from services.admission.naming import group_named, leased_group
from services.admission.operating import ForcedFree, NoSuchLease

GroupPath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=400,
        description="as in `user:u1`, `group:shop:db`",
        json_schema_extra={"pattern": FOREIGN_GROUP},  # said here, and checked with a reason: `_named`
    ),
]
LeasePath = Annotated[str, Path(min_length=1, max_length=160, json_schema_extra={"pattern": HELD_LEASE})]

Releaser = Annotated[Principal, Depends(Identity(OPS, LEASES))]

GIVEN_BACK: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": LeaseRelease, "description": "A running job's own slot: free once its attempt was given back"},
    204: {"description": "A lease of one's own is given back: also where it was not held any more"},
}


def group_routes(edge: Edge) -> APIRouter:
    """How they stand."""
    router = route_group()

    @router.get("/concurrency")
    async def list_groups(who: Operator) -> list[ShownGroup]:
        """All groups with their limits, their active slots and what waits for them."""
        return await edge.overseeing.groups()

    @router.get("/concurrency/{group:path}")
    async def get_group(group: GroupPath, who: Operator) -> ShownGroup:
        """One group with the holders of its slots, and since when they hold them."""
        name = _named(group)
        shown = await edge.overseeing.group(name)
        if not (shown.holders or shown.waiting or name.startswith(OWNERS)):  # those have no list: anybody may come
            await _require(edge, name)
        return shown

    return router


def slot_routes(edge: Edge) -> APIRouter:
    """One that is taken from its holder, or that its holder gives back."""
    router = route_group()

    @router.delete("/concurrency/{group:path}/leases/{lease}", response_model=LeaseRelease, responses=GIVEN_BACK)
    async def release_slot(group: GroupPath, lease: LeasePath, who: Releaser, reason: ReasonQuery = "") -> Response:
        """A holder gives its own lease back, and the next in line gets the slot at once: 204. An operator frees any
        slot by force. The slot of a running job, its own or one of its stage's, is free once its attempt has been given
        back: 202."""
        if who.may(LEASES) and not (who.may(OPS) and await _is_anothers(edge, group, lease, who)):
            own_group(edge, group, who)
            await edge.leasing.give_back(lease, user=who.user)
            return _given_back(group, lease) if who.may(OPS) else Response(status_code=204)
        name = _named(group)
        match await edge.operating.release(name, lease, by=who.user, reason=reason):
            case NoSuchLease(status):
                raise Refused(problems.no_such_lease(name, lease, held=[each.name for each in status.holders]))
            case ForcedFree() as freed:
                return _freed(name, freed)

    return router


def limit_routes(edge: Edge) -> APIRouter:
    """How many there are. They stand behind those of slots, whose paths they match too."""
    router = route_group()

    @router.put("/concurrency/{group:path}")
    async def set_limit(group: GroupPath, body: SetGroupLimit, who: Operator) -> ShownGroup:
        """Sets the group's number of slots, for jobs that wait already too. It takes precedence over the policy,
        survives restarts, and ends no running job."""
        name = _named(group)
        if name.startswith("pool:"):
            raise Refused(problems.pool_limit(name))
        await _require(edge, name)
        await edge.operating.set_limit(name, body.limit, by=who.user, reason=body.reason)
        return (await edge.overseeing.group(name)).model_copy(update={"limit": body.limit})

    @router.delete("/concurrency/{group:path}")
    async def unset_limit(group: GroupPath, who: Operator, reason: ReasonQuery = "") -> ShownGroup:
        """Removes the limit that an operator has set: the group has the slots that its jobs bring, or that the policy
        says."""
        name = _named(group)
        await _require(edge, name)
        await edge.operating.unset_limit(name, by=who.user, reason=reason)
        return await edge.overseeing.group(name)

    return router


async def _is_anothers(edge: Edge, group: str, lease: str, who: Principal) -> bool:
    """Somebody else holds it, or a job; or the group cannot be the asker's own."""
    own = leased_group(group, user=who.user, projects=who.projects, all_shared=edge.policy.projects.shared)
    if own is None:
        return True
    holders = (await edge.overseeing.group(_named(group))).holders
    return any(each.lease == lease and each.user_id != who.user for each in holders)


def own_group(edge: Edge, group: str, who: Principal) -> str:
    """The group of one of the asker's own projects, as the log has it."""
    name = leased_group(group, user=who.user, projects=who.projects, all_shared=edge.policy.projects.shared)
    if name is None:
        raise Refused(problems_leases.not_leasable(group))
    return name


async def _require(edge: Edge, name: str) -> None:
    """Somebody has it: a limit of what nobody has would only be a name that was mistyped."""
    if (near := await edge.overseeing.groups_near(name)) is not None:
        raise Refused(problems.no_such_group(name, near.groups))


def _named(text: str) -> str:
    name = group_named(text)
    if name is None:
        raise Refused(problems.no_group_name(text))
    return name


def _given_back(group: str, lease: str) -> JSONResponse:
    """As operators are told what became of a slot."""
    shown = LeaseRelease(group=group, lease=lease, job_id=None, attempt=None, message="the lease is given back")
    return JSONResponse(shown.model_dump(mode="json"))


def _freed(group: str, freed: ForcedFree) -> JSONResponse:
    holder = freed.holder
    is_run = holder.job is not None
    message = "the attempt is given back, then its slots are free" if is_run else "the lease has ended"
    shown = LeaseRelease(group=group, lease=holder.name, job_id=holder.job, attempt=holder.attempt, message=message)
    return JSONResponse(shown.model_dump(mode="json"), 202 if is_run else 200)

"""HTTP: a slot for anybody, in a group of one's own projects.

A request that waits ends when its client has gone: their place in line goes with them.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Request

from headgate_contracts.asked import ULID, ExtendLease, TakeLease
from headgate_contracts.envelope import utc
from headgate_contracts.shown import ShownLease
from libs.capacity.projection import epoch_ms
from libs.runtime.auth import LEASES, Identity, Principal
from libs.runtime.faults import Refused
from services.admission import problems_leases
from services.admission.api import Edge, route_group
from services.admission.api_concurrency import GroupPath, own_group
from services.admission.leasing import (
    Held,
    LeaseRefused,
    LeaseWanted,
    NoneFree,
    NotTheirs,
    TooManyGroups,
    TooManyLeases,
)

T = TypeVar("T")
Lessee = Annotated[Principal, Depends(Identity(LEASES))]
UlidPath = Annotated[str, Path(pattern=ULID, description="as it was asked for")]


def lease_routes(edge: Edge) -> APIRouter:
    """Taken and extended. It is given back where operators force one free."""
    router = route_group()

    @router.post("/concurrency/{group:path}/leases", status_code=201)
    async def take_slot(group: GroupPath, body: TakeLease, who: Lessee, request: Request) -> ShownLease:
        """Takes a slot of `group:<project>:<name>` until `expires_at`. The same lease sent again is the same lease,
        held for its time from now. If all slots are taken, the request waits in line for `wait_s`, and is then 429. A
        user who holds and waits for as many slots as one user may is 429 at once."""
        wanted = replace(_wanted(edge, group, body.lease, body, who), wait_ms=body.wait_s * 1000)
        return _shown(group, wanted, await while_there(request, edge.leasing.take(wanted)), edge)

    @router.patch("/concurrency/{group:path}/leases/{lease}")
    async def extend_slot(group: GroupPath, lease: UlidPath, body: ExtendLease, who: Lessee) -> ShownLease:
        """Holds the slot for its time from now. 404: it is no longer held. `held_until` is the `expires_at` that the
        holder was told last; with it the lease continues even where the view has lost it meanwhile."""
        told_ms = 0 if body.held_until is None else epoch_ms(body.held_until)
        wanted = replace(_wanted(edge, group, lease, body, who), held_until_ms=told_ms)
        return _shown(group, wanted, await edge.leasing.extend(wanted), edge)

    return router


def _wanted(edge: Edge, group: str, lease: str, body: TakeLease | ExtendLease, who: Principal) -> LeaseWanted:
    return LeaseWanted(
        lease=lease,
        group=own_group(edge, group, who),
        user=who.user,
        limit=body.limit,
        ttl_ms=_ttl_ms(edge, body.ttl_s),
    )


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What comes of it; it is cancelled once the client has gone."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Refused(problems_leases.gone_away())
        return working.result()
    finally:
        for each in (working, gone):
            each.cancel()
        await asyncio.wait((working, gone))


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _ttl_ms(edge: Edge, ttl_s: int | None) -> int:
    longest_ms = edge.policy.concurrency.longest_lease_ms
    if ttl_s is not None and ttl_s * 1000 > longest_ms:
        raise Refused(problems_leases.too_long_a_lease(longest_ms))
    return longest_ms if ttl_s is None else ttl_s * 1000


def _shown(group: str, wanted: LeaseWanted, outcome: Held | NoneFree | LeaseRefused, edge: Edge) -> ShownLease:
    match outcome:
        case Held(expires_ms):
            return ShownLease(group=group, lease=wanted.lease, ttl_s=wanted.ttl_ms / 1000, expires_at=utc(expires_ms))
        case NoneFree(status):
            raise Refused(problems_leases.none_free(group, status, user=wanted.user, now_ms=edge.clock.now_ms()))
        case NotTheirs():
            is_new = wanted.held_until_ms is None
            raise Refused(
                problems_leases.lease_taken(wanted.lease) if is_new else problems_leases.not_held(group, wanted.lease)
            )
        case TooManyGroups(retry_ms):
            raise Refused(problems_leases.too_many_groups(retry_ms))
        case TooManyLeases(held):
            raise Refused(problems_leases.too_many_leases(held))

"""HTTP: the policy in force, and another one in its place."""

from __future__ import annotations

from fastapi import APIRouter

from headgate_contracts.asked import ReloadPolicy
from headgate_contracts.shown import ShownPolicy
from libs.policy import PolicyError
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Edge, Operator, route_group


def policy_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.get("/policy")
    async def get_policy(who: Operator) -> ShownPolicy:
        """Every number, and since when it is so."""
        return edge.reloading.in_force()

    @router.put("/policy")
    async def reload_policy(body: ReloadPolicy, who: Operator) -> ShownPolicy:
        """Checked as at a start; one that cannot be changes nothing. It holds for the backlog too, ends no running job,
        and survives restarts. What only a start can change is refused by its key."""
        try:
            return await edge.reloading.reload(body.policy, by=who.user, reason=body.reason)
        except PolicyError as error:
            raise Refused(problems.no_policy(error)) from error

    return router

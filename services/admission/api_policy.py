"""HTTP: the policy in force, and another one in its place."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from headgate_contracts.asked import ReloadPolicy
from headgate_contracts.shown import ShownPolicy
from libs.policy import PolicyError
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Edge, Operator, SeenTags, route_group
from services.admission.reloading import AnotherPolicy, policy_etag


def policy_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.get("/policy", response_model=ShownPolicy)
    async def get_policy(who: Operator) -> JSONResponse:
        """Every number, and since when it is so. Its ETag is what `If-Match` is compared with."""
        return _answer(edge.reloading.in_force())

    @router.put("/policy", response_model=ShownPolicy)
    async def reload_policy(body: ReloadPolicy, who: Operator, expected: SeenTags) -> JSONResponse:
        """Checked as at a start; one that cannot be changes nothing. It holds for the backlog too, ends no running job,
        and survives restarts. What only a start can change is refused by its key. With `If-Match` it is refused where
        another policy is in force than the one that was seen."""
        try:
            outcome = await edge.reloading.reload(body.policy, by=who.user, reason=body.reason, expected=expected)
        except PolicyError as error:
            raise Refused(problems.no_policy(error)) from error
        if isinstance(outcome, AnotherPolicy):
            raise Refused(problems.another_policy(outcome.now, etag=policy_etag(outcome.now)))
        return _answer(outcome)

    return router


def _answer(shown: ShownPolicy) -> JSONResponse:
    return JSONResponse(shown.model_dump(mode="json"), headers={"ETag": policy_etag(shown)})

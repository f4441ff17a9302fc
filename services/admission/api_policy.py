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
        """The policy in force with all its numbers, and since when. Its ETag is what `If-Match` is compared with."""
        return _answer(edge.reloading.in_force())

    @router.put("/policy", response_model=ShownPolicy)
    async def reload_policy(body: ReloadPolicy, who: Operator, expected: SeenTags) -> JSONResponse:
        """Checks the policy as a start would, and puts it in force in all services. A policy with a mistake changes
        nothing. The new one counts for jobs that wait already, ends no running job, and survives restarts. Numbers that
        only a restart can change are refused by their keys. With `If-Match` the request is refused if another policy is
        in force than the one you have seen."""
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

"""HTTP: operators take tokens back."""

from __future__ import annotations

from fastapi import APIRouter

from headgate_contracts.asked import RevokeToken
from headgate_contracts.shown import TokenRevocation
from services.admission.api import Edge, Operator, route_group


def token_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.post("/tokens/revoke")
    async def revoke_token(body: RevokeToken, who: Operator) -> TokenRevocation:
        """The token with this `jti` lets nobody in any more: here at once, at every replica within seconds, and what it
        has opened ends. Taken back again nothing changes. A token without a `jti` cannot be taken back."""
        outcome = await edge.revoking.revoke(body.jti, by=who.user, reason=body.reason)
        message = "it was taken back before" if outcome.again else "it lets nobody in any more"
        return TokenRevocation(jti=body.jti, until=outcome.until, changed=not outcome.again, message=message)

    return router

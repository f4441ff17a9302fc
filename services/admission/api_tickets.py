"""Tickets for streams: a page's own reader of streams sends no headers, so it shows a ticket instead of a token.

A ticket is 32 random bytes, good once and for 30 seconds; policy says how many of a user's are good at once. What it
stands for is kept under its digest, so that a reader of what is kept can use none. Owns what a ticket stands for; the
notifier redeems it by asking a scheduler.
"""

import base64
import hashlib
import secrets
from datetime import datetime
from typing import Final

from fastapi import APIRouter

from headgate_contracts.asked import RevokeToken
from headgate_contracts.commands import TicketRedeemed
from headgate_contracts.envelope import utc
from headgate_contracts.shown import StreamTicket, TokenRevocation
from libs.runtime.auth import Principal
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Edge, Operator, Reader, route_group

GOOD_FOR_MS: Final = 30_000


def ticket_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.post("/stream-tickets", status_code=201)
    async def create_stream_ticket(who: Reader) -> StreamTicket:
        """A ticket that opens one stream within 30 s, for clients that cannot send a header."""
        now_ms = edge.clock.now_ms()
        ticket = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        text, most = redeemed_by(who).model_dump_json(), edge.policy.stream.tickets_per_user
        retry_ms = await edge.tickets.keep_ticket(digest_of(ticket), text, user=who.user, most=most, ttl_ms=GOOD_FOR_MS)
        if retry_ms is not None:
            raise Refused(problems.too_many_tickets(most, retry_ms=retry_ms))
        return StreamTicket(ticket=ticket, expires_at=utc(now_ms + GOOD_FOR_MS))

    return router


def digest_of(ticket: str) -> str:
    return hashlib.sha256(ticket.encode()).hexdigest()


def redeemed_by(who: Principal) -> TicketRedeemed:
    """Its bearer is taken for them, and for no longer than their token would have been."""
    return TicketRedeemed(
        user_id=who.user,
        tier=who.tier,
        scopes=tuple(sorted(who.scopes)),
        expires_at=None if who.expires_s is None else _moment(who.expires_s),
        token_id=who.token_id,
    )


def _moment(seconds: float) -> datetime:
    return utc(round(seconds * 1000))


def token_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.post("/tokens/revoke")
    async def revoke_token(body: RevokeToken, who: Operator) -> TokenRevocation:
        """Revokes the token with this `jti`: at this replica at once, at every other within seconds. Streams that were
        opened with it end. Revoking it again changes nothing. A token without a `jti` cannot be revoked."""
        outcome = await edge.revoking.revoke(body.jti, by=who.user, reason=body.reason)
        message = "it was taken back before" if outcome.again else "it lets nobody in any more"
        return TokenRevocation(jti=body.jti, until=outcome.until, changed=not outcome.again, message=message)

    return router

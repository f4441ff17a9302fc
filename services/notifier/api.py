"""The HTTP edge of the notifier's streams. The page that reads them is served by `pages.py`."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from headgate_contracts.commands import TicketRedeemed
from headgate_contracts.streamed import OF_ONE_JOB, STREAMED, item_ref
from libs.runtime.auth import READ, BearerToken, Identity, Principal, Tokens
from libs.runtime.errors import Unauthorized
from libs.runtime.faults import Refused, known_query
from libs.runtime.guard import GuardedRoute
from libs.runtime.problems import Problem
from services.notifier.domain import Complete, Known, NoJob
from services.notifier.handlers import AskedStream, Notifier
from services.notifier.limits import Openings, TooMany
from services.notifier.sending import Collecting, EventStream, OpenStreams
from services.notifier.streaming import Stream
from services.notifier.subscribers import RedeemedTickets

READER: Final = Identity(READ)
JobIdPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)]
AskedEventId = Annotated[str | None, Query(alias="last_event_id", max_length=100)]
LogAfter = Annotated[int | None, Query(ge=0, description="the `seq` of the last line that the client has")]
Replay = Annotated[bool, Query(description="first each status and line there was, in their order, then the snapshot")]
Ticket = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-]{43}$", description="from POST /v1/stream-tickets")]


@dataclass(frozen=True, slots=True)
class Edge:
    """What the routes share."""

    notifier: Notifier
    openings: Openings
    streams: OpenStreams
    collecting: Collecting = field(default_factory=Collecting)

    def answer(self, who: Principal, asked: AskedStream) -> EventStream:
        now_s = self.notifier.clock.now_ms() / 1000
        if who.expires_s is not None and who.expires_s <= now_s:  # of a ticket; or within the leeway of a token
            raise Unauthorized("The token has expired")
        return EventStream(partial(self._opened, who, asked), self.streams)

    async def close(self) -> None:
        """End all streams: each gets its last bytes; a client that does not take them is cut off."""
        self.notifier.fanout.close()
        await self.streams.end()

    @asynccontextmanager
    async def _opened(self, who: Principal, asked: AskedStream) -> AsyncGenerator[Stream | Response]:
        """The stream, if there is room for one more, or what is answered in its place."""
        with self._room(who), self.notifier.fanout.attached(asked.interests) as tap:
            opened = await asked.begin(tap)
            del asked  # this frame lives as long as the stream
            match opened:
                case NoJob(job_id):
                    raise Refused(_not_found(job_id))
                case Complete():
                    yield Response(status_code=204)
                case stream:
                    yield stream

    @contextmanager
    def _room(self, who: Principal) -> Generator[None]:
        refusal = self.openings.open(who.user)
        if refusal is not None:
            raise Refused(_too_many(refusal))
        self.collecting.opened()
        try:
            yield
        finally:
            self.openings.close(who.user)
            self.collecting.closed()


async def viewer(request: Request, token: BearerToken, ticket: Ticket = None) -> Principal:
    """The client, by a token or by a ticket, as an EventSource sends no headers. A request that is wrong in another way
    spends no ticket, so this is asked after the guard, and not by it."""
    if token is not None or ticket is None:
        return await READER.find(request)
    told = await cast("RedeemedTickets", request.app.state.tickets).redeem(ticket)
    if told is None:
        raise Refused(_nobody_redeems())
    found = _holder(told)
    if found is None:
        raise Unauthorized("The ticket is spent, expired or unknown: get another at POST /v1/stream-tickets")
    return READER.entitled(cast("Tokens", request.app.state.tokens).still_good(found))


Viewer = Annotated[Principal, Depends(viewer)]


def streams(edge: Edge) -> APIRouter:
    """Everything is decided before the first byte: a stream that has begun can only be cut."""
    router = APIRouter(prefix="/v1", dependencies=[Depends(known_query)], route_class=GuardedRoute)

    @router.get("/jobs/{job_id}/stream", response_class=Response, responses=_answers("JobStreamItem"))
    async def stream_job(job_id: JobIdPath, who: Viewer, known: Annotated[Known, Depends(_known)]) -> Response:
        """Server-sent events of one job: a snapshot, the lines of its log that are kept, then what happens. A client
        that reconnects with an id but without `log_after` gets the lines from then on."""
        return edge.answer(who, edge.notifier.of_job(job_id, known, who))

    @router.get("/stream", response_class=Response, responses=_answers("JobsStreamItem"))
    async def stream_jobs(who: Viewer, header: LastEventId = None, asked: AskedEventId = None) -> Response:
        """Server-sent events of all of the user's jobs: a snapshot, then what happens, without log lines."""
        return edge.answer(who, edge.notifier.of_user(header or asked, who))

    return router


def _answers(item: str) -> dict[int | str, dict[str, Any]]:
    """With what each server-sent event of it is, read: `x-itemSchema` is what OpenAPI 3.2 calls `itemSchema`."""
    names = [name for name in ("snapshot", *STREAMED) if item == "JobStreamItem" or name not in OF_ONE_JOB]
    content = {"schema": {"type": "string"}, "x-itemSchema": item_ref(item)}
    return {
        200: {
            "description": f"Server-sent events: {', '.join(names)}",
            "content": {"text/event-stream": content},
        },
        204: {"description": "Nothing can follow the last event that was seen"},
    }


def _known(
    header: LastEventId = None, asked: AskedEventId = None, log_after: LogAfter = None, *, replay: Replay = False
) -> Known:
    return Known(header or asked, log_after, replay)


def _holder(told: TicketRedeemed) -> Principal | None:
    if told.user_id is None or told.tier is None:
        return None
    expires_s = None if told.expires_at is None else told.expires_at.timestamp()
    return Principal(told.user_id, told.tier, frozenset(told.scopes), expires_s=expires_s, token_id=told.token_id)


def _not_found(job_id: str) -> Problem:
    return Problem(status=404, slug="not-found", title="No such job", detail=f"you have no job {job_id}")


def _nobody_redeems() -> Problem:
    detail = "nobody can look at tickets for the moment: try again, with the same ticket within its 30 seconds"
    return Problem(status=503, slug="unavailable", title="Not now", detail=detail, retry_after_s=1)


def _too_many(refusal: TooMany) -> Problem:
    if refusal.of_user:
        detail = f"you have {refusal.limit} streams open here, as many as one user may: close one, or follow /v1/stream"
    else:
        detail = f"this replica has {refusal.limit} streams open, as many as it takes: another one may have room"
    return Problem(status=429, slug="too-many-streams", title="Too many streams", detail=detail, retry_after_s=5)

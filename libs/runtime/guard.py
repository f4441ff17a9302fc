"""What stands before a route: who asks comes before what they bring.

    a header twice ─► who asks ─► the body: size, time, depth ─► the route: parsed, validated, carried out
         400          401, 403     413, 408, 422                  422, …

FastAPI by itself reads and parses the body first, and asks who sent it afterwards. Owns the order alone: who asks is
`auth`, what a body may be is `bodies`.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, ClassVar, Final

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.types import Message, Receive

from libs.runtime.auth import Identity
from libs.runtime.bodies import BodyLimit, read_body, require_parsable, throw_away
from libs.runtime.errors import BodyTooLarge, HeaderTwice

# Of two, one server takes the first and another the last: what was asked for would depend on who answers.
ONCE: Final = ("Authorization", "Content-Type", "Idempotency-Key", "If-Range", "Last-Event-ID", "Range")

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """A route behind the guard. A service with routes that take bodies has a class of its own, with its `limits`."""

    limits: ClassVar[Mapping[str, BodyLimit]] = {}  # by method and path

    def get_route_handler(self) -> Handler:
        handle, limit = super().get_route_handler(), self._limit()
        identity = next(_identities(self.dependant), None)

        async def guarded(request: Request) -> Response:
            _require_once(request)
            if identity is not None:
                request.state.principal = await identity.find(request)
            if limit is None:
                return await handle(request)
            announced = int(request.headers.get("content-length", 0))
            try:
                body = await read_body(request.receive, limit, announced=announced)
            except BodyTooLarge:
                await throw_away(request.receive)
                raise
            require_parsable(body)
            return await handle(Request(request.scope, _replayed(body, request.receive)))

        return guarded

    def _limit(self) -> BodyLimit | None:
        """Null where nothing of a body is read."""
        if self.body_field is None:
            return None
        [operation] = [f"{method} {self.path}" for method in self.methods or ()]
        if operation not in self.limits:
            raise LookupError(f"{operation} takes a body: say in {type(self).__name__}.limits how much")
        return self.limits[operation]


def _identities(dependant: Dependant) -> Iterator[Identity]:
    """By which the route, or what it depends on, learns who asks."""
    if isinstance(dependant.call, Identity):
        yield dependant.call
    for each in dependant.dependencies:
        yield from _identities(each)


def _require_once(request: Request) -> None:
    for name in ONCE:
        if len(request.headers.getlist(name)) > 1:
            raise HeaderTwice(name=name)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body at once, then what the client does next."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return whole.pop() if whole else await receive()

    return receive_again

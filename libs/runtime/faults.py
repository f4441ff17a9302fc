"""Which problem a fault becomes: the one way from an exception to an answer.

Refuses to tell what went wrong inside: that stands in the log, under the same `debug_id`.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, cast

from fastapi import FastAPI, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate_contracts import ContractError
from libs.runtime.errors import (
    BodyCut,
    BodyTooDeep,
    BodyTooLarge,
    BodyTooSlow,
    Forbidden,
    HalfCharacter,
    HeaderTwice,
    KeysAway,
    Unauthorized,
)
from libs.runtime.problems import Problem
from libs.runtime.telemetry import current_debug_id
from libs.runtime.wording import worded

logger = logging.getLogger(__name__)

MOST_FIELDS: Final = 20  # a body can be wrong in thousands of places; nobody reads them
LONGEST_FIELD: Final = 200  # characters; the name of an unknown field is the client's own

ANSWERS_SAY: Final = (  # where they say nothing else: what is somebody's own is kept nowhere, and is what it says it is
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
AS_JSON: Final = "say that the body is JSON, by `Content-Type: application/json`"
NOWHERE: Final = {  # the framework has a title for these and no sentence
    404: "there is nothing at this path: /openapi.json lists all paths",
    405: "this path does not take the method: the header Allow names those that it takes",
}


class Refused(Exception):
    """A route's own answer is this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


ProblemOf = Callable[[Any], Problem]
Faults = Mapping[type[Exception], ProblemOf]  # which answer an exception becomes; the nearest base class counts


def _unauthorized(fault: Unauthorized) -> Problem:
    said = "" if fault.missing else f', error="invalid_token", error_description="{fault.reason}"'
    challenge = {"WWW-Authenticate": f'Bearer realm="headgate"{said}'}
    return Problem(status=401, slug="unauthorized", title="Not signed in", detail=str(fault), headers=challenge)


def _forbidden(fault: Forbidden) -> Problem:
    challenge = f'Bearer realm="headgate", error="insufficient_scope", scope="{fault.scope}"'
    return Problem(
        status=403, slug="forbidden", title="Not allowed", detail=str(fault), headers={"WWW-Authenticate": challenge}
    )


def _keys_away(fault: KeysAway) -> Problem:
    wait_s = fault.retry_after_s
    return Problem(status=503, slug="unavailable", title="Not now", detail=str(fault), retry_after_s=wait_s)


def _too_large(fault: BodyTooLarge) -> Problem:
    return Problem(status=413, slug="too-large", title="Body too large", detail=str(fault))


def _too_slow(fault: BodyTooSlow) -> Problem:
    closed = {"Connection": "close"}  # the rest of it would be taken for the next request
    return Problem(status=408, slug="too-slow", title="Body too slow", detail=str(fault), headers=closed)


def _cut(fault: BodyCut) -> Problem:
    return Problem(status=400, slug="cut", title="Body cut short", detail=str(fault))


def _unreadable(fault: BodyTooDeep | HalfCharacter) -> Problem:
    errors = [{"in": "body", "field": "", "message": str(fault)}]
    return Problem(status=422, slug="invalid", title="Invalid request", detail=str(fault), more={"errors": errors})


def _twice(fault: HeaderTwice) -> Problem:
    return Problem(status=400, slug="header-twice", title="Header sent twice", detail=str(fault))


async def known_query(request: Request) -> None:
    """A dependency for routes: a parameter that the route does not know is refused, never passed over."""
    known = set(_query_names(request.scope["route"].dependant))
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        wrong = [{"in": "query", "field": name, "message": "there is no such parameter"} for name in unknown]
        detail = f"{unknown[0][:LONGEST_FIELD]}: there is no such parameter"
        problem = Problem(status=422, slug="invalid", title="Invalid request", detail=detail, more={"errors": wrong})
        raise Refused(problem)


def _query_names(dependant: Dependant) -> Iterator[str]:
    """Of the route, and of what it depends on."""
    yield from (parameter.alias for parameter in dependant.query_params)
    for each in dependant.dependencies:
        yield from _query_names(each)


def _breaks_contract(fault: ContractError) -> Problem:
    """What only shows when an event is made of it."""
    wrong = [{"in": "body", "field": fault.field, "message": fault.reason}]
    more = {"errors": wrong}
    return Problem(status=422, slug="invalid", title="Invalid request", detail=str(fault), more=more)


def _http(fault: HTTPException) -> Problem:
    """What the framework itself refuses: no such path, no such method, a body that is no JSON."""
    title = HTTPStatus(fault.status_code).phrase
    slug = title.lower().replace(" ", "-")
    headers = fault.headers or {}
    detail = NOWHERE.get(fault.status_code) if fault.detail == title else None
    return Problem(
        status=fault.status_code, slug=slug, title=title, detail=detail or str(fault.detail), headers=headers
    )


def _invalid(fault: RequestValidationError) -> Problem:
    if isinstance(fault.body, bytes) and fault.body:  # nobody has read it: what sends it says that it is a form
        errors = [{"in": "header", "field": "Content-Type", "message": AS_JSON}]
        detail = f"Content-Type: {AS_JSON}"
        return Problem(status=422, slug="invalid", title="Invalid request", detail=detail, more={"errors": errors})
    return problem_of_fields(cast("Sequence[dict[str, Any]]", fault.errors()))


def problem_of_item(fault: ValidationError) -> Problem:
    """For one of many in a body that was read item by item: as if it had been a body of its own."""
    errors = cast("Sequence[dict[str, Any]]", fault.errors(include_url=False, include_input=False))
    return problem_of_fields([{**error, "loc": ("body", *error["loc"])} for error in errors])


def problem_of_fields(errors: Sequence[dict[str, Any]]) -> Problem:
    """Names each field and never repeats what was in it."""
    wrong = [_wrong(error) for error in errors[:MOST_FIELDS]]
    detail = "; ".join(f"{entry['field'] or entry['in']}: {entry['message']}" for entry in wrong)
    return Problem(status=422, slug="invalid", title="Invalid request", detail=detail, more={"errors": wrong})


def _wrong(error: dict[str, Any]) -> dict[str, str]:
    place, *path = error["loc"]
    if error["type"] == "json_invalid":  # its path is an offset
        return {"in": place, "field": "", "message": "this is not JSON"}
    return {"in": str(place), "field": ".".join(map(str, path))[:LONGEST_FIELD], "message": worded(error)}


def _refused(fault: Refused) -> Problem:
    return fault.problem


DEFAULTS: Final[Faults] = {
    Refused: _refused,
    ContractError: _breaks_contract,
    RequestValidationError: _invalid,
    HTTPException: _http,
    HeaderTwice: _twice,
    Unauthorized: _unauthorized,
    Forbidden: _forbidden,
    KeysAway: _keys_away,
    BodyCut: _cut,
    BodyTooSlow: _too_slow,
    BodyTooLarge: _too_large,
    BodyTooDeep: _unreadable,
    HalfCharacter: _unreadable,
}


def problem_for(fault: Exception, faults: Faults) -> Problem:
    """The answer that an exception becomes, by the table and the one that holds everywhere."""
    table = _everywhere(faults)
    nearest = next(kind for kind in type(fault).__mro__ if kind in table)
    return table[nearest](fault)


def answer_with_problems(app: FastAPI, faults: Faults) -> None:
    """Every exception that a request can end with becomes a problem: by the table, else 500."""
    for kind, problem in _everywhere(faults).items():
        app.add_exception_handler(kind, _handler(problem))
    app.add_exception_handler(405, _not_this_method)
    app.add_middleware(_Outermost)


def _everywhere(faults: Faults) -> Faults:
    return {**DEFAULTS, **faults}


def _handler(problem: ProblemOf) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def respond(request: Request, fault: Exception) -> Response:  # a plain function would cost a thread
        return problem(fault).response()

    return respond


async def _not_this_method(request: Request, fault: Exception) -> Response:
    """With all methods that the path takes: the framework names those of its first route alone."""
    answer = _http(cast("HTTPException", fault)).response()
    answer.headers["Allow"] = ", ".join(method for method in METHODS if _takes(request, method))
    return answer


def _takes(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)


class _Outermost:
    """What every answer passes. A fault that arrives here is a bug: it is logged in full, and the client gets the id to
    ask with."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(_with_defaults(message) if message["type"] == "http.response.start" else message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            if begun:  # half an answer cannot be taken back: the server cuts the connection
                raise
            problem = _internal()
            logger.exception("a request ended in a fault", extra={"debug_id": problem.debug_id, "path": scope["path"]})
            await problem.response()(scope, receive, watched)


def _with_defaults(start: Message) -> Message:
    said = {name for name, _ in start["headers"]}
    return {**start, "headers": [*start["headers"], *(each for each in ANSWERS_SAY if each[0] not in said)]}


def _internal() -> Problem:
    detail = "An unexpected fault. Tell us the debug_id; the same request may work later."
    return Problem(status=500, slug="internal", title="Internal fault", detail=detail, debug_id=current_debug_id())

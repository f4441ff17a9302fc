"""What the routes of a service say of themselves, as OpenAPI.

Owns the words that every service's document shares: each answer that is no success is a problem. `part` is a service's
share of the document of the whole API; the contracts put the shares together.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel

from libs.runtime.problems import MEDIA_TYPE

_NOWHERE: Final = "/models"  # a route of its own is how the framework is told of a model; it is in no document
PROBLEM_RESPONSE: Final[dict[str, Any]] = {
    "description": "Any other answer",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "title", "status", "detail", "debug_id"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "debug_id": {"type": "string", "description": "The id of the trace: it finds everything that was logged."},
    },
}


def operation_id(route: APIRoute) -> str:
    """What a generated client names its function by: `submit_job` is submitJob."""
    first, *others = route.name.split("_")
    return first + "".join(map(str.capitalize, others))


class DescribedApp(FastAPI):
    """Its document names the problem as the answer of every route beside its own.

    What `speaks_for` gives is shown instead, where the application speaks for others too. The framework has an
    attribute for that, and makes its own document all the same as soon as a route was added.
    """

    def __init__(self, **options: Any) -> None:
        # A path with one slash too many is another path: a redirect would send its client to whatever host it named.
        super().__init__(
            **options,
            redirect_slashes=False,
            responses={"default": PROBLEM_RESPONSE},
            generate_unique_id_function=operation_id,
        )
        self.speaks_for: Callable[[], dict[str, Any]] | None = None

    def openapi(self) -> dict[str, Any]:
        if self.speaks_for is not None:
            return self.speaks_for()
        document = super().openapi()
        document.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
        return document


def _either(one: Any, other: Any) -> Any:
    return one | other


def part(
    routers: Iterable[APIRouter], *, models: Sequence[type[BaseModel]] = (), schemas: Mapping[str, Any] | None = None
) -> str:
    """The document of these routes alone, on one line. None of them is called. `models` and `schemas`: what they refer
    to beside the models of their own."""
    app = DescribedApp()
    if models:
        app.add_api_route(_NOWHERE, lambda: None, response_model=reduce(_either, models))
    for router in routers:
        app.include_router(router)
    document = app.openapi()
    document["paths"].pop(_NOWHERE, None)
    document["components"]["schemas"] |= schemas or {}
    return json.dumps(document, ensure_ascii=False) + "\n"

"""What a supervisor and a scraper ask a process: whether it is alive, whether it is ready, how it is.

Answered from the first moment to the last, in front of the gate and of everything that a service says to its clients.
"""

from collections.abc import Mapping
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from libs.runtime.gate import Gate
from libs.runtime.lifecycle import Health
from libs.runtime.problems import Problem
from libs.runtime.telemetry import Telemetry

HEADERS: Final[Mapping[str, str]] = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
NOWHERE: Final = Problem(
    status=404,
    slug="not-found",
    title="Not Found",
    detail="there is nothing at this path: this service answers /livez, /readyz and /metrics",
    headers=HEADERS,
)
GET_ALONE: Final = Problem(
    status=405,
    slug="method-not-allowed",
    title="Method Not Allowed",
    detail="this path does not take the method: the header Allow names those that it takes",
    headers={**HEADERS, "Allow": "GET"},
)


class Probes:
    """The application of a service that has no clients, or what stands before the one (`rest`) that clients ask.

    Without `metrics` these are answered elsewhere.
    """

    def __init__(
        self, *, gate: Gate, health: Health, telemetry: Telemetry, rest: ASGIApp | None = None, metrics: bool = True
    ) -> None:
        self._gate = gate
        self._health = health
        self._telemetry = telemetry
        self._rest = rest or _nowhere
        self._answers = {"/livez": self._alive, "/readyz": self._ready}
        if metrics:
            self._answers["/metrics"] = self._metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answers.get(scope["path"])
        if answer is None:
            await self._rest(scope, receive, send)
        elif scope["method"] != "GET":
            await GET_ALONE.response()(scope, receive, send)
        else:
            await answer()(scope, receive, send)

    def _alive(self) -> Response:
        return _text("alive\n")

    def _ready(self) -> Response:
        """Names what is missing; why it is missing stands in the log, as it may name addresses. Each note is a line."""
        missing = [*(missing.name for missing in self._health.missing), *([] if self._gate.is_open else ["gate"])]
        if not missing:
            return _text("".join(f"{line}\n" for line in ("ready", *self._health.notes)))
        return Problem(
            status=503,
            slug="not-ready",
            title="Not ready",
            detail=f"Waiting for {', '.join(missing)}.",
            retry_after_s=1,
            headers=HEADERS,
            more={"missing": missing},
        ).response()

    def _metrics(self) -> Response:
        return Response(self._telemetry.metrics_text(), media_type=CONTENT_TYPE_LATEST, headers=HEADERS)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    await NOWHERE.response()(scope, receive, send)


def _text(said: str) -> Response:
    return Response(said, media_type="text/plain", headers=HEADERS)

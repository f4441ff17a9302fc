"""What a client is told when the answer is no: `application/problem+json` (RFC 9457), with a `debug_id` always.

Owns the answer; which fault becomes which is in `faults`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import StatusCode
from starlette.responses import JSONResponse

from libs.runtime.telemetry import current_debug_id

MEDIA_TYPE: Final = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One answer. `more` are members beside the standard ones; without a `debug_id` it is the request's trace."""

    status: int
    slug: str
    title: str
    detail: str
    retry_after_s: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    more: Mapping[str, object] = field(default_factory=dict[str, object])
    debug_id: str | None = None

    def body(self) -> dict[str, object]:
        """What stands in the answer, or in the place of one of many that were asked for at once."""
        return {
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "debug_id": self.debug_id or current_debug_id(),
            **self.more,
        }

    def response(self) -> JSONResponse:
        if self.status >= 500:
            trace.get_current_span().set_status(StatusCode.ERROR, self.detail)
        waits = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        return JSONResponse(self.body(), self.status, headers={**self.headers, **waits}, media_type=MEDIA_TYPE)

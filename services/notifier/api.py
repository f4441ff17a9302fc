"""The HTTP edge of the notifier: streams, and the page that reads them."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles

from libs.runtime.auth import Principal, principal
from libs.runtime.problems import Problem, Refused, known_query
from services.notifier.domain import Complete
from services.notifier.handlers import Notifier

DASHBOARD: Final = FilePath(__file__).parent / "dashboard"
SSE_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
PAGE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
JobIdPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)]
AskedEventId = Annotated[str | None, Query(alias="last_event_id", max_length=100)]
Reader = Annotated[Principal, Depends(principal(scope="jobs:read"))]


def streams(notifier: Notifier) -> APIRouter:
    """Everything is decided before the first byte: a stream that has begun can only be cut."""
    router = APIRouter(prefix="/v1", dependencies=[Depends(known_query)])

    @router.get("/jobs/{job_id}/stream", response_class=StreamingResponse)
    async def stream(
        job_id: JobIdPath, who: Reader, header: LastEventId = None, asked: AskedEventId = None
    ) -> Response:
        history = await notifier.history(job_id)
        mine = history is not None and history.job.user_id == who.user and who.may_use(history.job.project_id)
        if history is None or not (mine or who.may("ops")):
            detail = f"you have no job {job_id}"
            raise Refused(Problem(status=404, slug="not-found", title="No such job", detail=detail))
        last_event_id = header or asked
        if isinstance(notifier.where(last_event_id, history), Complete):
            return Response(status_code=204)
        return StreamingResponse(
            notifier.follow(job_id, last_event_id), media_type="text/event-stream", headers=SSE_HEADERS
        )

    return router


def page() -> APIRouter:
    """The page, and what it is made of."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def index() -> FileResponse:
        return FileResponse(DASHBOARD / "index.html", headers=PAGE_HEADERS)

    return router


class Assets(StaticFiles):
    """Files of the page, under the page's own rules."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers.update(PAGE_HEADERS)
        return response

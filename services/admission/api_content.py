"""HTTP: what jobs were made from, what they made and said, and its erasure."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Response
from fastapi.responses import JSONResponse, StreamingResponse

from headgate_contracts import Job
from headgate_contracts.envelope import utc
from headgate_contracts.shown import Erasure
from headgate_contracts.tokens import foreign_token, input_name
from headgate_contracts.vocabulary import ActName
from libs.eventlog.buckets import Found
from libs.eventlog.lines import LinePage
from libs.eventlog.ports import Objects
from libs.runtime.auth import Principal
from libs.runtime.etags import has_it
from libs.runtime.faults import Refused
from libs.runtime.wording import counted
from services.admission import problems
from services.admission.api import Edge, JobIdPath, Operator, Reader, ReasonQuery, route_group
from services.admission.erasing import Erased, NobodysJobs
from services.admission.ranges import ByteRange, OutOfRange, Whole, wanted_part
from services.admission.transcript import Format, JsonLines, Plain

GZIP = "application/gzip"
TEXT = "text/plain; charset=utf-8"
NDJSON = "application/x-ndjson"
MOST_ACTS: Final = 10_000  # looked through for an erasure: an operator does not do more in a day
Responses = dict[int | str, dict[str, Any]]
BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
RESULT: Final[Responses] = {
    200: {"description": "The whole archive", "content": {GZIP: BINARY}},
    206: {"description": "The part of it that `Range` asks for", "content": {GZIP: BINARY}},
    304: {"description": "The one that `If-None-Match` names"},
}
LOG: Final[Responses] = {
    200: {
        "description": "Every line that is kept, of each attempt and stage; a mark stands where some are gone",
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            NDJSON: {"schema": {"type": "string", "description": "one object a line: attempt, stage, line, ts"}},
        },
    }
}
INPUT: Final[Responses] = {
    200: {"description": "The input", "content": {"application/json": {"schema": {"type": "object"}}}}
}
ERASURE: Final[Responses] = {202: {"model": Erasure, "description": "Some jobs still run: repeat it"}}
ForeignPath = Annotated[str, Path(min_length=1, max_length=256)]


@dataclass(frozen=True, slots=True)
class Conditions:
    """The headers that say which part is wanted, and what is there already."""

    range: Annotated[str | None, Header()] = None
    if_range: Annotated[str | None, Header()] = None
    if_none_match: Annotated[str | None, Header()] = None


Accept = Annotated[str, Header(include_in_schema=False)]  # OpenAPI says it by the content types of the answer
Conditional = Annotated[Conditions, Depends()]


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result that is there. Its digest is a strong ETag: other bytes have another."""

    job: Job
    found: Found

    @property
    def etag(self) -> str:
        return f'"{self.found.digest}"'

    @property
    def headers(self) -> dict[str, str]:
        return {
            "ETag": self.etag,
            "Accept-Ranges": "bytes",
            "Cache-Control": "private, no-cache",
            "Content-Disposition": f'attachment; filename="{self.job.id}.tar.gz"',
        }


async def stored_result(edge: Edge, job_id: str, who: Principal) -> StoredResult:
    job = await edge.own(job_id, who)
    found = await edge.results.find(job.result) if job.result else None
    if found is None:
        raise Refused(problems.no_result(job, days=edge.policy.retention.results_days))
    return StoredResult(job, found)


def result_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.get("/jobs/{job_id}/result", response_class=Response, responses=RESULT)
    async def get_result(job_id: JobIdPath, who: Reader, asked: Conditional) -> Response:
        """The result as a .tar.gz. Its ETag is its digest, so an interrupted download continues with `Range` and
        `If-Range`."""
        it = await stored_result(edge, job_id, who)
        if has_it(asked.if_none_match, etag=it.etag):
            return Response(status_code=304, headers=it.headers)
        return _content(edge.results, it, asked)

    @router.head("/jobs/{job_id}/result", response_class=Response)
    async def head_result(job_id: JobIdPath, who: Reader, asked: Conditional) -> Response:
        """Size and ETag of the result."""
        it = await stored_result(edge, job_id, who)
        if has_it(asked.if_none_match, etag=it.etag):
            return Response(status_code=304, headers=it.headers)
        return Response(headers={**it.headers, "Content-Length": str(it.found.size)}, media_type=GZIP)

    return router


def _content(results: Objects, it: StoredResult, asked: Conditions) -> Response:
    """All of it, or the part that is asked for: chunk by chunk, as a result may be large."""
    size = it.found.size
    match wanted_part(asked.range, size=size, etag=it.etag, if_range=asked.if_range):
        case Whole():
            told = {**it.headers, "Content-Length": str(size)}
            return StreamingResponse(results.stream(it.found), 200, told, GZIP)
        case ByteRange(start, end):
            told = {**it.headers, "Content-Range": f"bytes {start}-{end - 1}/{size}"}
            told["Content-Length"] = str(end - start)
            return StreamingResponse(results.stream(it.found, start=start, end=end), 206, told, GZIP)
        case OutOfRange():
            raise Refused(problems.out_of_range(size))


def input_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.get("/jobs/{job_id}/input", response_class=Response, responses=INPUT)
    async def get_input(job_id: JobIdPath, who: Reader) -> Response:
        """The job's input, for as long as it is kept."""
        job = await edge.own(job_id, who)
        content = await edge.inputs.get(input_name(job.id, job.submission.input_digest))
        if content is None:
            raise Refused(problems.no_input(days=edge.policy.retention.inputs_days))
        return Response(content, media_type="application/json", headers={"Cache-Control": "private, no-store"})

    return router


def log_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.get("/jobs/{job_id}/log", response_class=Response, responses=LOG)
    async def get_log(job_id: JobIdPath, who: Reader, accept: Accept = "*/*") -> Response:
        """The job's log so far: as text, or, if `application/x-ndjson` is accepted, as one JSON object per line."""
        job = await edge.own(job_id, who)
        pages = edge.lines.of(job.id)
        first = await anext(pages, None)
        if first is None and (job.attempt == 0 or job.status.is_end):
            days = edge.policy.retention.logs_days
            raise Refused(problems.no_log(job, gone=await _lines_went(edge, job, days=days), days=days))
        json = NDJSON in accept.lower()
        body = _written(JsonLines() if json else Plain(), first, pages)
        headers = {"Vary": "Accept"}
        return StreamingResponse(body, headers=headers, media_type=NDJSON if json else TEXT)

    return router


async def _lines_went(edge: Edge, job: Job, *, days: int) -> bool:
    """Whether lines of this job would be gone by now, as far as the log tells."""
    if not job.status.is_end or job.attempt == 0:
        return False
    if utc(edge.clock.now_ms()) - job.updated_at >= timedelta(days=days):
        return True
    acts = await edge.overseeing.acts(since=job.created_at, after=0, count=MOST_ACTS)
    return any(each.act == ActName.CONTENT_ERASED and each.about == job.user_id for each in acts)


def erasure_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.delete("/users/{user_id:path}/content", response_model=Erasure, responses=ERASURE)
    async def erase_content(user_id: ForeignPath, who: Operator, reason: ReasonQuery = "") -> JSONResponse:
        """Ends the user's jobs and deletes their inputs, workspaces, results and logs. If the answer is 202, a worker
        was still ending one of the jobs: send the request again."""
        user = foreign_token(user_id)
        match await edge.erasing.erase(user, by=who.user, reason=reason):
            case NobodysJobs():
                raise Refused(problems.nobodys_jobs(user_id))
            case Erased() as outcome:
                return _erasure(user, outcome)

    return router


async def _written(form: Format, first: LinePage | None, rest: AsyncGenerator[LinePage]) -> AsyncIterator[str]:
    async with aclosing(rest):
        if first is not None:
            yield form.page(first.lines)
        async for page in rest:
            yield form.page(page.lines)


def _erasure(user: str, outcome: Erased) -> JSONResponse:
    running = len(outcome.unfinished)
    message = (
        f"{counted(running, 'job')} still under way: what was there is erased, "
        "repeat this to erase what is written meanwhile"
        if running
        else f"the content of {counted(outcome.jobs, 'job')} is erased"
    )
    shown = Erasure(
        user_id=user,
        jobs=outcome.jobs,
        cancelled=outcome.cancelled,
        unfinished=outcome.unfinished,
        message=message,
    )
    return JSONResponse(shown.model_dump(mode="json"), 202 if running else 200)

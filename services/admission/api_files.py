"""HTTP: what a result holds, file by file.

Nothing of a result may run in the page's origin, however it is opened: each file is an attachment of a safe type, in a
sandbox of its own; that no browser guesses another type, every answer says (`libs.runtime.http`).
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Header, Path, Response
from fastapi.responses import JSONResponse

from headgate_contracts.shown import ShownFiles
from libs.runtime.errors import ArchiveRefused
from libs.runtime.etags import has_it
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Edge, JobIdPath, Reader, route_group
from services.admission.api_content import StoredResult, stored_result
from services.admission.files import PACKED_BYTES, content_of, listed

T = TypeVar("T")

AT_ONCE: Final = 2  # results that one replica reads at a time: each is in memory, and costs a processor
FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The file, in its own type where that is safe to show",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
    304: {"description": "The one that `If-None-Match` names"},
}
SANDBOXED: Final = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FilePath = Annotated[str, Path(min_length=1, max_length=500)]  # of any letters: a gateway takes a head of 8 KiB
Known = Annotated[str | None, Header(alias="If-None-Match")]


class OpenedResults:
    """Results whose archives are read here, few at a time."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def read(self, it: StoredResult, reader: Callable[[bytes], T]) -> T:
        """What the reader makes of the archive, in a thread: it blocks."""
        if it.found.size > PACKED_BYTES:
            raise Refused(problems.result_not_opened(f"it has {it.found.size} bytes, more than {PACKED_BYTES}"))
        async with self._at_once:
            archive = b"".join([piece async for piece in self._edge.results.stream(it.found)])
            try:
                return await asyncio.to_thread(reader, archive)
            except ArchiveRefused as refused:
                raise Refused(problems.result_not_opened(str(refused.facts["why"]))) from refused


def file_routes(edge: Edge) -> APIRouter:
    router, opened = route_group(), OpenedResults(edge)

    @router.get("/jobs/{job_id}/files", response_model=ShownFiles)
    async def list_files(job_id: JobIdPath, who: Reader, known: Known = None) -> Response:
        """The files of the result: path, size and type of each."""
        it = await stored_result(edge, job_id, who)
        headers = _headers(it)
        if has_it(known, etag=it.etag):
            return Response(status_code=304, headers=headers)
        files = await opened.read(it, listed)
        shown = ShownFiles(job_id=it.job.id, bytes=sum(each.size for each in files), files=files)
        return JSONResponse(shown.model_dump(mode="json"), headers=headers)

    @router.get("/jobs/{job_id}/files/{path:path}", response_class=Response, responses=FILE)
    async def get_file(job_id: JobIdPath, path: FilePath, who: Reader, known: Known = None) -> Response:
        """One file of the result."""
        it = await stored_result(edge, job_id, who)
        headers = {**_headers(it), **SANDBOXED, "Content-Disposition": _attachment(path)}
        if has_it(known, etag=it.etag):
            return Response(status_code=304, headers=headers)
        found = await opened.read(it, partial(content_of, path=path))
        if found is None:
            raise Refused(problems.no_file(path))
        content, kind = found
        return Response(content, headers=headers, media_type=kind)

    return router


def _headers(it: StoredResult) -> dict[str, str]:
    return {"ETag": it.etag, "Cache-Control": "private, no-cache"}


def _attachment(path: str) -> str:
    return f"attachment; filename*=UTF-8''{quote(path.rpartition('/')[2], safe='')}"

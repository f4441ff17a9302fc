"""The page and what it is made of, under the page's own rules.

Read once, at the start, so that a request costs neither a thread nor a disk: a browser asks for some 45 files at once.
One that has a file already is told so, and gets nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Header, HTTPException, Response

from libs.runtime.etags import has_it

DASHBOARD: Final = Path(__file__).parent / "dashboard"
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class File:
    """One file as it is sent."""

    body: bytes
    kind: str
    etag: str

    @classmethod
    def read(cls, path: Path) -> File:
        body = path.read_bytes()
        return cls(body, KINDS[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')

    def answer(self, known: str | None) -> Response:
        headers = {**HEADERS, "ETag": self.etag}
        if has_it(known, etag=self.etag):
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type=self.kind, headers=headers)


Known = Annotated[str | None, Header(alias="If-None-Match")]


def page() -> APIRouter:
    """`/` and `/assets/...`: nothing is there but what was read."""
    router = APIRouter(include_in_schema=False)
    files = dict(_files())

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(known: Known = None) -> Response:
        return files["index.html"].answer(known)

    @router.api_route("/assets/{name:path}", methods=["GET", "HEAD"])
    async def asset(name: str, known: Known = None) -> Response:
        file = files.get(f"assets/{name}")
        if file is None:
            raise HTTPException(404, "the page has no such file")
        return file.answer(known)

    return router


def _files() -> Iterator[tuple[str, File]]:
    for path in DASHBOARD.rglob("*"):
        if path.suffix in KINDS:
            yield path.relative_to(DASHBOARD).as_posix(), File.read(path)

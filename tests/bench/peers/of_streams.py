"""The floors beside streams, both on uvloop: `of_streams.py bare PORT` is a protocol that writes what is said to
everybody, and nothing else; `of_streams.py starlette PORT` a StreamingResponse of Starlette's for each, by uvicorn.

Whatever is posted to /say goes to everybody who listens at /v1/stream.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

RETRY = b"retry: 2000\n\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
SAID = b"HTTP/1.1 204 No Content\r\n\r\n"

queues: set[asyncio.Queue[bytes]] = set()
listening: set[asyncio.Transport] = set()


class Bare(asyncio.Protocol):
    """One connection: one that listens, or one that says."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.came = b""

    def data_received(self, data: bytes) -> None:
        self.came += data
        if self.came.startswith(b"GET") and self.came.endswith(b"\r\n\r\n"):
            self.transport.write(HEAD + chunk(RETRY))
            listening.add(self.transport)
        elif self.came.startswith(b"POST") and (said := body(self.came)) is not None:
            self.came, piece = b"", chunk(said)
            for transport in listening:
                transport.write(piece)
            self.transport.write(SAID)

    def connection_lost(self, exc: Exception | None) -> None:
        listening.discard(self.transport)


def body(request: bytes) -> bytes | None:
    """Null until all of it has come."""
    head, _, rest = request.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split()[0])
    return rest if len(rest) == length else None


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


async def stream(request: Request) -> StreamingResponse:
    return StreamingResponse(pieces(), media_type="text/event-stream")


async def say(request: Request) -> Response:
    said = await request.body()
    for queue in queues:
        queue.put_nowait(said)
    return Response(status_code=204)


async def pieces() -> AsyncIterator[bytes]:
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    queues.add(queue)
    try:
        yield RETRY
        while True:
            yield await queue.get()
    finally:
        queues.discard(queue)


async def bare(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "bare":
        uvloop.run(bare(int(sys.argv[2])))
    else:
        app = Starlette(routes=[Route("/v1/stream", stream), Route("/say", say, methods=["POST"])])
        quiet = {"log_level": "warning", "access_log": False, "backlog": 2048}
        uvicorn.run(app, port=int(sys.argv[2]), loop="uvloop", http="httptools", **quiet)

"""Bytes at a socket, and what is answered to them, by nobody's client."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Final

HOST: Final = "127.0.0.1"
QUIET_S: Final = 20.0  # longer than any bound of the gateway on a head
LATE_S: Final = 0.2  # for an answer more than is expected
STATUS: Final = re.compile(rb"^HTTP/1\.[01] (\d{3}) ", re.MULTILINE)


async def exchange(port: int, raw: bytes, *, most: int = 1) -> bytes:
    """All that comes back until the other side hangs up, or has answered as often as expected and says no more."""
    reader, writer = await asyncio.open_connection(HOST, port)
    said = b""
    try:
        writer.write(raw)
        with suppress(ConnectionError):
            while piece := await _piece(reader, QUIET_S if len(STATUS.findall(said)) < most else LATE_S):
                said += piece
    finally:
        writer.close()
    return said


async def statuses(port: int, raw: bytes, *, most: int = 1) -> tuple[int, ...]:
    said = await exchange(port, raw, most=most)
    return tuple(int(found) for found in STATUS.findall(said))


async def _piece(reader: asyncio.StreamReader, within_s: float) -> bytes:
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            return await reader.read(2**16)
    return b""

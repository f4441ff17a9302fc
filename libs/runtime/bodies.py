"""A request's body before anybody parses it: how large, in which time, how deep, and of characters that can be written.

Owns these four questions. Refuses to know routes: how much one takes is its service's own table.
"""

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from starlette.types import Receive

from libs.runtime.errors import BodyCut, BodyTooDeep, BodyTooLarge, BodyTooSlow, HalfCharacter

MAX_DEPTH: Final = 32  # parsers of Python give up at some hundreds, each version elsewhere, in the midst of a request
LEAST_TIME_S: Final = 10
SLOWEST_BYTES_PER_S: Final = 128 * 1024
PAUSE_S: Final = 0.5  # who sends nothing for so long looks for an answer
THROWN_AWAY_BYTES: Final = 16 * 1024 * 1024  # as much as the gateway lets through

TEXT: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # also one that never ends: nothing is tried twice
STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
BESIDE: Final = bytes(set(range(256)) - STEPS.keys())
SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")  # a cheap first look


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """How much a route takes, and for how long it waits for that."""

    limit_bytes: int

    @property
    def within_s(self) -> float:
        return LEAST_TIME_S + self.limit_bytes / SLOWEST_BYTES_PER_S


async def read_body(receive: Receive, limit: BodyLimit, *, announced: int = 0) -> bytes:
    """All of it, unless it is too large, which what was announced may say beforehand, or takes too long."""
    _require_fits(announced, limit)
    try:
        async with asyncio.timeout(limit.within_s):
            return await _all(receive, limit)
    except TimeoutError as late:
        raise BodyTooSlow(within_s=round(limit.within_s)) from late


async def throw_away(receive: Receive) -> None:
    """What is left of a body, so far as that is bearable: many clients look for their answer only when all is sent, and
    a gateway that has an answer earlier cuts such a client off before it looks."""
    thrown_away = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(LEAST_TIME_S):
            while thrown_away < THROWN_AWAY_BYTES:
                async with asyncio.timeout(PAUSE_S):
                    message = await receive()
                thrown_away += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def require_parsable(body: bytes) -> None:
    """What is nested too deep, or holds half a character, is refused. Whether it is JSON at all is for its parser."""
    if is_deep(body):
        raise BodyTooDeep(levels=MAX_DEPTH)
    if SURROGATE.search(body):
        _require_whole_characters(body)


def is_deep(body: bytes) -> bool:
    """Whether objects and lists are nested deeper than is read. Brackets in texts do not count."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    brackets = TEXT.sub(b"", body).translate(None, BESIDE)
    return max(accumulate(map(STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH


async def _all(receive: Receive, limit: BodyLimit) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyCut
        body += message.get("body", b"")
        _require_fits(len(body), limit)
        if not message.get("more_body", False):
            return bytes(body)


def _require_fits(length: int, limit: BodyLimit) -> None:
    if length > limit.limit_bytes:
        raise BodyTooLarge(limit_bytes=limit.limit_bytes)


def _require_whole_characters(body: bytes) -> None:
    """JSON may spell half a character (`\\ud800`). Python reads it, and nothing can write it again."""
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError as fault:
        raise HalfCharacter from fault
    except ValueError:  # no JSON: the route says so, if it wants JSON at all
        return

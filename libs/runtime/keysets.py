"""The public keys that tokens are checked with: read from files or URLs, held, and read again.

Owns the cache of the keys. Refuses every key that is of another kind than three asymmetric ones, whatever a set says.

    kid known ──────────────────────────────► the key
    kid unknown, or the keys are 5 min old ─► all sources are read again, at most once in 30 s
      a source that cannot be read            keeps the keys it had
      still unknown, all sources read         there is none: the token is refused
      still unknown, a source is away         KeysAway: the token may be good
"""

import asyncio
import logging
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError

import jwt
from pydantic import BaseModel

from libs.runtime.claims import ALGORITHMS
from libs.runtime.clock import Clock
from libs.runtime.errors import KeysAway

logger = logging.getLogger(__name__)

PUBLIC_MEMBERS: Final = ("kty", "kid", "alg", "use", "crv", "n", "e", "x", "y")  # the rest of a private key is dropped

REREAD_MS: Final = 30_000  # so that made-up kids cannot make us ask the issuer at their pace
FIRST_READ_MS: Final = 1_000  # as long as a source was never read, nobody can be let in: ask more often
OLDEST_MS: Final = 300_000  # after which a withdrawn key is noticed
READ_S: Final = 3.0
LARGEST_SET: Final = 256 * 1024  # bytes


class _KeySet(BaseModel):
    keys: list[dict[str, Any]]


class Keys:
    """The public keys of all sources (files or URLs), by `kid`."""

    def __init__(
        self, sources: Sequence[str], *, clock: Clock, read: Callable[[str], Awaitable[bytes]] | None = None
    ) -> None:
        self._clock = clock
        self._read = read or read_source
        self._by_source: dict[str, dict[str, jwt.PyJWK] | None] = dict.fromkeys(sources)  # null: never read
        self._away: set[str] = set()
        self._tried_ms: int | None = None
        self._turn = asyncio.Lock()  # one reading at a time; who needs it waits for it

    async def load(self) -> None:
        """Reads all sources if it is time to. Raises KeysAway as long as one of them was never read."""
        await self._reread()
        if None in self._by_source.values():
            raise KeysAway(self._wait_s())

    async def find(self, kid: str) -> jwt.PyJWK | None:
        """The key of that name. Null where all sources say that there is none."""
        known = self._known(kid)
        if known is None or (self._waited(OLDEST_MS) and not self._turn.locked()):
            await self._reread()
            known = self._known(kid)
        if known is None and self._away:
            raise KeysAway(self._wait_s())
        return known

    def _known(self, kid: str) -> jwt.PyJWK | None:
        return next((keys[kid] for keys in self._by_source.values() if keys and kid in keys), None)

    async def _reread(self) -> None:
        async with self._turn:
            if self._waited(self._pause_ms()):
                self._tried_ms = self._clock.monotonic_ms()
                await asyncio.gather(*map(self._reread_source, self._by_source))

    async def _reread_source(self, source: str) -> None:
        try:
            self._by_source[source] = keys_of(await self._read(source))
        except (OSError, HTTPException, ValueError) as fault:
            if source not in self._away:
                logger.warning("the keys at %s cannot be read, those from before stay: %s", source, fault)
            self._away.add(source)
        else:
            if source in self._away:
                logger.info("the keys at %s can be read again", source)
            self._away.discard(source)

    def _pause_ms(self) -> int:
        return FIRST_READ_MS if None in self._by_source.values() else REREAD_MS

    def _waited(self, duration_ms: int) -> bool:
        return self._tried_ms is None or self._clock.monotonic_ms() - self._tried_ms >= duration_ms

    def _wait_s(self) -> int:
        return -(-self._pause_ms() // 1000)


async def read_source(source: str) -> bytes:
    """The bytes of a file or of a URL, in a thread."""
    async with asyncio.timeout(2 * READ_S):  # READ_S is for each of the socket's operations
        return await asyncio.to_thread(_fetched if "://" in source else _from_file, source)


def _fetched(source: str) -> bytes:
    try:
        with urllib.request.urlopen(source, timeout=READ_S) as response:  # noqa: S310 - the settings let http and https through
            return _bounded(response.read(LARGEST_SET + 1))
    except HTTPError as answered:
        with answered:  # the connection is still open
            raise


def _from_file(source: str) -> bytes:
    return _bounded(Path(source).read_bytes())


def _bounded(encoded: bytes) -> bytes:
    if len(encoded) > LARGEST_SET:
        raise ValueError(f"a key set of more than {LARGEST_SET} bytes")
    return encoded


def keys_of(encoded: bytes) -> dict[str, jwt.PyJWK]:
    """The keys of a set that tokens may be signed with. Others are passed over: a set may serve many purposes."""
    found = map(_key, _KeySet.model_validate_json(encoded).keys)
    return {key.key_id: key for key in found if key is not None and key.key_id}


def _key(entry: dict[str, Any]) -> jwt.PyJWK | None:
    public = {name: entry[name] for name in PUBLIC_MEMBERS if name in entry}
    if public.get("use", "sig") != "sig" or public.get("kty") == "oct":
        return None
    try:
        key = jwt.PyJWK(public)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return key if key.algorithm_name in ALGORITHMS else None

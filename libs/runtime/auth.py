"""Who is asking: a signed token becomes a `Principal`, or a refusal.

Owns the check of tokens and the cache of the keys they are checked with. Refuses every algorithm but three asymmetric
ones, whatever a token or a key set says; a token never chooses how it is checked: its key does.

    kid known ──────────────────────────────► checked
    kid unknown, or the keys are 5 min old ─► all sources are read again, at most once in 30 s
      a source that cannot be read            keeps the keys it had
      still unknown, all sources read         401
      still unknown, a source is away         503: the token may be good
"""

import asyncio
import logging
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any, Final, cast
from urllib.error import HTTPError

import jwt
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headgate_contracts.tokens import foreign_token
from headgate_contracts.vocabulary import Tier
from libs.runtime.clock import Clock
from libs.runtime.errors import Forbidden, KeysAway, Unauthorized

logger = logging.getLogger(__name__)

ALGORITHMS: Final = frozenset({"RS256", "ES256", "EdDSA"})
PUBLIC_MEMBERS: Final = ("kty", "kid", "alg", "use", "crv", "n", "e", "x", "y")  # the rest of a private key is dropped

REREAD_MS: Final = 30_000  # so that made-up kids cannot make us ask the issuer at their pace
FIRST_READ_MS: Final = 1_000  # as long as a source was never read, nobody can be let in: ask more often
OLDEST_MS: Final = 300_000  # after which a withdrawn key is noticed
READ_S: Final = 3.0
LARGEST_SET: Final = 256 * 1024  # bytes
LARGEST_TOKEN: Final = 8 * 1024  # characters
LEEWAY_S: Final = 10  # between the issuer's clock and ours

WRONG: Final[dict[type[Exception], str]] = {
    jwt.ExpiredSignatureError: "The token has expired",
    jwt.ImmatureSignatureError: "The token is not valid yet",
    jwt.InvalidAudienceError: "The token is for another audience",
    jwt.InvalidIssuerError: "The token is from another issuer",
    jwt.MissingRequiredClaimError: "The token lacks a claim: exp, iss, aud and sub are required",
}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking, and what they may do. `projects` is null where they may use any."""

    user: str
    tier: Tier
    scopes: frozenset[str]
    projects: frozenset[str] | None = None
    expires_s: float | None = field(default=None, compare=False)  # since 1970; null: nobody said

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def may_use(self, project: str) -> bool:
        return self.projects is None or project in self.projects


class _Claims(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    sub: Annotated[str, Field(min_length=1, max_length=256)]
    exp: float
    tier: Tier
    scope: Annotated[str, Field(strict=True)] = ""
    projects: Annotated[list[str], Field(strict=True)] | None = None

    def principal(self) -> Principal:
        projects = None if self.projects is None else frozenset(map(foreign_token, self.projects))
        scopes = frozenset(self.scope.split())
        return Principal(foreign_token(self.sub), self.tier, scopes, projects, expires_s=self.exp)


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


class Tokens:
    """Checks tokens of one issuer for one audience."""

    def __init__(self, keys: Keys, *, issuer: str, audience: str) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience

    async def check(self, token: str) -> Principal:
        """Whose token it is. Raises Unauthorized with the reason, or KeysAway."""
        key = await self._keys.find(_kid(token))
        if key is None:
            raise Unauthorized("The token is signed with an unknown key")
        try:
            claims = self._claims(token, key)
            return _Claims.model_validate(claims).principal()
        except jwt.PyJWTError as fault:
            raise Unauthorized(WRONG.get(type(fault), "The token is not valid")) from fault
        except ValidationError as fault:
            wrong = sorted({str(error["loc"][0]) for error in fault.errors()})
            raise Unauthorized(f"The token has a claim that cannot be used: {', '.join(wrong)}") from fault

    def _claims(self, token: str, key: jwt.PyJWK) -> dict[str, Any]:
        return jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=self._audience,
            issuer=self._issuer,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iss", "aud", "sub"], "enforce_minimum_key_length": True},
        )


def principal(*, scope: str | None = None) -> Callable[..., Awaitable[Principal]]:
    """A dependency for routes: whoever asks, if their token is good and has the scope."""

    async def authenticated(
        request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
    ) -> Principal:
        if credentials is None:
            raise Unauthorized("No token was sent", missing=True)
        found = await cast("Tokens", request.app.state.tokens).check(credentials.credentials)
        if scope is not None and not found.may(scope):
            raise Forbidden(scope)
        return found

    return authenticated


BEARER: Final = HTTPBearer(bearerFormat="JWT", auto_error=False)  # the refusal is ours


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


def _kid(token: str) -> str:
    """What the token says of itself: enough to look for its key, and no more is believed."""
    if len(token) > LARGEST_TOKEN:
        raise Unauthorized("The token is too long")
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as fault:
        raise Unauthorized("The token is not a JWT") from fault
    if header.get("alg") not in ALGORITHMS:
        raise Unauthorized(f"The token must be signed with {', '.join(sorted(ALGORITHMS))}")
    if not header.get("kid"):
        raise Unauthorized("The token does not name its key (kid)")
    return header["kid"]

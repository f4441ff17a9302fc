"""Who is asking: a signed token becomes a `Principal`, or a refusal.

Owns the check of tokens. A token never chooses how it is checked: its key does (`keysets`); what it says is believed
only afterwards (`claims`). A signature is verified once for as long as its key stays. Whether the token is of this
time (`claims`), and was not taken back (`revocations`), is asked at each request.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final, cast

import jwt
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from headgate_contracts import Job
from headgate_contracts.tokens import foreign_token
from headgate_contracts.vocabulary import Tier
from libs.runtime.claims import Claims, Terms, claims_of, header_of, require_good
from libs.runtime.clock import Clock
from libs.runtime.errors import Forbidden, Unauthorized
from libs.runtime.keysets import Keys
from libs.runtime.revocations import Revocations

READ: Final = "jobs:read"
WRITE: Final = "jobs:write"
LEASES: Final = "leases"
OPS: Final = "ops"
MOST_VERIFIED: Final = 1_000  # tokens, of 8 KiB at most
SIGNATURES: Final = jwt.PyJWS(options={"enforce_minimum_key_length": True})
BEARER: Final = HTTPBearer(bearerFormat="JWT", auto_error=False)  # the refusal is ours
BearerToken = Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking, and what they may do. `projects` are those that they share with others."""

    user: str
    tier: Tier
    scopes: frozenset[str]
    projects: frozenset[str] = frozenset()
    expires_s: float | None = field(default=None, compare=False)  # since 1970; null: nobody said
    token_id: str | None = field(default=None, compare=False)  # by which it can be taken back; null: it cannot

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def owns(self, job: Job) -> bool:
        """The job is the asker's own: it is told in words for its owner."""
        return job.user_id == self.user

    def may_see(self, job: Job) -> bool:
        """It is the asker's own, or the asker is an operator. To all others it does not exist."""
        return self.owns(job) or self.may(OPS)


@dataclass(frozen=True, slots=True)
class _KnownToken:
    """What a token says, and by which key that was verified."""

    key: jwt.PyJWK
    kid: str
    claims: Claims


class Tokens:
    """Checks tokens of one issuer for one audience."""

    def __init__(self, keys: Keys, terms: Terms, *, clock: Clock) -> None:
        self.keys = keys
        self._known: dict[str, _KnownToken] = {}
        self.revocations = Revocations(clock=clock)
        self._terms = terms
        self._clock = clock

    async def check(self, token: str) -> Principal:
        """Whose token it is. Raises Unauthorized with the reason, or KeysAway."""
        claims = await self._claims_of(token)
        require_good(claims, self._terms, now_s=self._clock.now_ms() / 1000)
        return self.still_good(_principal_of(claims))

    async def _claims_of(self, token: str) -> Claims:
        """Once its signature is verified. The keys are read again every few minutes, and with each of them that is."""
        known = self._known.get(token)
        kid = header_of(token).kid if known is None else known.kid
        key = await self.keys.find(kid)
        if key is None:
            raise Unauthorized("The token is signed with an unknown key")
        if known is None or known.key is not key:
            known = _KnownToken(key, kid, claims_of(_verified(token, key)))
            self._keep(token, known)
        return known.claims

    def _keep(self, token: str, known: _KnownToken) -> None:
        """Only the issuer fills it, as nobody else can sign; the one that was first verified goes first."""
        self._known[token] = known
        if len(self._known) > MOST_VERIFIED:
            del self._known[next(iter(self._known))]

    def still_good(self, found: Principal) -> Principal:
        """Raises Unauthorized where the token that it goes back to was taken back."""
        if found.token_id in self.revocations:
            raise Unauthorized("The token was taken back")
        return found


def _verified(token: str, key: jwt.PyJWK) -> bytes:
    try:
        return SIGNATURES.decode(token, key)
    except jwt.PyJWTError as fault:
        raise Unauthorized("The token is not valid") from fault


def _principal_of(claims: Claims) -> Principal:
    projects = frozenset(map(foreign_token, claims.projects or ()))
    user = foreign_token(claims.sub)
    return Principal(user, claims.tier, claims.scopes, projects, expires_s=claims.exp, token_id=claims.jti)


class Identity:
    """How a route learns who asks. The guard finds it before a byte of the body is read; the route is given what was
    found. One of the scopes is enough; where none is named, any good token is."""

    def __init__(self, *scopes: str) -> None:
        self._scopes = scopes

    async def find(self, request: Request) -> Principal:
        """By the token that came with the request. Raises Unauthorized, Forbidden, or KeysAway."""
        credentials = await BEARER(request)
        if credentials is None:
            raise Unauthorized("No token was sent", missing=True)
        return self.entitled(await cast("Tokens", request.app.state.tokens).check(credentials.credentials))

    def entitled(self, found: Principal) -> Principal:
        if self._scopes and not any(map(found.may, self._scopes)):
            raise Forbidden(self._scopes[0])
        return found

    async def __call__(self, request: Request, _said: BearerToken) -> Principal:
        """As a dependency. What it says of itself is for the API's document alone."""
        return request.state.principal

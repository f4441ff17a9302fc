"""What a token says, read as a stranger's text: any odd shape is a refusal, never a fault. Pure.

Owns the bounds of headers and claims, and which claims let a token in. Refuses to verify a signature: nothing of the
header is believed but which key to look for, nothing of the claims before their signature was checked.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, get_args

import jwt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headgate_contracts.records import TokenId
from headgate_contracts.vocabulary import Tier
from libs.runtime.errors import Unauthorized

Algorithm = Literal["EdDSA", "ES256", "RS256"]
ALGORITHMS: Final[frozenset[str]] = frozenset(get_args(Algorithm))

LARGEST_TOKEN: Final = 8 * 1024  # characters
DAY_S: Final = 86_400
LEEWAY_S: Final = 10  # between the issuer's clock and ours
LAST_MOMENT_S: Final = 253_402_300_799  # the end of the year 9999, the last that a date can hold
NEEDED: Final = frozenset({"exp", "iss", "aud", "sub"})
NOT_A_JWT: Final = "The token is not a JWT"
HEADER_WRONG: Final = {
    "alg": f"The token must be signed with {', '.join(sorted(ALGORITHMS))}",
    "kid": "The token does not name its key (kid)",
}

ClaimText = Annotated[str, Field(strict=True)]
EpochSeconds = Annotated[float, Field(strict=True, ge=0, le=LAST_MOMENT_S, allow_inf_nan=False)]  # seconds since 1970


class Header(BaseModel):
    """What a token says of itself: enough to look for its key, and no more is believed."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    alg: Algorithm
    kid: Annotated[ClaimText, Field(min_length=1, max_length=256)]


class Claims(BaseModel):
    """What its issuer says of its bearer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    iss: ClaimText
    aud: ClaimText | list[ClaimText]
    sub: Annotated[ClaimText, Field(min_length=1, max_length=256)]
    exp: EpochSeconds
    nbf: EpochSeconds | None = None
    iat: EpochSeconds | None = None
    jti: TokenId | None = None
    tier: Tier
    scope: ClaimText = ""
    projects: list[ClaimText] | None = None

    @property
    def scopes(self) -> frozenset[str]:
        """Parted at U+0020 alone (RFC 6749, 3.3): any other white space is part of a name that nobody has."""
        return frozenset(self.scope.split(" ")) - {""}


@dataclass(frozen=True, slots=True)
class Terms:
    """Which tokens are taken: of this issuer, for this audience, good for so long at most."""

    issuer: str
    audience: str
    longest_s: float


def header_of(token: str) -> Header:
    """The header, before anything was verified. Raises Unauthorized with the reason."""
    if len(token) > LARGEST_TOKEN:
        raise Unauthorized("The token is too long")
    if not token.isascii():
        raise Unauthorized(NOT_A_JWT)
    try:
        return Header.model_validate(jwt.get_unverified_header(token))
    except (jwt.PyJWTError, RecursionError) as fault:
        raise Unauthorized(NOT_A_JWT) from fault
    except ValidationError as fault:
        raise Unauthorized(HEADER_WRONG[_wrong(fault)[0]]) from fault


def claims_of(payload: bytes) -> Claims:
    """The claims, once their signature was verified. Raises Unauthorized with the reason."""
    try:
        return Claims.model_validate_json(payload)
    except ValidationError as fault:
        raise Unauthorized(_wrong_claims(fault)) from fault


def require_good(claims: Claims, terms: Terms, *, now_s: float) -> None:
    """Raises Unauthorized where the token is another's, not of this time, or could outlive its being taken back."""
    audiences = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    if claims.iss != terms.issuer:
        raise Unauthorized("The token is from another issuer")
    if terms.audience not in audiences:
        raise Unauthorized("The token is for another audience")
    if claims.exp <= now_s - LEEWAY_S:
        raise Unauthorized("The token has expired")
    if max(claims.nbf or 0, claims.iat or 0) > now_s + LEEWAY_S:
        raise Unauthorized("The token is not valid yet")
    if claims.jti is not None and claims.iat is None:
        raise Unauthorized("The token has a jti but no iat, and could be good for longer than it stays taken back")
    begun_s = now_s if claims.iat is None else claims.iat
    if claims.exp - begun_s > terms.longest_s + LEEWAY_S:
        days = terms.longest_s / DAY_S
        raise Unauthorized(f"The token is good for longer than policy allows, which is {days:g} days")


def _wrong_claims(fault: ValidationError) -> str:
    missing = {str(error["loc"][0]) for error in fault.errors() if error["type"] == "missing"}
    if NEEDED & missing:
        return "The token lacks a claim: exp, iss, aud and sub are required"
    wrong = _wrong(fault)
    return f"The token has a claim that cannot be used: {', '.join(wrong)}" if wrong else "The token holds no claims"


def _wrong(fault: ValidationError) -> list[str]:
    """The names of the fields, sorted. There is none where the whole is no JSON object."""
    return sorted({str(error["loc"][0]) for error in fault.errors() if error["loc"]})

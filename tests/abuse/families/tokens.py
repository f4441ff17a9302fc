"""Tokens: its bearer is who the issuer says, for as long as it says, and may what it says. Else 401 or 403."""

from __future__ import annotations

from typing import Final

from tests.abuse.attempts import Asks, Attempt, Forges
from tests.abuse.forging import STRANGER
from tests.abuse.steps.tokens import after_revocation

DEEP: Final = b"[" * 952 + b"]" * 952
LONG: Final = "x" * 9000
THEIRS: Final = STRANGER.jwk()


def _moment(value: object) -> dict[str, Attempt]:
    return {f"{claim} is {value!r:.30}": Forges(claims={claim: value}) for claim in ("exp", "nbf", "iat")}


def _without(scope: str, who: str, *lines: str) -> dict[str, Attempt]:
    return {f"{line}, by {who}": Asks(line, who=who, gets=403, says=scope) for line in lines}


TABLE: Final[dict[str, dict[str, Attempt]]] = {
    "the key decides how a token is checked": {
        "alg none": Forges({"alg": "none"}, by="nobody"),
        "alg None": Forges({"alg": "None"}, by="nobody"),
        "alg nOnE with a signature of ours": Forges({"alg": "nOnE"}),
        "alg of nothing": Forges({"alg": ""}),
        "no alg": Forges({"alg": None}),
        "HS256 over the public key": Forges({"alg": "HS256"}, by="HMAC of the public key"),
        "HS256 over its PEM": Forges({"alg": "HS256"}, by="HMAC of its PEM"),
        "HS256 over the key set": Forges({"alg": "HS256"}, by="HMAC of the key set"),
        "HS256 over an empty secret": Forges({"alg": "HS256"}, by="HMAC of nothing"),
        "HS256 over the kid": Forges({"alg": "HS256"}, by="HMAC of its kid"),
        "EdDSA in name, HMAC in fact": Forges(by="HMAC of the public key"),
        "RS256 under the kid of an Ed25519 key": Forges({"alg": "RS256"}, by="a stranger's RSA"),
        "ES256 under the kid of an Ed25519 key": Forges({"alg": "ES256"}),
        "Ed25519, which is no name of ours": Forges({"alg": "Ed25519"}),
        "PS256": Forges({"alg": "PS256"}, by="a stranger's RSA"),
        "alg as a list": Forges({"alg": ["EdDSA"]}),
        "alg as an object": Forges({"alg": {"EdDSA": 1}}),
        "alg as a number": Forges({"alg": 256}),
        "alg in other letters": Forges({"alg": "eddsa"}),
        "a critical member that is nobody's": Forges({"crit": ["exp2"], "exp2": 1}),
    },
    "only known keys sign": {
        "a stranger's key under our kid": Forges(by="a stranger"),
        "a stranger's kid": Forges({"kid": STRANGER.kid}, by="a stranger"),
        "a key of its own in jwk": Forges({"jwk": THEIRS}, by="a stranger"),
        "a key of its own in jwk, with its kid": Forges({"jwk": THEIRS, "kid": STRANGER.kid}, by="a stranger"),
        "a key set of its own in jku": Forges({"jku": "https://evil.example/jwks.json"}, by="a stranger"),
        "a key set in a file": Forges({"jku": "file:///etc/passwd", "kid": STRANGER.kid}, by="a stranger"),
        "a certificate in x5u": Forges({"x5u": "http://169.254.169.254/"}, by="a stranger"),
        "a certificate in x5c": Forges({"x5c": ["MIIB"]}, by="a stranger"),
        "no kid": Forges({"kid": None}),
        "an empty kid": Forges({"kid": ""}),
        "a kid that is a path": Forges({"kid": "../../../../dev/null"}, by="HMAC of nothing"),
        "a kid for SQL": Forges({"kid": "' UNION SELECT 'k' --"}, by="a stranger"),
        "a kid for a shell": Forges({"kid": "|id"}, by="a stranger"),
        "a kid with a null character": Forges({"kid": "\0"}, by="a stranger"),
        "a kid as a list": Forges({"kid": ["a"]}),
        "a kid as a number": Forges({"kid": 0}),
        "a kid of 5,000 characters": Forges({"kid": "k" * 5000}),
        "no signature": Forges(by="nobody"),
        "a signature of zeros": Forges(by="zeros"),
    },
    "a token's texts are read as a stranger's": {
        "nothing": Forges(text="-"),
        "a word": Forges(text="secret"),
        "two dots": Forges(text=".."),
        "four dots": Forges(text="a.b.c.d.e"),
        "a JWE of five parts": Forges(text="eyJhbGciOiJkaXIifQ..AAAA.AAAA.AAAA"),
        "lists": Forges(b"[]", b"[]"),
        "a header that is a text": Forges(b'"EdDSA"'),
        "a header that is no UTF-8": Forges(b"\xff\xfe"),
        "a header 952 deep": Forges(b'{"alg":' + DEEP + b"}"),
        "claims that are a list": Forges(claims=b"[]"),
        "claims that are null": Forges(claims=b"null"),
        "claims that are no UTF-8": Forges(claims=b'{"sub":"\xff"}'),
        "claims 952 deep": Forges(claims=b'{"sub":' + DEEP + b"}"),
        "claims that are no JSON": Forges(claims=b"{sub:1}"),
        "half a character in sub": Forges(claims=b'{"sub":"\\ud800"}'),
        "a token of 9,000 characters": Forges(claims={"more": LONG}),
        "base64 of the other alphabet": Forges(text="eyJhbGciOiJFZERTQSJ9.eyJhIjoi/+8ifQ.AA"),
        "base64 with padding": Forges(text="eyJhbGciOiJFZERTQSJ9==.e30==.AA=="),
    },
    "claims have their types": {
        "no sub": Forges(claims={"sub": None}),
        "an empty sub": Forges(claims={"sub": ""}),
        "sub as a number": Forges(claims={"sub": 7}),
        "sub as a list": Forges(claims={"sub": ["ann", "bob"]}),
        "a sub of 300 characters": Forges(claims={"sub": "s" * 300}),
        "no tier": Forges(claims={"tier": None}),
        "an unknown tier": Forges(claims={"tier": "root"}),
        "tier as a number": Forges(claims={"tier": 2}),
        "tier in capitals": Forges(claims={"tier": "PARTNER"}),
        "scope as a list": Forges(claims={"scope": ["ops"]}),
        "scope as true": Forges(claims={"scope": True}),
        "projects as a text": Forges(claims={"projects": "shop"}),
        "projects as an object": Forges(claims={"projects": {"shop": True}}),
        "projects that are numbers": Forges(claims={"projects": [1]}),
        "a jti with spaces": Forges(claims={"jti": "a b"}),
        "a jti as a number": Forges(claims={"jti": 7}),
        "a jti without iat": Forges(claims={"jti": "x", "iat": None}),
    },
    "a token is ours and for us": {
        "another issuer": Forges(claims={"iss": "https://evil.example"}),
        "our issuer and a slash": Forges(claims={"iss": "headgate/"}),
        "our issuer in capitals": Forges(claims={"iss": "HEADGATE"}),
        "our issuer among others": Forges(claims={"iss": ["headgate", "evil"]}),
        "no issuer": Forges(claims={"iss": None}),
        "another audience": Forges(claims={"aud": "billing"}),
        "no audience": Forges(claims={"aud": None}),
        "an empty list of audiences": Forges(claims={"aud": []}),
        "an audience that begins like ours": Forges(claims={"aud": "headgate-admin"}),
        "an audience as an object": Forges(claims={"aud": {"headgate": 1}}),
    },
    "moments are moments": {
        **_moment(1e300),
        **_moment(float("inf")),
        **_moment(float("nan")),
        **_moment("tomorrow"),
        **_moment([4_000_000_000]),
        **_moment(True),
        "exp is an integer of 400 digits": Forges(claims={"exp": 10**400}),
        "exp is after the year 9999": Forges(claims={"exp": 253_402_300_800}),
    },
    "a token has its time": {
        "expired an hour ago": Forges(claims={"exp": 1_700_000_000}),
        "expired in 1970": Forges(claims={"exp": 0}),
        "expired before 1970": Forges(claims={"exp": -1}),
        "no exp": Forges(claims={"exp": None}),
        "not yet valid": Forges(claims={"nbf": 4_000_000_000, "exp": 4_000_000_600}),
        "issued in the future": Forges(claims={"iat": 4_000_000_000, "exp": 4_000_000_600}),
        "good for a hundred years": Forges(claims={"exp": 4_900_000_000}),
        "good for a hundred years, without iat": Forges(claims={"exp": 4_900_000_000, "iat": None}),
    },
    "a token that was taken back opens nothing": after_revocation(
        "GET /v1/jobs", "POST /v1/jobs", "GET /v1/usage", "GET /v1/stream", "POST /v1/stream-tickets"
    ),
    "an operator's route wants ops": {
        **_without(
            "ops",
            "ann",
            "GET /v1/audit",
            "GET /v1/workers",
            "GET /v1/queue/analytics",
            "PUT /v1/concurrency/db",
            "DELETE /v1/concurrency/user:ann/leases/x",
            "DELETE /v1/pipelines/build",
            "POST /v1/queue/move",
            "POST /v1/queue/pause",
            "POST /v1/queue/resume",
            "POST /v1/tokens/revoke",
            "DELETE /v1/users/ann/content",
            "GET /v1/concurrency",
            "GET /v1/concurrency/<group>",
        ),
        **_without("ops", "imposter", "GET /v1/audit", "POST /v1/queue/pause", "POST /v1/tokens/revoke"),
    },
    "a route that writes wants jobs:write": _without(
        "jobs:write",
        "reader",
        "POST /v1/jobs",
        "POST /v1/jobs/batch",
        "POST /v1/jobs/cancel",
        "PATCH /v1/jobs/<queued>",
        "POST /v1/jobs/<queued>/cancel",
        "POST /v1/jobs/<asking>/confirm",
        "POST /v1/jobs/<failed>/retry",
        "POST /v1/workflows",
        "POST /v1/workflows/<workflow>/cancel",
    ),
    "a route that reads wants jobs:read": _without(
        "jobs:read",
        "powerless",
        "GET /v1/jobs",
        "GET /v1/jobs/<ready>",
        "GET /v1/jobs/<ready>/events",
        "GET /v1/jobs/<ready>/log",
        "GET /v1/jobs/<ready>/result",
        "GET /v1/jobs/<queued>/explain",
        "GET /v1/queue",
        "GET /v1/usage",
        "GET /v1/workflows/<workflow>",
        "GET /v1/stream",
        "GET /v1/jobs/<running>/stream",
        "POST /v1/stream-tickets",
    ),
    "a token comes in one way": {
        "in the query": Asks("GET /v1/jobs?access_token=<token>", who=None, gets=401),
        "in the query, to streams": Asks("GET /v1/stream?access_token=<token>", who=None, gets=422),
        "in a cookie": Asks("GET /v1/jobs", who=None, gets=401, headers=(("Cookie", "token=<token>"),)),
        "as Basic": Asks("GET /v1/jobs", who=None, gets=401, headers=(("Authorization", "Basic <token>"),)),
        "without a scheme": Asks("GET /v1/jobs", who=None, gets=401, headers=(("Authorization", "<token>"),)),
        "in another header": Asks("GET /v1/jobs", who=None, gets=401, headers=(("X-Auth-Token", "<token>"),)),
        "twice": Asks("GET /v1/jobs", gets=400, headers=(("Authorization", "Bearer <token>"),)),
        "two in one": Asks("GET /v1/jobs", who=None, gets=401, headers=(("Authorization", "Bearer <token>, x"),)),
        "behind the header of a proxy": Asks(
            "GET /v1/jobs", who=None, gets=401, headers=(("X-Forwarded-User", "ann"),)
        ),
        "a ticket as a token": Asks(
            "GET /v1/jobs", who=None, gets=401, headers=(("Authorization", "Bearer <ticket>"),)
        ),
        "a token as a ticket": Asks("GET /v1/stream?ticket=<token>", who=None, gets=422),
    },
}

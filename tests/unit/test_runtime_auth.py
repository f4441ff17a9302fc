"""A token is believed where its key, its issuer, its audience and its time fit, and in no other case."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts.tokens import foreign_token
from headgate_contracts.vocabulary import Tier
from libs.runtime.auth import Principal, Tokens
from libs.runtime.clock import ManualClock
from libs.runtime.errors import Unauthorized
from libs.runtime.keys import KeyPair, sign_token
from libs.runtime.keysets import Keys
from tests.fixtures.issuer import EC, ED, ISSUER, NOW_S, RSA, SOURCE, STRANGER, TERMS, Issuer, claims, part, signed
from tests.fixtures.lives import job_after

DEEP = b"[" * 952 + b"]" * 952
HEADER = {"alg": "EdDSA", "kid": ED.kid}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def checker() -> Tokens:
    clock = ManualClock()
    keys = Keys([SOURCE], clock=clock, read=Issuer(RSA, EC, ED).read)
    return Tokens(keys, TERMS, clock=clock)


@pytest.fixture
def tokens() -> Tokens:
    return checker()


def public_pem(pair: KeyPair) -> bytes:
    return pair.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def hmac_with_public_key() -> str:
    """Signed with what everybody knows: believed by a checker that lets the token choose its algorithm."""
    signed = f"{part({'alg': 'HS256', 'kid': RSA.kid})}.{part(claims())}"
    signature = hmac.new(public_pem(RSA), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def with_header(pair: KeyPair, **header: object) -> str:
    return jwt.encode(claims(), pair.private, algorithm=pair.algorithm, headers={"kid": pair.kid, **header})


def tampered() -> str:
    head, _, signature = ED.sign(claims()).split(".")
    return f"{head}.{part(claims(sub='somebody else'))}.{signature}"


FORGED: dict[str, Callable[[], str]] = {
    "alg none": lambda: f"{part({'alg': 'none', 'kid': RSA.kid})}.{part(claims())}.",
    "alg None, kept signature": lambda: (
        f"{part({'alg': 'None', 'kid': ED.kid})}.{'.'.join(ED.sign(claims()).split('.')[1:])}"
    ),
    "HS256 with the public key": hmac_with_public_key,
    "HS256 with a guessed secret": lambda: jwt.encode(claims(), "s" * 32, "HS256", headers={"kid": RSA.kid}),
    "an algorithm that is not ours": lambda: jwt.encode(claims(), RSA.private, "RS512", headers={"kid": RSA.kid}),
    "RSA-PSS": lambda: jwt.encode(claims(), RSA.private, "PS256", headers={"kid": RSA.kid}),
    "another key under a known kid": lambda: with_header(STRANGER, kid=EC.kid),
    "the kid of a key of another kind": lambda: with_header(ED, kid=RSA.kid),
    "an unknown kid": lambda: STRANGER.sign(claims()),
    "no kid": lambda: jwt.encode(claims(), ED.private, "EdDSA"),
    "a kid that is a path": lambda: with_header(ED, kid="../../etc/passwd"),
    "a key of its own in the header": lambda: with_header(STRANGER, jwk=STRANGER.jwk(), jku="https://evil.example"),
    "a critical header that nobody knows": lambda: with_header(ED, crit=["exp2"], exp2=1),
    "a changed body": tampered,
    "no signature": lambda: ED.sign(claims()).rpartition(".")[0] + ".",
    "expired": lambda: ED.sign(claims(exp=NOW_S - 60)),
    "expired in text": lambda: ED.sign(claims(exp="tomorrow")),
    "not valid yet": lambda: ED.sign(claims(nbf=NOW_S + 60)),
    "no expiry": lambda: ED.sign(claims(exp=None)),
    "another audience": lambda: ED.sign(claims(aud="billing")),
    "no audience": lambda: ED.sign(claims(aud=None)),
    "another issuer": lambda: ED.sign(claims(iss="https://evil.example")),
    "no issuer": lambda: ED.sign(claims(iss=None)),
    "no subject": lambda: ED.sign(claims(sub=None)),
    "an empty subject": lambda: ED.sign(claims(sub="")),
    "a subject that is a number": lambda: jwt.encode(claims(sub=7), ED.private, "EdDSA", headers={"kid": ED.kid}),
    "an unknown tier": lambda: ED.sign(claims(tier="root")),
    "no tier": lambda: ED.sign(claims(tier=None)),
    "a scope that is a list": lambda: ED.sign(claims(scope=["ops"])),
    "projects that are a text": lambda: ED.sign(claims(projects="all")),
    "no JWT": lambda: "secret",
    "an empty token": lambda: "",
    "a JWT of lists": lambda: f"{part([])}.{part([])}.",
    "a body that is a list": lambda: jwt.api_jws.encode(b"[]", ED.private, "EdDSA", headers={"kid": ED.kid}),
    "not ASCII": lambda: "é.é.é",
    "a long one": lambda: ED.sign(claims(more="x" * 10_000)),
    "alg as a list": lambda: signed({"alg": ["EdDSA"], "kid": ED.kid}, claims()),
    "alg as an object": lambda: signed({"alg": {"EdDSA": 1}, "kid": ED.kid}, claims()),
    "alg as nothing": lambda: signed({"alg": None, "kid": ED.kid}, claims()),
    "kid as a list": lambda: signed({"alg": "EdDSA", "kid": [ED.kid]}, claims()),
    "kid as a number": lambda: signed({"alg": "EdDSA", "kid": 7}, claims()),
    "kid as nothing": lambda: signed({"alg": "EdDSA", "kid": None}, claims()),
    "a kid of 5,000 characters": lambda: signed({"alg": "EdDSA", "kid": "k" * 5000}, claims()),
    "a deep header": lambda: signed(b'{"alg": ' + DEEP + b"}", claims()),
    "a header that is no UTF-8": lambda: signed(b"\xff\xfe", claims()),
    "a deep body": lambda: signed(HEADER, b'{"sub": ' + DEEP + b"}"),
    "a body that is deep beside what is read": lambda: signed(HEADER, b'{"x": ' + DEEP + b"}"),
    "a body that is no UTF-8": lambda: signed(HEADER, b'{"sub": "\xff"}'),
    "half a character": lambda: signed(HEADER, claims(sub="\ud800")),
    "half a character in the token": lambda: "\ud800.\ud800.\ud800",
    "a scope that holds no scopes": lambda: signed(HEADER, claims(scope=7)),
    "an audience that is an object": lambda: signed(HEADER, claims(aud={"headgate": 1})),
    "an issuer that is a list": lambda: signed(HEADER, claims(iss=[ISSUER])),
    "issued tomorrow": lambda: signed(HEADER, claims(iat=NOW_S + 86_400)),
}
ODD_MOMENTS = {
    "10 to the 300": 1e300,
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "no number": float("nan"),
    "an integer of 400 digits": 10**400,
    "after the year 9999": 253_402_300_800,
    "negative": -1,
    "a text": str(NOW_S + 60),
    "true": True,
    "a list": [NOW_S + 60],
    "an object": {"s": NOW_S + 60},
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
async def test_a_forged_token_is_refused(tokens: Tokens, forge: Callable[[], str]) -> None:
    with pytest.raises(Unauthorized) as refused:
        await tokens.check(forge())

    assert refused.value.reason.isascii()  # it goes into a header
    assert '"' not in refused.value.reason


@pytest.mark.parametrize("moment", ODD_MOMENTS.values(), ids=ODD_MOMENTS.keys())
@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
async def test_a_moment_that_is_none_is_refused(tokens: Tokens, claim: str, moment: object) -> None:
    with pytest.raises(Unauthorized, match=claim):
        await tokens.check(signed(HEADER, claims(**{claim: moment})))


@given(st.text())
async def test_no_text_is_more_than_refused(token: str) -> None:
    with pytest.raises(Unauthorized):
        await checker().check(token)


@given(header=JSON | st.fixed_dictionaries({"alg": JSON | st.just("EdDSA"), "kid": JSON | st.just(ED.kid)}), body=JSON)
async def test_whatever_is_signed_without_claims_is_refused(header: object, body: object) -> None:
    with pytest.raises(Unauthorized):
        await checker().check(signed(header, body))


@given(claim=st.sampled_from([*claims(), "nbf", "iat", "projects", "jti"]), value=JSON)
async def test_whatever_a_claim_holds_somebody_is_known_or_refused(claim: str, value: object) -> None:
    with suppress(Unauthorized):
        found = await checker().check(signed(HEADER, {**claims(), claim: value}))

        assert isinstance(found, Principal)
        assert datetime.fromtimestamp(found.expires_s or 0, UTC)


@pytest.mark.parametrize("space", ["\t", "\n", "\u00a0", "\u2003", "\x1f", ","])
async def test_scopes_part_at_a_space_and_nowhere_else(tokens: Tokens, space: str) -> None:
    found = await tokens.check(ED.sign(claims(scope=f" jobs:read  jobs:write{space}ops ")))

    assert found.scopes == {"jobs:read", f"jobs:write{space}ops"}


@pytest.mark.parametrize("pair", [RSA, EC, ED], ids=lambda pair: pair.algorithm)
async def test_a_token_of_each_kind_of_key_is_believed(tokens: Tokens, pair: KeyPair) -> None:
    found = await tokens.check(pair.sign(claims(nbf=NOW_S)))

    assert found == Principal("u1", Tier.PARTNER, frozenset({"jobs:read", "jobs:write"}))


async def test_one_audience_of_several_is_enough(tokens: Tokens) -> None:
    assert (await tokens.check(ED.sign(claims(aud=["billing", "headgate"])))).user == "u1"


async def test_the_clocks_of_issuer_and_checker_may_differ_by_seconds(tokens: Tokens) -> None:
    assert (await tokens.check(ED.sign(claims(exp=NOW_S - 3, nbf=NOW_S + 3)))).user == "u1"


async def test_names_that_cannot_stand_in_a_subject_are_mapped(tokens: Tokens) -> None:
    found = await tokens.check(ED.sign(claims(sub="auth0|7.*", projects=["shop", "a.b"])))

    assert found.user == foreign_token("auth0|7.*")
    assert found.projects == {"shop", foreign_token("a.b")}


async def test_without_a_scope_one_may_do_nothing_and_without_projects_shares_none(tokens: Tokens) -> None:
    found = await tokens.check(ED.sign(claims(scope=None)))

    assert (found.may("jobs:read"), found.projects) == (False, frozenset())


async def test_a_token_made_for_development_is_believed(tokens: Tokens) -> None:
    made = sign_token(
        ED,
        user="u2",
        tier=Tier.CTO_SCALE,
        scope="ops",
        issuer=ISSUER,
        audience="headgate",
        now_ms=NOW_S * 1000,
        ttl_s=60,
        projects=["shop"],
    )

    assert await tokens.check(made) == Principal("u2", Tier.CTO_SCALE, frozenset({"ops"}), frozenset({"shop"}))


@pytest.mark.parametrize(
    ("user", "scope", "sees"),
    [("ann", "jobs:read", True), ("bob", "jobs:read jobs:write", False), ("bob", "ops", True), ("bob", "", False)],
)
def test_a_job_is_seen_by_its_owner_and_by_operators(user: str, scope: str, *, sees: bool) -> None:
    job = job_after("queued", user_id="ann")

    assert Principal(user, Tier.PARTNER, frozenset(scope.split())).may_see(job) is sees

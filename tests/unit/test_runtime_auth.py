"""A token is believed where its key, its issuer, its audience and its time fit, and in no other case."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm

from headgate_contracts.tokens import foreign_token
from headgate_contracts.vocabulary import Tier
from libs.runtime.auth import ALGORITHMS, Keys, Principal, Tokens, keys_of
from libs.runtime.clock import ManualClock
from libs.runtime.errors import KeysAway, Unauthorized
from libs.runtime.eventually import eventually
from libs.runtime.keys import Algorithm, KeyPair, jwks, sign_token

ISSUER, AUDIENCE = "https://issuer.example", "headgate"
SOURCE = "https://issuer.example/keys"

RSA, EC, ED = (KeyPair.generate(algorithm) for algorithm in ("RS256", "ES256", "EdDSA"))
STRANGER = KeyPair.generate("ES256")


class Issuer:
    """Serves a key set, or is away. Counts how often it is asked."""

    def __init__(self, *pairs: KeyPair) -> None:
        self.pairs = pairs
        self.away = False
        self.asked = 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def read(self, source: str) -> bytes:
        self.asked += 1
        await self.answers.wait()
        if self.away:
            raise ConnectionRefusedError("nobody listens")
        return jwks(*self.pairs)


@pytest.fixture
def issuer() -> Issuer:
    return Issuer(RSA, EC, ED)


@pytest.fixture
def keys(issuer: Issuer, clock: ManualClock) -> Keys:
    return Keys([SOURCE], clock=clock, read=issuer.read)


@pytest.fixture
def tokens(keys: Keys) -> Tokens:
    return Tokens(keys, issuer=ISSUER, audience=AUDIENCE)


def claims(**changed: object) -> dict[str, Any]:
    now_s = int(time.time())
    every = {
        "sub": "u1",
        "tier": "partner",
        "scope": "jobs:read jobs:write",
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": now_s + 60,
        **changed,
    }
    return {name: value for name, value in every.items() if value is not None}


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


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
    "expired": lambda: ED.sign(claims(exp=int(time.time()) - 60)),
    "expired in text": lambda: ED.sign(claims(exp="tomorrow")),
    "not valid yet": lambda: ED.sign(claims(nbf=int(time.time()) + 60)),
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
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
async def test_a_forged_token_is_refused(tokens: Tokens, forge: Callable[[], str]) -> None:
    with pytest.raises(Unauthorized) as refused:
        await tokens.check(forge())

    assert refused.value.reason.isascii()  # it goes into a header
    assert '"' not in refused.value.reason


@pytest.mark.parametrize("pair", [RSA, EC, ED], ids=lambda pair: pair.algorithm)
async def test_a_token_of_each_kind_of_key_is_believed(tokens: Tokens, pair: KeyPair) -> None:
    found = await tokens.check(pair.sign(claims(nbf=int(time.time()))))

    assert found == Principal("u1", Tier.PARTNER, frozenset({"jobs:read", "jobs:write"}))


async def test_one_audience_of_several_is_enough(tokens: Tokens) -> None:
    assert (await tokens.check(ED.sign(claims(aud=["billing", AUDIENCE])))).user == "u1"


async def test_the_clocks_of_issuer_and_checker_may_differ_by_seconds(tokens: Tokens) -> None:
    now_s = int(time.time())

    assert (await tokens.check(ED.sign(claims(exp=now_s - 3, nbf=now_s + 3)))).user == "u1"


async def test_names_that_cannot_stand_in_a_subject_are_mapped(tokens: Tokens) -> None:
    found = await tokens.check(ED.sign(claims(sub="auth0|7.*", projects=["shop", "a.b"])))

    assert found.user == foreign_token("auth0|7.*")
    assert found.projects == {"shop", foreign_token("a.b")}
    assert found.may_use("shop")
    assert not found.may_use("other")


async def test_without_a_scope_one_may_do_nothing_and_without_projects_use_any(tokens: Tokens) -> None:
    found = await tokens.check(ED.sign(claims(scope=None)))

    assert (found.may("jobs:read"), found.may_use("any")) == (False, True)


async def test_a_token_made_for_development_is_believed(tokens: Tokens) -> None:
    made = sign_token(
        ED,
        user="u2",
        tier=Tier.CTO_SCALE,
        scope="ops",
        issuer=ISSUER,
        audience=AUDIENCE,
        now_ms=time.time_ns() // 1_000_000,
        ttl_s=60,
        projects=["shop"],
    )

    assert await tokens.check(made) == Principal("u2", Tier.CTO_SCALE, frozenset({"ops"}), frozenset({"shop"}))


# --- the keys ---


def test_keys_that_tokens_may_not_be_signed_with_are_passed_over() -> None:
    other = {
        "symmetric": {"kty": "oct", "kid": "symmetric", "k": "c2VjcmV0"},
        "encryption": {**EC.jwk(), "kid": "encryption", "use": "enc"},
        "sha512": {**RSA.jwk(), "kid": "sha512", "alg": "RS512"},
        "curve": {
            **ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP384R1()).public_key(), as_dict=True),
            "kid": "curve",
        },
        "broken": {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        "unknown": {"kty": "lattice", "kid": "unknown"},
        "nameless": {name: value for name, value in ED.jwk().items() if name != "kid"},
    }

    found = keys_of(json.dumps({"keys": [*other.values(), ED.jwk()], "more": 1}).encode())

    assert set(found) == {ED.kid}
    assert {key.algorithm_name for key in keys_of(jwks(RSA, EC, ED)).values()} == ALGORITHMS


async def test_a_private_key_in_a_set_is_read_as_its_public_half(clock: ManualClock) -> None:
    private = jwt.get_algorithm_by_name("EdDSA").to_jwk(ED.private, as_dict=True)
    assert "d" in private

    async def read(source: str) -> bytes:
        return json.dumps({"keys": [{**private, "kid": ED.kid}]}).encode()

    tokens = Tokens(Keys([SOURCE], clock=clock, read=read), issuer=ISSUER, audience=AUDIENCE)

    assert (await tokens.check(ED.sign(claims()))).user == "u1"


async def test_a_small_rsa_key_is_not_enough(clock: ManualClock) -> None:
    small = KeyPair("RS256", rsa.generate_private_key(public_exponent=65537, key_size=1024))  # noqa: S505 - that is the point
    tokens = Tokens(Keys([SOURCE], clock=clock, read=Issuer(small).read), issuer=ISSUER, audience=AUDIENCE)
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        signed = small.sign(claims())

    with pytest.raises(Unauthorized):
        await tokens.check(signed)


async def test_keys_are_asked_for_once(keys: Keys, issuer: Issuer) -> None:
    await keys.load()
    found = await asyncio.gather(*(keys.find(pair.kid) for pair in (RSA, EC, ED)))

    assert [key.key_id for key in found if key] == [RSA.kid, EC.kid, ED.kid]
    assert issuer.asked == 1


async def test_a_new_key_is_found_and_made_up_ones_ask_once_in_30_s(
    keys: Keys, issuer: Issuer, clock: ManualClock
) -> None:
    await keys.load()
    issuer.pairs = (STRANGER,)

    assert [await keys.find(f"made up {n}") for n in range(100)] == [None] * 100
    assert issuer.asked == 1  # the first 30 s are not over

    await clock.advance_ms(30_000)
    assert await keys.find(STRANGER.kid) is not None
    assert [await keys.find(f"made up {n}") for n in range(100)] == [None] * 100
    assert issuer.asked == 2


async def test_all_who_miss_a_key_wait_for_the_same_answer(keys: Keys, issuer: Issuer, clock: ManualClock) -> None:
    await keys.load()
    await clock.advance_ms(30_000)
    issuer.pairs = (STRANGER,)
    issuer.answers.clear()

    asking = [asyncio.create_task(keys.find(STRANGER.kid)) for _ in range(10)]
    await eventually(lambda: issuer.asked == 2)
    issuer.answers.set()

    assert None not in await asyncio.gather(*asking)
    assert issuer.asked == 2


async def test_a_withdrawn_key_is_noticed_within_minutes(keys: Keys, issuer: Issuer, clock: ManualClock) -> None:
    await keys.load()
    issuer.pairs = (EC,)

    await clock.advance_ms(299_000)
    assert await keys.find(ED.kid) is not None
    await clock.advance_ms(1_000)
    assert await keys.find(ED.kid) is None


async def test_nobody_with_a_known_key_waits_while_another_asks_again(
    keys: Keys, issuer: Issuer, clock: ManualClock
) -> None:
    await keys.load()
    await clock.advance_ms(300_000)
    issuer.answers.clear()
    asking = asyncio.create_task(keys.find(ED.kid))
    await eventually(lambda: issuer.asked == 2)

    assert await asyncio.wait_for(keys.find(EC.kid), 30) is not None
    assert not asking.done()
    issuer.answers.set()
    assert await asking is not None


async def test_an_issuer_that_is_away_keeps_its_keys_and_is_said_once(
    keys: Keys, issuer: Issuer, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await keys.load()
    issuer.away = True
    for _ in range(3):
        await clock.advance_ms(300_000)
        assert await keys.find(ED.kid) is not None

    with pytest.raises(KeysAway):  # it may be a key that only the issuer knows yet
        await keys.find(STRANGER.kid)
    assert len([message for message in caplog.messages if SOURCE in message]) == 1

    issuer.away = False
    await clock.advance_ms(300_000)
    assert await keys.find(STRANGER.kid) is None


async def test_keys_that_were_never_read_are_asked_for_each_second(
    keys: Keys, issuer: Issuer, clock: ManualClock
) -> None:
    issuer.away = True
    with pytest.raises(KeysAway):
        await keys.load()
    with pytest.raises(KeysAway) as away:
        await keys.find(ED.kid)
    assert (issuer.asked, away.value.retry_after_s) == (1, 1)

    issuer.away = False
    await clock.advance_ms(1_000)
    await keys.load()
    assert await keys.find(ED.kid) is not None


async def test_one_source_that_is_away_leaves_the_keys_of_the_other(clock: ManualClock) -> None:
    issuer = Issuer(ED)

    async def read(source: str) -> bytes:
        if source == "away":
            raise TimeoutError
        return await issuer.read(source)

    keys = Keys(["away", SOURCE], clock=clock, read=read)

    assert await keys.find(ED.kid) is not None


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"keys": 1}', b'{"keys": [1]}'])
async def test_an_answer_that_is_no_key_set_is_like_none(clock: ManualClock, answer: bytes) -> None:
    async def read(source: str) -> bytes:
        return answer

    with pytest.raises(KeysAway):
        await Keys([SOURCE], clock=clock, read=read).load()


# --- the pair of a machine ---


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_public_key_shows_nothing_private(algorithm: Algorithm) -> None:
    pair = KeyPair.generate(algorithm)

    assert not {"d", "p", "q", "dp", "dq", "qi"} & pair.jwk().keys()
    assert "private" not in repr(pair)

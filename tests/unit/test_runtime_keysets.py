"""The keys of issuers are read once, kept while their source is away, and read again when it is time."""

import asyncio
import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm

from libs.runtime import auth
from libs.runtime.auth import Tokens
from libs.runtime.claims import ALGORITHMS
from libs.runtime.clock import ManualClock
from libs.runtime.errors import KeysAway, Unauthorized
from libs.runtime.eventually import eventually
from libs.runtime.keys import Algorithm, KeyPair, jwks
from libs.runtime.keysets import Keys, keys_of
from tests.fixtures.issuer import EC, ED, NOW_S, RSA, SOURCE, STRANGER, TERMS, Issuer, claims


@pytest.fixture
def issuer() -> Issuer:
    return Issuer(RSA, EC, ED)


@pytest.fixture
def keys(issuer: Issuer, clock: ManualClock) -> Keys:
    return Keys([SOURCE], clock=clock, read=issuer.read)


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

    tokens = Tokens(Keys([SOURCE], clock=clock, read=read), TERMS, clock=clock)

    assert (await tokens.check(ED.sign(claims()))).user == "u1"


async def test_a_small_rsa_key_is_not_enough(clock: ManualClock) -> None:
    small = KeyPair("RS256", rsa.generate_private_key(public_exponent=65537, key_size=1024))  # noqa: S505 - that is the point
    tokens = Tokens(Keys([SOURCE], clock=clock, read=Issuer(small).read), TERMS, clock=clock)
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


async def test_a_token_that_was_verified_is_refused_once_its_key_is_withdrawn_or_another(clock: ManualClock) -> None:
    sets = [jwks(ED), json.dumps({"keys": [{**KeyPair.generate("EdDSA").jwk(), "kid": ED.kid}]}).encode(), jwks(EC)]

    async def read(source: str) -> bytes:
        return sets[0]

    tokens, token = Tokens(Keys([SOURCE], clock=clock, read=read), TERMS, clock=clock), ED.sign(claims(exp=NOW_S + 900))
    assert (await tokens.check(token)).user == "u1"

    for why in ("not valid", "unknown key"):
        del sets[0]
        await clock.advance_ms(300_000)
        with pytest.raises(Unauthorized, match=why):
            await tokens.check(token)


async def test_a_token_that_was_verified_expires(keys: Keys, clock: ManualClock) -> None:
    tokens, token = Tokens(keys, TERMS, clock=clock), ED.sign(claims())
    assert await tokens.check(token) == await tokens.check(token)

    await clock.advance_ms(70_000)

    with pytest.raises(Unauthorized, match="expired"):
        await tokens.check(token)


async def test_tokens_that_were_verified_are_remembered_up_to_a_bound(
    keys: Keys, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "MOST_VERIFIED", 2)
    tokens = Tokens(keys, TERMS, clock=clock)

    users = [(await tokens.check(ED.sign(claims(sub=user)))).user for user in ("a", "b", "c", "a")]

    assert users == ["a", "b", "c", "a"]
    assert len(tokens._known) == 2


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

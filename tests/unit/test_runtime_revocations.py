"""A token that was taken back lets nobody in, until none can be as old."""

import pytest

from libs.runtime.auth import Tokens
from libs.runtime.clock import ManualClock
from libs.runtime.errors import Unauthorized
from libs.runtime.keysets import Keys
from libs.runtime.revocations import Revocations
from tests.fixtures.issuer import ED, LONGEST_S, NOW_S, SOURCE, TERMS, Issuer, claims


@pytest.fixture
def tokens(clock: ManualClock) -> Tokens:
    return Tokens(Keys([SOURCE], clock=clock, read=Issuer(ED).read), TERMS, clock=clock)


def token(**changed: object) -> str:
    return ED.sign(claims(iat=NOW_S, **changed))


async def test_a_token_that_is_taken_back_is_refused_and_no_other(tokens: Tokens, clock: ManualClock) -> None:
    assert (await tokens.check(token(jti="a"))).token_id == "a"

    tokens.revocations.take_back("a", until_ms=clock.now_ms() + 1000)

    with pytest.raises(Unauthorized, match="taken back"):
        await tokens.check(token(jti="a"))
    assert (await tokens.check(token(jti="b"))).user == "u1"
    assert (await tokens.check(token())).token_id is None


def test_what_can_be_no_token_any_more_is_forgotten(clock: ManualClock) -> None:
    revocations = Revocations(clock=clock)
    revocations.take_back("old", until_ms=clock.now_ms() - 60_000)
    revocations.take_back("at its end", until_ms=clock.now_ms() - 59_999)

    revocations.take_back("new", until_ms=clock.now_ms() + 1000)

    assert ["old" in revocations, "at its end" in revocations, "new" in revocations] == [False, True, True]


def test_whoever_watches_is_told_and_the_longer_time_counts(clock: ManualClock) -> None:
    revocations, told = Revocations(clock=clock), list[str]()
    revocations.watch(told.append)
    now_ms = clock.now_ms()

    for until_ms in (now_ms + 2000, now_ms + 1000):
        revocations.take_back("a", until_ms=until_ms)

    assert (told, revocations.until_ms("a"), revocations.until_ms("b")) == (["a", "a"], now_ms + 2000, None)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"iat": NOW_S, "exp": NOW_S + LONGEST_S + 11}, "longer than policy allows, which is 30 days"),
        ({"iat": NOW_S - LONGEST_S, "exp": NOW_S + 60}, "longer than policy allows"),
        ({"exp": NOW_S + LONGEST_S + 11}, "longer than policy allows"),
        ({"jti": "a"}, "a jti but no iat"),
        ({"jti": 7, "iat": NOW_S}, "cannot be used: jti"),
        ({"jti": "", "iat": NOW_S}, "cannot be used: jti"),
        ({"jti": "a b", "iat": NOW_S}, "cannot be used: jti"),
        ({"jti": "x" * 257, "iat": NOW_S}, "cannot be used: jti"),
    ],
)
async def test_no_token_can_outlive_its_being_taken_back(tokens: Tokens, said: dict[str, object], words: str) -> None:
    with pytest.raises(Unauthorized, match=words):
        await tokens.check(ED.sign(claims(**said)))


async def test_a_token_is_good_for_as_long_as_policy_allows(tokens: Tokens) -> None:
    assert await tokens.check(ED.sign(claims(exp=NOW_S + LONGEST_S)))
    assert await tokens.check(token(exp=NOW_S + LONGEST_S, jti="a"))

"""Waiting for what another does: until it is so, no longer, and with a reason when it never is."""

import itertools

import pytest

from libs.runtime.eventually import eventually


async def test_the_first_true_answer_is_given_back() -> None:
    answers = iter([0, None, "", "there", "later"])

    assert await eventually(lambda: next(answers), every_s=0) == "there"
    assert next(answers) == "later"


async def test_a_coroutine_may_be_asked() -> None:
    count = itertools.count()

    async def third() -> bool:
        return next(count) >= 2

    assert await eventually(third, every_s=0)


async def test_a_failed_assertion_means_not_yet() -> None:
    count = itertools.count()

    def check() -> bool:
        assert next(count) == 2
        return True

    assert await eventually(check, every_s=0)


async def test_the_last_failed_assertion_says_why_it_never_was() -> None:
    def check() -> bool:
        raise AssertionError("three jobs are queued")

    with pytest.raises(AssertionError, match="three jobs are queued"):
        await eventually(check, within_s=0)


async def test_the_last_answer_is_told_where_nothing_was_asserted() -> None:
    with pytest.raises(AssertionError, match=r"still \[\] after 0 s"):
        await eventually(list, within_s=0)


async def test_a_fault_is_not_waited_out() -> None:
    asked = itertools.count()

    def check() -> bool:
        next(asked)
        raise ConnectionRefusedError

    with pytest.raises(ConnectionRefusedError):
        await eventually(check)
    assert next(asked) == 1

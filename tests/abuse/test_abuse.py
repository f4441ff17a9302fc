"""Nothing that a stranger, a tenant, a worker, another team or a job sends comes through: one row, one test."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.abuse.cases import CASES, Case
from tests.abuse.scene import Scene

LEAST, MOST_AGAINST_ONE = 500, 20
WITHIN_S = 90


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_nothing_comes_through(scene: Scene, case: Case) -> None:
    async with asyncio.timeout(WITHIN_S):  # a stream that opens though it should not would stay open
        assert await case.attempt.through(scene) == ""


def test_there_are_five_hundred_and_no_defence_has_more_than_twenty() -> None:
    defences = Counter((case.family, case.defence) for case in CASES)

    assert len(CASES) >= LEAST
    assert {name: count for name, count in defences.items() if count > MOST_AGAINST_ONE} == {}


def test_no_two_are_alike() -> None:
    tried = Counter((case.defence, repr(case.attempt)) for case in CASES)

    assert [words for words, count in tried.items() if count > 1] == []

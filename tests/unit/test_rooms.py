"""How much of the bucket of inputs one user may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.capacity.rooms import Room, held_bytes
from libs.policy import Policy

DEFAULT = Room.of(Policy())
MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("stored_mib", "allowed_mib"), [(0, 64), (409, 64), (460.8, 16), (486.4, 4), (512, 0), (600, 0)]
)
def test_a_share_shrinks_above_four_fifths_of_the_bucket(stored_mib: float, allowed_mib: float) -> None:
    allowed = DEFAULT.allowance(round(stored_mib * MIB)) / MIB

    assert allowed == pytest.approx(allowed_mib, abs=0.001)


def test_greedy_users_close_the_bucket_to_nobody_who_asks_for_little() -> None:
    """A hundred users take all they may, one after the other."""
    stored, largest = 0, held_bytes(Policy().submissions.max_input_bytes)
    for _ in range(100):
        held = 0
        while DEFAULT.takes(largest, held=held, stored=stored):
            held, stored = held + largest, stored + largest

    assert DEFAULT.takes(held_bytes(10_000), held=0, stored=stored)
    assert stored < DEFAULT.bucket


sizes = st.integers(0, 10**9)


@given(held=sizes, less=sizes, stored=sizes, asked=sizes)
def test_who_holds_less_is_never_refused_where_who_holds_more_is_not(
    held: int, less: int, stored: int, asked: int
) -> None:
    if DEFAULT.takes(asked, held=max(held, less), stored=stored):
        assert DEFAULT.takes(asked, held=min(held, less), stored=stored)
        assert stored + asked <= DEFAULT.bucket

"""A body is read as far and as long as its route takes it, and is parsed only if no parser can break on it."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from libs.runtime.bodies import MAX_DEPTH, BodyLimit, is_deep, read_body, require_parsable
from libs.runtime.errors import BodyCut, BodyTooDeep, BodyTooLarge, BodyTooSlow, HalfCharacter

JSON = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\ax') | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(alphabet='[]{}"\\a'), inner, max_size=2),
    max_leaves=60,
)
PATIENT = BodyLimit(10)


class Client:
    """Sends these pieces, and then nothing more, or goes."""

    def __init__(self, *pieces: bytes, goes: bool = False, ends: bool = True) -> None:
        self.taken = 0
        self._pieces = pieces
        self._goes = goes
        self._ends = ends

    async def receive(self) -> Message:
        if self.taken == len(self._pieces):
            return {"type": "http.disconnect"} if self._goes else await asyncio.Future()
        piece = self._pieces[self.taken]
        self.taken += 1
        more = self.taken < len(self._pieces) or not self._ends
        return {"type": "http.request", "body": piece, "more_body": more}


def depth_of(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


async def test_a_body_at_the_limit_is_read_in_whatever_pieces() -> None:
    assert await read_body(Client(b"12345", b"", b"67890").receive, PATIENT) == b"1234567890"


async def test_a_body_is_read_no_further_than_its_limit() -> None:
    client = Client(b"12345", b"67890", b"1", b"2", b"3")

    with pytest.raises(BodyTooLarge, match="10 bytes"):
        await read_body(client.receive, PATIENT)
    assert client.taken == 3


async def test_a_body_that_announces_too_much_is_not_read_at_all() -> None:
    client = Client(b"1")

    with pytest.raises(BodyTooLarge):
        await read_body(client.receive, PATIENT, announced=11)
    assert client.taken == 0


async def test_a_body_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libs.runtime.bodies.LEAST_TIME_S", -1)

    with pytest.raises(BodyTooSlow):
        await read_body(Client(b"1", ends=False).receive, PATIENT)


async def test_a_client_that_goes_in_the_midst_is_no_fault_of_ours() -> None:
    with pytest.raises(BodyCut):
        await read_body(Client(b"1", ends=False, goes=True).receive, PATIENT)


def test_more_may_take_longer() -> None:
    assert [BodyLimit(size).within_s for size in (0, 128 * 1024, 7 * 1024 * 1024)] == [10, 11, 66]


@given(JSON, st.booleans())
def test_depth_is_that_of_what_is_parsed(value: Any, ascii_only: bool) -> None:  # noqa: FBT001 - drawn
    for extra in (0, MAX_DEPTH - 3):
        deeper = json.loads("[" * extra + json.dumps(value) + "]" * extra)

        assert is_deep(json.dumps(deeper, ensure_ascii=ascii_only).encode()) is (depth_of(deeper) > MAX_DEPTH)


@pytest.mark.parametrize("opens", [b"[", b'{"a":', b'[{"a":[', b'["]",'])
def test_what_is_too_deep_is_so_whether_it_ends_or_not(opens: bytes) -> None:
    with pytest.raises(BodyTooDeep, match="32"):
        require_parsable(opens * 50_000)


@pytest.mark.parametrize(
    "body", [b'"' + b'\\"' * 500_000, b'"' + b"[" * 500_000, b'"\\' * 500_000, b"[]" * 500_000, b"]" * 500_000]
)
def test_what_looks_deep_and_is_not_costs_no_more_than_its_length(body: bytes) -> None:
    require_parsable(body)


@pytest.mark.parametrize("body", [b'"\\ud800"', b'{"\\uDFFF": 1}', b'["\\ud83d \\ude80"]'])
def test_half_a_character_is_refused(body: bytes) -> None:
    with pytest.raises(HalfCharacter):
        require_parsable(body)


@pytest.mark.parametrize("body", [b'"\\ud83d\\ude80"', b'"\\\\ud800"', b"\\ud800", b"", b"\xff"])
def test_whole_characters_and_what_is_no_json_are_left_to_the_parser(body: bytes) -> None:
    require_parsable(body)

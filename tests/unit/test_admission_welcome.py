"""Of a user whose submission before was taken in, all is asked for at once; refusals add no writes and no questions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from libs.capacity.answers import Request, ReserveAnswer
from libs.capacity.rows import Pause
from libs.eventlog import LogUnavailable
from libs.eventlog.buckets import MemoryBucket
from services.admission import submitting
from services.admission.outcomes import Accepted, TooOften
from services.admission.submitting import Submitting, Welcome
from tests.fixtures.memory_admission import MemoryAdmission


class Meeting(MemoryBucket):
    """A bucket and a view that come back only when an input, a place and the pauses were asked for."""

    def __init__(self, view: Any) -> None:
        super().__init__()
        self._view = view
        self._all = asyncio.Barrier(3)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    async def put(self, name: str, content: bytes) -> None:
        await self._all.wait()
        await super().put(name, content)

    async def reserve(self, request: Request) -> ReserveAnswer:
        await self._all.wait()
        return await self._view.reserve(request)

    async def pauses(self) -> tuple[Pause, ...]:
        await self._all.wait()
        return await self._view.pauses()


class Counted(MemoryBucket):
    """A bucket that counts what is put, and may be away."""

    def __init__(self) -> None:
        super().__init__()
        self.puts = 0
        self.away = False

    async def put(self, name: str, content: bytes) -> None:
        self.puts += 1
        if self.away:
            raise LogUnavailable(reason="away")
        await super().put(name, content)


def submitting_to(admission: MemoryAdmission, inputs: MemoryBucket, *, view: Any = None) -> Submitting:
    return replace(admission.submitting, inputs=inputs, view=view or admission.view)


async def test_of_a_user_who_was_taken_in_before_all_is_asked_for_at_once(admission: MemoryAdmission) -> None:
    await admission.submitting.submit(admission.new())
    meeting = Meeting(admission.view)

    async with asyncio.timeout(5):
        outcome = await submitting_to(admission, meeting, view=meeting).submit(admission.new())

    assert isinstance(outcome, Accepted)
    assert await meeting.names() != []


class WithoutPauses:
    """A view that may not be asked for pauses."""

    def __init__(self, view: Any) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        assert name != "pauses"
        return getattr(self._view, name)


async def test_what_is_refused_once_asks_for_no_more_than_a_place() -> None:
    admission = MemoryAdmission(submissions={"per_minute": 1})
    await admission.fold()
    await admission.submit()
    assert isinstance(await admission.submit(), TooOften)
    submitting = submitting_to(admission, admission.inputs, view=WithoutPauses(admission.view))

    assert isinstance(await submitting.submit(admission.new()), TooOften)


async def test_what_is_refused_once_puts_nothing_more() -> None:
    admission, inputs = MemoryAdmission(submissions={"per_minute": 1}), Counted()
    await admission.fold()
    submitting = submitting_to(admission, inputs)

    outcomes = [await submitting.submit(admission.new()) for _ in range(5)]

    assert [type(outcome) for outcome in outcomes] == [Accepted, *[TooOften] * 4]
    assert inputs.puts == 2  # the one that was taken in, and the one right after it


async def test_of_many_at_once_one_input_is_put_ahead() -> None:
    admission, inputs = MemoryAdmission(submissions={"per_minute": 1}), Counted()
    await admission.fold()
    submitting = submitting_to(admission, inputs)
    await submitting.submit(admission.new())

    await asyncio.gather(*(submitting.submit(admission.new()) for _ in range(5)))

    assert inputs.puts == 2


async def test_an_input_that_cannot_be_put_begins_no_job(admission: MemoryAdmission) -> None:
    inputs = Counted()
    submitting = submitting_to(admission, inputs)
    await submitting.submit(admission.new())
    inputs.away, new = True, admission.new()

    with pytest.raises(LogUnavailable):
        await submitting.submit(new)

    assert await admission.log.read(new.id) == []


def test_who_was_taken_in_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submitting, "MOST_USERS", 2)
    known = Welcome()

    for user in ("ann", "bob", "cid"):
        known.taken_in(user)

    assert [known.takes(user) for user in ("ann", "bob", "cid")] == [False, True, True]

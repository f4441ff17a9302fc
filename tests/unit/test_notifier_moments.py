"""Connections that wait are written to by others than their tasks: each thing once and in order, by whatever way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.runtime.eventually import eventually
from services.notifier.fanout import Fanout, OfUser, StreamItem, TooSlow
from services.notifier.moments import KeepAlive, Render
from services.notifier.streaming import Opening, Pace, Stream
from tests.fixtures.lives import life_of
from tests.fixtures.memory_notifier import WHOLE, Listener, MemoryNotifier, Seen, events_in, id_of


class Wire:
    """The client's end: what came, in order, by the stream's own task or past it."""

    def __init__(self) -> None:
        self.is_free = True
        self.came = b""
        self.chunks: list[bytes] = []
        self.by_task: list[bytes] = []
        self.taken = asyncio.Event()  # what the task gives is taken in
        self.taken.set()

    def write(self, chunk: bytes) -> None:
        assert self.is_free, "written to while it was not free"
        length, _, rest = chunk.partition(b"\r\n")
        assert len(rest) == int(length, 16) + 2
        self.chunks.append(chunk)
        self.came += rest[:-2]

    async def send(self, stream: Stream) -> None:
        """What a stream's task does."""
        stream.through(self)
        async for piece in stream:
            await self.taken.wait()
            self.by_task.append(piece)
            self.came += piece

    def heard(self) -> list[tuple[str, str | None]]:
        return [(kind, id_) for kind, id_, _ in events_in(self.came)]


@asynccontextmanager
async def open_on(wire: Wire, client: Listener) -> AsyncIterator[asyncio.Task[None]]:
    stream = await client.opened()
    assert isinstance(stream, Stream)
    sending = asyncio.create_task(wire.send(stream))
    await breathe()
    try:
        yield sending
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await client.close()


async def breathe() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_comes_goes_to_all_who_listen_in_one_write_of_the_same_bytes_and_wakes_no_task() -> None:
    notifier, one, two = MemoryNotifier(), Wire(), Wire()
    async with open_on(one, notifier.of_user()), open_on(two, notifier.of_user()):
        begun = len(one.by_task)
        await notifier.write(*life_of("job-1", "queued dispatched"))
        notifier.tell()
        await breathe()

    assert [len(one.chunks), len(two.chunks)] == [1, 1]
    assert one.chunks[0] is two.chunks[0]
    assert one.heard()[1:] == [("status", id_of(1)), ("status", id_of(2))]
    assert len(one.by_task) == begun
    assert notifier.seen.delivered_seqs == [1, 2] * 2


async def test_a_connection_that_is_not_free_gets_it_from_its_task() -> None:
    notifier, wire = MemoryNotifier(), Wire()
    async with open_on(wire, notifier.of_user()):
        wire.is_free = False
        await notifier.write(*life_of("job-1", "queued"))
        notifier.tell()
        await breathe()
        wire.is_free = True
        await notifier.write(*life_of("job-2", "queued"))
        notifier.tell()
        await breathe()

    assert wire.heard()[1:] == [("status", id_of(1)), ("status", id_of(2))]
    assert (len(wire.by_task), len(wire.chunks)) == (2, 1)


async def test_nobody_writes_while_the_task_does() -> None:
    """Though the connection has nothing left: what the task has in hand comes first."""
    notifier, wire = MemoryNotifier(), Wire()
    async with open_on(wire, notifier.of_user()):
        wire.is_free = False
        wire.taken.clear()
        await notifier.write(*life_of("job-1", "queued"))
        notifier.tell()
        await breathe()
        wire.is_free = True
        await notifier.write(*life_of("job-2", "queued"))
        notifier.tell()
        await breathe()
        wire.taken.set()
        await breathe()

    assert wire.heard()[1:] == [("status", id_of(1)), ("status", id_of(2))]
    assert wire.chunks == []


class Torn(Wire):
    """A wire that breaks as it is written to."""

    def write(self, chunk: bytes) -> None:
        raise RuntimeError("torn")


async def test_a_connection_that_fails_is_cut_off_and_the_others_are_written_to() -> None:
    notifier, torn, whole = MemoryNotifier(), [Torn(), Torn()], Wire()
    async with (
        open_on(torn[0], notifier.of_user()) as failing,
        open_on(whole, notifier.of_user()),
        open_on(torn[1], notifier.of_user()),
    ):
        await notifier.write(*life_of("job-1", "queued"))
        notifier.tell()
        await breathe()
        assert failing.done()

    assert whole.heard()[1:] == [("status", id_of(1))]
    assert [len(wire.heard()) for wire in torn] == [1, 1]
    assert all(wire.came.endswith(b"retry: 2000\n\n") for wire in torn)
    assert [type(why) for why in notifier.seen.ends] == [TooSlow, TooSlow]


async def test_a_job_that_ends_ends_its_stream_after_its_last_lines() -> None:
    notifier, wire = MemoryNotifier(), Wire()
    await notifier.write(*WHOLE[:5])
    async with open_on(wire, notifier.of_job("job-1")) as sending:
        notifier.say("brought")
        notifier.tell_lines()
        await breathe()
        notifier.say("still on its way")
        await notifier.write(*WHOLE[5:])
        notifier.tell()
        await eventually(sending.done)
        sending.result()

    lines = [data["line"] for kind, _, data in events_in(wire.came) if kind == "log"]
    assert lines == ["brought", "still on its way"]
    assert [kind for kind, _ in wire.heard()] == ["snapshot", "log", "status", "status", "log", "status", "end"]


async def test_what_the_follower_brings_late_is_not_written_again() -> None:
    notifier, wire = MemoryNotifier(), Wire()
    await notifier.write(*WHOLE[:3])
    async with open_on(wire, notifier.of_job("job-1")):
        notifier.tell()
        await breathe()

    assert wire.heard() == [("snapshot", id_of(3))]


class Course:
    """A job that goes on, and what happens around it."""

    def __init__(self) -> None:
        self.notifier, self.wire = MemoryNotifier(), Wire()
        self.rest, self.said = list(WHOLE), 0

    async def write(self) -> None:
        if self.rest:
            await self.notifier.write(self.rest.pop(0))

    async def tell(self) -> None:
        self.notifier.tell()

    async def say(self) -> None:
        if self.rest:  # who has ended says nothing
            self.said += 1
            self.notifier.say(str(self.said))

    async def bring(self) -> None:
        self.notifier.tell_lines()

    async def busy(self) -> None:
        self.wire.is_free = False

    async def free(self) -> None:
        self.wire.is_free = True

    async def turn(self) -> None:
        await asyncio.sleep(0)

    async def rest_a_while(self) -> None:
        await breathe()


STEPS = [Course.write, Course.tell, Course.say, Course.bring]
STEPS += [Course.busy, Course.free, Course.turn, Course.rest_a_while]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(STEPS), min_size=5, max_size=40))
async def test_each_thing_comes_once_and_in_order_whoever_sends_it(steps: list[Callable[[Course], Any]]) -> None:
    """The log and the lines grow and are brought, the connection is busy and free again, the loop turns or not."""
    course = Course()
    await course.write()
    async with open_on(course.wire, course.notifier.of_job("job-1")) as sending:
        for step in [*steps, Course.free, *[Course.write] * len(WHOLE), Course.tell]:
            await step(course)
        await eventually(sending.done)
        sending.result()

    heard = events_in(course.wire.came)
    shown = [id_of(n) for n, event in enumerate(WHOLE, 1) if n > 1 and event.data.EVENT.value != "started"]
    assert [id_ for kind, id_, _ in heard if kind == "status"] == shown
    assert [data["line"] for kind, _, data in heard if kind == "log"] == [str(n) for n in range(1, course.said + 1)]
    assert heard[-1][0] == "end"


# ── silence ───────────────────────────────────────────────────────────────────


async def test_a_silent_connection_is_told_that_it_is_one_without_its_task() -> None:
    fanout, wire = Fanout(beat_s=0.01), Wire()
    with fanout.attached([OfUser("ann")]) as tap:
        stream = Stream(tap, Opening(0), pace=Pace(0.01, 2000, lambda: 100.0), watch=Seen(), ends=False)
        sending = asyncio.create_task(wire.send(stream))
        await eventually(lambda: wire.came.count(b": still here\n\n") >= 3)
        sending.cancel()

    assert wire.by_task == [b"retry: 2000\n\n"]


async def test_one_that_may_not_listen_much_longer_is_left_to_its_task() -> None:
    """Which ends it when its time is over; nothing else would."""
    fanout, wire = Fanout(beat_s=0.02), Wire()
    until_s = asyncio.get_running_loop().time() + 0.05
    left_s = lambda: until_s - asyncio.get_running_loop().time()  # noqa: E731 short
    with fanout.attached([OfUser("ann")]) as tap:
        stream = Stream(tap, Opening(0), pace=Pace(0.04, 2000, left_s), watch=Seen(), ends=False)
        await asyncio.wait_for(wire.send(stream), 5)

    assert wire.came.startswith(b"retry: 2000\n\n")
    assert wire.came.endswith(b"retry: 2000\n\n")


class Beaten:
    def __init__(self) -> None:
        self.beats = 0
        self.is_cut = False

    def beat(self) -> None:
        self.beats += 1

    def flush(self, share: Render) -> None:
        raise AssertionError("nothing came for it")

    def cut(self) -> None:
        self.is_cut = True


class Faulty(Beaten):
    def beat(self) -> None:
        raise RuntimeError("a fault of this one's")


async def test_all_who_joined_have_a_beat_in_their_turn_and_who_left_has_none() -> None:
    beat, stays, leaves = KeepAlive(0.05), Beaten(), Beaten()
    beat.join(leaves)
    await eventually(lambda: leaves.beats == 1)
    beat.join(stays)
    beat.leave(leaves)
    await eventually(lambda: stays.beats >= 3)
    beat.leave(stays)

    assert leaves.beats == 1
    assert beat._timer is None


async def test_a_stream_that_fails_at_its_beat_is_cut_off_and_keeps_none_from_theirs() -> None:
    beat, first, faulty, last = KeepAlive(0.05), Beaten(), Faulty(), Beaten()
    for each in (first, faulty, last):
        beat.join(each)

    await eventually(lambda: min(first.beats, last.beats) >= 1)
    for each in (first, faulty, last):
        beat.leave(each)

    assert [each.is_cut for each in (first, faulty, last)] == [False, True, False]


@pytest.mark.parametrize("fits", [True, False])
async def test_who_has_more_before_it_than_it_may_in_one_turn_is_cut_off(fits: bool) -> None:  # noqa: FBT001 a table
    fanout, wire = Fanout(depth=3), Wire()
    with fanout.attached([OfUser("ann")]) as tap:
        stream = Stream(tap, Opening(0), pace=Pace(15, 2000, lambda: 100.0), watch=Seen(), ends=False)
        sending = asyncio.create_task(wire.send(stream))
        await breathe()
        for number in range(3 if fits else 4):
            fanout.spread([OfUser("ann")], lambda number=number: StreamItem(b"x", number + 1))
        await breathe()
        sending.cancel()

    assert wire.came == (b"retry: 2000\n\nxxx" if fits else b"retry: 2000\n\n" * 2)

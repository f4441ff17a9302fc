"""How a stream ends, how much is kept for it, and how many there may be."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from libs.forecast.shown import shown_job
from libs.policy import Policy
from libs.runtime.eventually import PATIENCE_S
from libs.runtime.telemetry import Telemetry
from services.notifier.api import Edge
from services.notifier.domain import Complete, Known, NoJob
from services.notifier.fanout import Closed, Fanout, OfJob, OfUser, StreamItem, Tap, TooSlow
from services.notifier.handlers import AskedStream, Opened
from services.notifier.limits import Openings, TooMany
from services.notifier.sending import OpenStreams
from services.notifier.signals import Signals
from tests.fixtures.lives import job_after
from tests.fixtures.memory_notifier import ASKS, WHOLE, MemoryNotifier, id_of, user

T0 = datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_silent_stream_says_that_it_lives(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:1])
    async with notifier.opened(notifier.use_cases.of_job("job-1", Known(id_of(1)), user())) as pieces:
        assert not isinstance(pieces, Complete | NoJob)

        assert [await anext(pieces) for _ in range(2)] == [b"retry: 2000\n\n", b": still here\n\n"]


async def test_a_client_that_cannot_keep_up_is_cut_off_and_told_when_to_come_back(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:1])
    client = notifier.of_job("job-1")
    await client.heard()
    for number in range(1001):
        notifier.say(f"line {number}")
    notifier.tell_lines()

    heard = await client.heard()

    assert (heard, client.over) == ([], True)
    assert client.raw.endswith(b"retry: 2000\n\n")
    assert [type(why) for why in notifier.seen.ends] == [TooSlow]


async def test_a_stream_ends_when_its_token_does(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:1])
    until_s = notifier.clock.now_ms() / 1000 + 60
    client = notifier.of_job("job-1", who=user(expires_s=until_s))
    await client.heard()
    open_before = not client.over
    await notifier.clock.sleep_ms(61_000)

    await client.heard()

    assert (open_before, client.over) == (True, True)


async def test_a_stream_ends_with_its_token_and_no_other_does(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:1])
    ours = [notifier.of_job("job-1", who=user(token_id="lost")), notifier.of_user(who=user(token_id="lost"))]
    others = [notifier.of_job("job-1", who=user(token_id="kept")), notifier.of_user(who=user())]
    for client in (*ours, *others):
        await client.heard()

    notifier.revocations.take_back("lost", until_ms=notifier.clock.now_ms() + 1000)

    for client in (*ours, *others):
        await client.heard()
    assert [client.over for client in (*ours, *others)] == [True, True, False, False]


async def test_a_stream_whose_token_is_taken_back_ends_at_once() -> None:
    notifier = MemoryNotifier(
        Policy.model_validate({"stream": {"comment_s": 86_400}})
    )  # by itself it would look at its token then
    await notifier.write(*WHOLE[:1])
    async with notifier.opened(notifier.use_cases.of_user(None, user(token_id="lost"))) as pieces:
        assert not isinstance(pieces, Complete | NoJob)
        await anext(pieces)
        waiting = asyncio.create_task(anext(pieces))
        await asyncio.sleep(0)

        notifier.revocations.take_back("lost", until_ms=notifier.clock.now_ms() + 1000)

        assert await asyncio.wait_for(waiting, PATIENCE_S) == b"retry: 2000\n\n"


async def test_a_token_that_is_taken_back_while_its_stream_opens_ends_it(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:1])
    notifier.revocations.take_back("lost", until_ms=notifier.clock.now_ms() + 1000)
    client = notifier.of_job("job-1", who=user(token_id="lost"))

    await client.heard()

    assert client.over


async def test_a_token_that_is_taken_back_ends_a_long_past_too(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:1])
    notifier.say(*("x" * 1000 for _ in range(300)))
    who = user(token_id="lost")
    async with notifier.opened(notifier.use_cases.of_job("job-1", Known(), who)) as pieces:
        assert not isinstance(pieces, Complete | NoJob)
        first = await anext(pieces)
        notifier.revocations.take_back("lost", until_ms=notifier.clock.now_ms() + 1000)
        rest = [piece async for piece in pieces]

    assert len(first) >= 64 * 1024
    assert rest == [b"retry: 2000\n\n"]


async def test_a_client_that_goes_while_its_stream_opens_leaves_nothing_behind(notifier: MemoryNotifier) -> None:
    """What it asked for is read no further, and its user may open another one."""
    openings, begun = Openings(per_user=1, per_replica=1), asyncio.Event()
    edge = Edge(notifier.use_cases, openings, OpenStreams(taken_within_s=1, cut_off=list[str]().append))
    said: list[Any] = []

    async def read_on(_: Tap) -> Opened:
        begun.set()
        return await asyncio.Future()

    async def receive() -> dict[str, Any]:
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        said.append(message)

    answer = edge.answer(user(), AskedStream((OfUser("user-1"),), read_on))

    await asyncio.wait_for(answer({"type": "http"}, receive, send), PATIENCE_S)

    assert said == []
    assert (openings.total, notifier.fanout.connections, edge.streams.streams) == (0, 0, set())


async def test_an_opening_that_is_cancelled_is_no_client_that_has_gone(notifier: MemoryNotifier) -> None:
    openings, begun = Openings(per_user=1, per_replica=1), asyncio.Event()
    edge = Edge(notifier.use_cases, openings, OpenStreams(taken_within_s=1, cut_off=list[str]().append))

    async def read_on(_: Tap) -> Opened:
        begun.set()
        return await asyncio.Future()

    async def never(*_: Any) -> Any:
        await asyncio.Future()

    answer = edge.answer(user(), AskedStream((OfUser("user-1"),), read_on))
    answering = asyncio.create_task(answer({"type": "http"}, never, never))
    await begun.wait()
    answering.cancel()
    await asyncio.wait([answering])

    assert answering.cancelled()
    assert (openings.total, notifier.fanout.connections) == (0, 0)


class OneWay(asyncio.Transport):
    """A connection on which its client is to listen alone."""

    def __init__(self) -> None:
        super().__init__()
        self.taker, self.cut = asyncio.Protocol(), False

    def hand_over(self, taker: asyncio.Protocol) -> asyncio.Transport:
        self.taker = taker
        return self

    def write(self, data: Any) -> None:
        """It takes whatever comes."""

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.cut

    def abort(self) -> None:
        self.cut = True
        asyncio.get_running_loop().call_soon(self.taker.connection_lost, None)


async def test_a_client_that_sends_without_end_is_cut_off(notifier: MemoryNotifier) -> None:
    """Nobody reads what it sends, and asyncio takes as much of it as comes."""
    why, line, openings = list[str](), OneWay(), Openings(per_user=1, per_replica=1)
    edge = Edge(notifier.use_cases, openings, OpenStreams(taken_within_s=1, cut_off=why.append))

    async def never() -> Any:
        await asyncio.Future()

    async def send(_: Any) -> None:
        """The head."""

    scope = {"type": "http", "http_version": "1.1", "state": {"connection": line}}
    await edge.answer(user(), notifier.use_cases.of_user(None, user()))(scope, never, send)
    [stream] = edge.streams.streams
    line.taker.data_received(b"x" * 1024)
    kept = not line.cut

    for _ in range(64):
        line.taker.data_received(b"x" * 1024)

    await asyncio.wait([stream.task], timeout=PATIENCE_S)
    assert (kept, line.cut, why) == (True, True, ["sends"])
    assert (openings.total, notifier.fanout.connections, edge.streams.streams) == (0, 0, set())


async def test_closing_a_replica_ends_open_streams_and_those_that_still_come() -> None:
    fanout = Fanout()
    with fanout.attached([OfJob("job-1")]) as before:
        fanout.close()
        with fanout.attached([OfUser("user-1")]) as after:
            for tap in (before, after):
                with pytest.raises(Closed):
                    await tap.take(within_s=1)
    assert fanout.connections == 0


async def test_a_tap_that_was_too_full_says_so_even_before_it_is_empty() -> None:
    tap = Tap(depth=2)
    for number in range(3):
        tap.offer(StreamItem(b"x", number))

    with pytest.raises(TooSlow):
        await tap.take(within_s=0)


async def test_a_tap_holds_so_many_bytes_however_few_things_they_are() -> None:
    tap = Tap(most_bytes=100)
    tap.offer(StreamItem(b"x" * 60))
    taken = await tap.take(within_s=0)
    for _ in range(2):
        tap.offer(StreamItem(b"x" * 60))

    assert len(taken) == 1
    with pytest.raises(TooSlow):
        await tap.take(within_s=0)


async def test_what_nobody_listens_to_is_not_rendered() -> None:
    fanout, rendered = Fanout(), list[int]()

    def render() -> StreamItem:
        rendered.append(1)
        return StreamItem(b"x")

    fanout.spread([OfJob("job-1"), OfUser("user-1")], render)
    with fanout.attached([OfJob("job-1")]) as one, fanout.attached([OfUser("user-1")]) as other:
        fanout.spread([OfJob("job-1"), OfUser("user-1")], render)

        assert [await one.take(within_s=0), await other.take(within_s=0)] == [[StreamItem(b"x")]] * 2
    assert len(rendered) == 1


def test_a_user_and_a_replica_have_only_so_many_streams() -> None:
    openings = Openings(per_user=2, per_replica=3)

    answers = [openings.open(name) for name in ("ann", "ann", "ann", "bob", "cid")]
    openings.close("ann")

    assert answers == [None, None, TooMany(2, of_user=True), None, TooMany(3, of_user=False)]
    assert openings.open("ann") is None


def test_the_message_of_a_job_that_asks_tells_what_it_asks() -> None:
    shown = shown_job(job_after(ASKS), policy=Policy(), used_today=1, now=T0, debug_id="d")

    assert shown.message == "1 of 3 iterations used. Continue for 3 more?"


def test_the_lag_of_a_piece_is_that_of_its_oldest_event_and_lines_have_none() -> None:
    telemetry = Telemetry("notifier", instance="n-1", logs=None)
    signals, now_ms = Signals(telemetry, streams=lambda: 3), time.time_ns() // 1_000_000

    signals.delivered([StreamItem(b"", 1, at_ms=now_ms - 2_000), StreamItem(b"", 2, at_ms=now_ms)])
    signals.delivered([StreamItem(b"", line=7)])
    signals.ended(TooSlow())
    signals.ended(Closed())
    signals.webhook("taken")

    text = telemetry.metrics_text().decode()
    assert "headgate_notifier_lag_seconds_count 1.0" in text
    assert 'headgate_notifier_lag_seconds_bucket{le="1"} 0.0' in text
    assert 'headgate_notifier_lag_seconds_bucket{le="5"} 1.0' in text
    assert 'headgate_notifier_cut_off_total{why="too slow"} 1.0' in text
    assert text.count("headgate_notifier_cut_off_total{") == 1
    assert 'headgate_notifier_webhooks_total{outcome="taken"} 1.0' in text
    assert "headgate_notifier_streams 3.0" in text

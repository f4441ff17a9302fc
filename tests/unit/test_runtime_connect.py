"""A server that is away is said once, waited for, and said once when it is there."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from libs.runtime.clock import ManualClock
from libs.runtime.connect import LONGEST_PAUSE_MS, pause_ms, wait_for
from libs.runtime.eventually import eventually
from libs.runtime.lifecycle import Health


class Server:
    """Refuses until it is up."""

    def __init__(self) -> None:
        self.up = False
        self.attempts = 0

    async def connect(self) -> str:
        self.attempts += 1
        if not self.up:
            raise ConnectionRefusedError("nobody listens")
        return "connected"


class Impatient(ManualClock):
    """Does not sleep, but notes how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses_ms: list[int] = []
        self.after: Callable[[int], None] = lambda pauses: None

    async def sleep_ms(self, duration_ms: int) -> None:
        self.pauses_ms.append(duration_ms)
        self.after(len(self.pauses_ms))


async def test_a_server_that_comes_back_is_found_and_each_change_is_said_once(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server, health = Server(), Health("NATS")
    waiting = asyncio.create_task(wait_for("NATS", server.connect, away=(ConnectionError,), health=health, clock=clock))
    for attempts in range(1, 50):
        await eventually(lambda: clock.sleeping == 1)
        assert server.attempts >= attempts
        assert not health.ready
        await clock.advance_ms(LONGEST_PAUSE_MS)

    server.up = True
    await eventually(lambda: clock.sleeping == 1)
    await clock.advance_ms(LONGEST_PAUSE_MS)

    assert await waiting == "connected"
    assert health.ready
    assert caplog.messages == ["waiting for NATS: nobody listens", "NATS is there"]


async def test_the_longer_a_server_is_away_the_less_it_is_asked() -> None:
    server, clock = Server(), Impatient()
    clock.after = lambda pauses: setattr(server, "up", pauses == 6)

    await wait_for("NATS", server.connect, away=(ConnectionError,), health=Health("NATS"), clock=clock)

    for attempt, pause in enumerate(clock.pauses_ms):
        assert pause_ms(attempt, luck=1.0) <= pause <= pause_ms(attempt, luck=0.0)


async def test_a_server_that_is_there_is_not_talked_about(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server, health = Server(), Health("NATS")
    server.up = True

    await wait_for("NATS", server.connect, away=(ConnectionError,), health=health, clock=clock)

    assert (health.ready, caplog.messages) == (True, [])


async def test_a_server_that_takes_the_connection_and_says_nothing_counts_as_away(clock: ManualClock) -> None:
    health = Health("NATS")

    async def silent() -> None:
        await asyncio.Event().wait()

    waiting = asyncio.create_task(wait_for("NATS", silent, away=(), health=health, clock=clock, attempt_s=0.01))
    await eventually(lambda: clock.sleeping == 1)

    assert health.missing[0].why == "TimeoutError"
    waiting.cancel()
    await asyncio.wait([waiting])


async def test_a_fault_that_time_does_not_heal_passes_through(clock: ManualClock) -> None:
    async def refused() -> None:
        raise PermissionError("wrong password")

    with pytest.raises(PermissionError):
        await wait_for("NATS", refused, away=(ConnectionError,), health=Health("NATS"), clock=clock)


async def test_what_comes_soon_is_asked_for_more_often() -> None:
    server, health, clock = Server(), Health("the view"), Impatient()
    clock.after = lambda pauses: setattr(server, "up", pauses == 20)

    await wait_for("the view", server.connect, away=(ConnectionError,), health=health, clock=clock, longest_pause_ms=50)

    assert clock.pauses_ms == [50] * 20


def test_pauses_double_up_to_the_longest_and_differ_by_half() -> None:
    assert [pause_ms(attempt, luck=0.0) for attempt in (0, 1, 2, 3, 4, 5, 1000)] == [
        100,
        200,
        400,
        800,
        1600,
        2000,
        2000,
    ]
    assert pause_ms(4, luck=1.0) == 800

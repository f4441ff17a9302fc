"""Parts start in order and stop in reverse, once, whatever is called when; what is missing is said once."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

import pytest

from libs.runtime.eventually import eventually
from libs.runtime.lifecycle import Health, Loop, Missing, Service


class Diary:
    """A part that writes down what happens to it."""

    def __init__(self, name: str, diary: list[str]) -> None:
        self.name = name
        self._diary = diary

    async def start(self) -> None:
        self._diary.append(f"{self.name} starts")

    async def stop(self) -> None:
        self._diary.append(f"{self.name} stops")


class Stuck(Diary):
    """Does not come to an end by itself."""

    async def stop(self) -> None:
        await super().stop()
        await asyncio.Event().wait()


async def until_told(stopping: asyncio.Event) -> None:
    await stopping.wait()


async def deaf(_: asyncio.Event) -> None:
    await asyncio.Event().wait()


async def faulty(_: asyncio.Event) -> None:
    raise ConnectionError("gone for good")


# --- Loop ---


@pytest.mark.parametrize("body", [until_told, deaf])
async def test_a_loop_ends_when_it_is_stopped(body: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    loop = Loop("loop", body)  # type: ignore[arg-type]
    await loop.start()
    await loop.start()

    await loop.stop()
    await loop.stop()

    assert await asyncio.wait_for(loop.ended(), 30) is None


async def test_a_loop_that_was_never_started_can_be_stopped() -> None:
    await asyncio.wait_for(Loop("loop", deaf).stop(), 30)


async def test_a_loop_finishes_what_it_does_within_its_patience() -> None:
    finished: list[str] = []

    async def body(stopping: asyncio.Event) -> None:
        await stopping.wait()
        await asyncio.sleep(0)
        finished.append("the last step")

    loop = Loop("loop", body, patience_s=5)
    await loop.start()
    await loop.stop()

    assert finished == ["the last step"]


async def test_a_loop_may_stop_itself() -> None:
    async def body(stopping: asyncio.Event) -> None:
        await loop.stop()
        await stopping.wait()

    loop = Loop("loop", body)
    await loop.start()

    await asyncio.wait_for(loop.ended(), 30)


async def test_the_fault_of_a_loop_reaches_whoever_watches_it() -> None:
    loop = Loop("loop", faulty)
    await loop.start()

    with pytest.raises(ConnectionError, match="gone for good"):
        await loop.ended()
    await loop.stop()


async def test_any_order_of_starts_and_stops_leaves_at_most_one_body_and_none_at_the_end() -> None:
    bodies = 0
    most = 0

    async def body(stopping: asyncio.Event) -> None:
        nonlocal bodies, most
        bodies += 1
        most = max(most, bodies)
        try:
            await until_told(stopping)
            await asyncio.sleep(0)
        finally:
            bodies -= 1

    loop = Loop("loop", body, patience_s=0.001)
    choice = random.Random(7)

    async def caller() -> None:
        for _ in range(50):
            call = asyncio.create_task(choice.choice([loop.start, loop.stop])())
            for _ in range(choice.randrange(4)):
                await asyncio.sleep(0)
            if choice.random() < 0.2:
                call.cancel()
            await asyncio.wait([call])

    await asyncio.gather(*(caller() for _ in range(20)))
    await loop.start()
    assert bodies <= 1
    await loop.stop()

    assert (most, bodies) == (1, 0)


async def test_starts_and_stops_that_overlap_take_effect_in_the_order_of_their_calls() -> None:
    bodies = 0

    async def body(stopping: asyncio.Event) -> None:
        nonlocal bodies
        bodies += 1
        await until_told(stopping)
        bodies -= 1

    loop = Loop("loop", body, patience_s=5)
    await loop.start()
    await asyncio.gather(loop.stop(), loop.start(), loop.stop())
    await asyncio.sleep(0)

    assert bodies == 0


async def test_a_start_after_an_impatient_stop_runs_the_body_again() -> None:
    runs: list[int] = []

    async def body(stopping: asyncio.Event) -> None:
        runs.append(len(runs))
        try:
            await deaf(stopping)
        finally:
            for _ in range(10):  # it takes its time to clean up
                await asyncio.sleep(0)

    loop = Loop("loop", body, patience_s=60)
    await loop.start()
    impatient = asyncio.create_task(loop.stop())
    await asyncio.sleep(0)
    impatient.cancel()

    await loop.start()
    await eventually(lambda: runs == [0, 1])
    loop._patience_s = 0
    await loop.stop()


# --- Service ---


async def ran(compose: Callable[[Service], Awaitable[None]], *, grace_s: float = 5) -> int:
    return await asyncio.wait_for(Service("test", grace_s=grace_s).run(compose), 30)  # type: ignore[arg-type]


async def test_parts_stop_in_the_reverse_order_of_their_start() -> None:
    diary: list[str] = []

    async def compose(service: Service) -> None:
        await service.start(Diary("server", diary))
        service.closing("client", Diary("client", diary).stop)
        await service.start(Diary("gate", diary))
        service.stop()

    code = await ran(compose)

    assert diary == ["server starts", "gate starts", "gate stops", "client stops", "server stops"]
    assert code == 0


async def test_a_service_that_still_waits_for_a_server_stops_at_once() -> None:
    diary: list[str] = []

    async def compose(service: Service) -> None:
        await service.start(Diary("server", diary))
        asyncio.get_running_loop().call_soon(service.stop)
        await asyncio.Event().wait()

    code = await ran(compose)

    assert (code, diary) == (0, ["server starts", "server stops"])


async def test_a_fault_while_composing_stops_what_had_started(caplog: pytest.LogCaptureFixture) -> None:
    diary: list[str] = []

    async def compose(service: Service) -> None:
        await service.start(Diary("server", diary))
        raise RuntimeError("the settings of the stream differ")

    code = await ran(compose)

    assert (code, diary) == (1, ["server starts", "server stops"])
    assert "the settings of the stream differ" in caplog.text


async def test_a_part_that_fails_ends_the_service_with_1(caplog: pytest.LogCaptureFixture) -> None:
    diary: list[str] = []

    async def compose(service: Service) -> None:
        await service.start(Diary("server", diary))
        await service.start(Loop("cycle", faulty))

    code = await ran(compose)

    assert (code, diary[-1]) == (1, "server stops")
    assert "test stops: cycle failed" in caplog.text


async def test_a_part_that_does_not_stop_takes_the_grace_of_all_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    diary: list[str] = []

    async def compose(service: Service) -> None:
        await service.start(Diary("server", diary))
        await service.start(Stuck("client", diary))
        service.stop()

    await ran(compose, grace_s=0.05)

    assert diary[-2:] == ["client stops", "server stops"]
    assert "client did not stop in time" in caplog.text


async def test_a_second_signal_ends_the_grace() -> None:
    diary: list[str] = []

    async def compose(service: Service) -> None:
        await service.start(Stuck("client", diary))
        service.stop()
        service.stop()

    await ran(compose, grace_s=3600)

    assert diary == ["client starts", "client stops"]


async def test_a_fault_while_stopping_leaves_no_other_part_behind(caplog: pytest.LogCaptureFixture) -> None:
    diary: list[str] = []

    async def fail() -> None:
        raise OSError("no answer to our goodbye")

    async def compose(service: Service) -> None:
        await service.start(Diary("server", diary))
        service.closing("client", fail)
        service.stop()

    code = await ran(compose)

    assert (code, diary[-1]) == (1, "server stops")
    assert "no answer to our goodbye" in caplog.text


# --- Health ---


def test_a_service_is_ready_when_nothing_is_missing() -> None:
    health = Health("NATS", "Valkey")

    health.is_there("NATS")
    assert (health.ready, health.missing) == (False, (Missing("Valkey", "not there yet"),))

    health.is_there("Valkey")
    assert (health.ready, health.missing) == (True, ())

    health.is_missing("NATS", "connection lost")
    assert (health.ready, health.missing) == (False, (Missing("NATS", "connection lost"),))


def test_each_change_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    health = Health("NATS")

    for _ in range(3):
        health.is_missing("NATS", "refused")
    for _ in range(3):
        health.is_there("NATS")
    health.is_missing("NATS", "lost")

    assert caplog.messages == ["waiting for NATS: refused", "NATS is there", "waiting for NATS: lost"]

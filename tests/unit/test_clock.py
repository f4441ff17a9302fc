"""Time as an argument: a clock that a test turns by hand behaves like one that turns by itself."""

import asyncio

import pytest

from libs.runtime.clock import Clock, ManualClock, SystemClock, sleep_or
from libs.runtime.eventually import eventually


async def test_sleepers_wake_in_the_order_of_their_moments_and_see_them(clock: ManualClock) -> None:
    woken: list[tuple[str, int]] = []

    async def nap(name: str, duration_ms: int) -> None:
        await clock.sleep_ms(duration_ms)
        woken.append((name, clock.monotonic_ms()))

    tasks = [asyncio.ensure_future(nap(name, after)) for name, after in (("b", 20), ("a", 10), ("c", 20), ("d", 31))]
    await eventually(lambda: clock.sleeping == 4)

    await clock.advance_ms(30)

    assert woken == [("a", 10), ("b", 20), ("c", 20)]
    assert clock.sleeping == 1
    await clock.advance_ms(1)
    await asyncio.gather(*tasks)


async def test_a_loop_that_sleeps_again_is_woken_again_in_one_advance(clock: ManualClock) -> None:
    ticks: list[int] = []

    async def tick() -> None:
        while True:
            await clock.sleep_ms(5)
            ticks.append(clock.monotonic_ms())

    ticking = asyncio.ensure_future(tick())
    await eventually(lambda: clock.sleeping)

    await clock.advance_ms(16)

    assert ticks == [5, 10, 15]
    ticking.cancel()


async def test_a_cancelled_sleeper_is_not_waited_for(clock: ManualClock) -> None:
    sleeper = asyncio.ensure_future(clock.sleep_ms(10))
    await eventually(lambda: clock.sleeping)

    sleeper.cancel()

    await eventually(lambda: clock.sleeping == 0)
    await clock.advance_ms(20)
    assert clock.monotonic_ms() == 20


async def test_a_wall_clock_that_jumps_wakes_nobody_and_moves_no_duration(clock: ManualClock) -> None:
    sleeper = asyncio.ensure_future(clock.sleep_ms(10))
    await eventually(lambda: clock.sleeping)
    before = clock.now_ms()

    clock.jump_wall_ms(-3_600_000)
    await clock.sleep_ms(0)  # a task that was woken would run now

    assert (clock.now_ms() - before, clock.monotonic_ms(), sleeper.done()) == (-3_600_000, 0, False)
    await clock.advance_ms(10)
    await sleeper


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()], ids=["system", "manual"])
async def test_every_clock_counts_whole_milliseconds_and_sleeps_nothing_at_once(clock: Clock) -> None:
    before = clock.monotonic_ms()

    await clock.sleep_ms(0)

    assert isinstance(clock.now_ms(), int)
    assert clock.monotonic_ms() >= before
    assert clock.now_ms() > 1_700_000_000_000


async def test_the_systems_clock_sleeps_as_long_as_it_was_told() -> None:
    clock = SystemClock()
    before = clock.monotonic_ms()

    await clock.sleep_ms(5)

    assert clock.monotonic_ms() - before >= 4  # both ends are cut to whole milliseconds


async def test_a_sleep_ends_with_its_event_or_its_time_and_leaves_no_task(clock: ManualClock) -> None:
    event = asyncio.Event()
    waits = asyncio.create_task(sleep_or(event, 50, clock=clock))
    await eventually(lambda: clock.sleeping == 1)
    assert not waits.done()

    event.set()
    await waits
    event.clear()
    waits = asyncio.create_task(sleep_or(event, 50, clock=clock))
    await eventually(lambda: clock.sleeping == 1)
    await clock.advance_ms(50)
    await waits

    assert not event.is_set()
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})

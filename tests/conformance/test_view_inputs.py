"""Bytes of inputs: held with a reservation, counted as the log says, given back when no retry can come."""

from __future__ import annotations

import pytest

from libs.capacity.answers import BytesFull, Deferred, Other, Reserved, TooFast
from libs.capacity.rooms import Room
from tests.conformance.view_log import DAY_MS, HOUR_MS, INPUT_MS, NOW_MS, TODAY
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import observe

ROOMY = Room(share=1_000, crowded_at=8_000, bucket=10_000)
TIGHT = Room(share=1_000, crowded_at=1_000, bucket=2_000)


async def test_a_user_holds_no_more_than_their_share_and_another_has_their_own(world: ViewScenario) -> None:
    await world.submit("a", input_bytes=600, room=ROOMY)

    refused = await world.reserve("b", input_bytes=401, room=ROOMY)

    assert refused == BytesFull(600, 1_000, None)
    assert isinstance(await world.reserve("c", user="bob", input_bytes=401, room=ROOMY), Reserved)
    assert isinstance(await world.reserve("d", input_bytes=400, room=ROOMY), Reserved)
    assert [await world.view.stored(user) for user in ("ann", "bob", "")] == [1_000, 401, 1_401]


async def test_what_is_refused_for_its_bytes_holds_nothing_and_costs_nothing(world: ViewScenario) -> None:
    before = await observe(world.view, now_ms=world.now_ms)

    refused = [await world.reserve("a", input_bytes=1_001, room=ROOMY, cost_ms=60_000, per_day=1) for _ in range(3)]

    assert refused == [BytesFull(0, 1_000, None)] * 3
    assert await observe(world.view, now_ms=world.now_ms) == before
    assert isinstance(await world.reserve("a", input_bytes=1_000, room=ROOMY, cost_ms=60_000), Reserved)
    assert isinstance(await world.reserve("b", input_bytes=1_000, room=ROOMY, cost_ms=60_000), TooFast)


async def test_an_input_is_counted_until_no_retry_can_come_and_who_is_full_hears_when(world: ViewScenario) -> None:
    await world.submit("a", input_bytes=900, room=ROOMY)
    await world.submit("b", input_bytes=100, room=ROOMY)
    await world.finish("a", "failed")
    world.later(10_000)

    full = await world.reserve("c", input_bytes=500, room=ROOMY)
    world.later(INPUT_MS - 10_001)
    await world.view.sweep(now_ms=world.now_ms)
    still_full = await world.reserve("c", input_bytes=500, room=ROOMY)
    world.later(1)
    await world.view.sweep(now_ms=world.now_ms)

    assert (full, still_full) == (BytesFull(1_000, 1_000, INPUT_MS - 10_000), BytesFull(1_000, 1_000, 1))
    assert isinstance(await world.reserve("c", input_bytes=500, room=ROOMY), Reserved)
    assert await world.view.stored("ann") == 600


async def test_forgotten_jobs_count_until_the_hour_is_over_in_which_their_inputs_go(world: ViewScenario) -> None:
    for job, size in (("a", 600), ("b", 300)):
        await world.submit(job, input_bytes=size, room=ROOMY)
        await world.finish(job)

    await world.forget("a", "b")
    kept, seen = await world.view.stored("ann"), await observe(world.view, now_ms=world.now_ms)
    full = await world.reserve("c", input_bytes=500, room=ROOMY)
    world.later(HOUR_MS - 1)
    await world.view.sweep(now_ms=world.now_ms)
    still = await world.view.stored("ann")
    world.later(1)
    await world.view.sweep(now_ms=world.now_ms)

    assert list(seen.input_ends.values()) == [NOW_MS + HOUR_MS]
    assert full == BytesFull(900, 1_000, HOUR_MS)
    assert (kept, still, await world.view.stored("ann"), await world.view.stored()) == (900, 900, 0, 0)


async def test_a_rebuilt_view_counts_the_inputs_and_days_of_those_that_are_gone(world: ViewScenario) -> None:
    await world.submit("a", input_bytes=600, room=ROOMY)
    await world.finish("a")
    await world.forget("a")
    before = await observe(world.view, now_ms=world.now_ms)

    hour = (NOW_MS + INPUT_MS) // HOUR_MS + 1
    await world.open(used={("ann", TODAY): 1}, leaving={("ann", hour): 600}, generation="g2")
    after = await observe(world.view, now_ms=world.now_ms)

    assert (after.used, after.stored, after.input_ends) == (before.used, before.stored, before.input_ends)
    assert await world.view.day_used("ann", TODAY) == 1


async def test_bytes_whose_event_never_came_lapse_with_the_place(world: ViewScenario) -> None:
    await world.reserve("a", input_bytes=900, room=ROOMY, lapse_ms=60_000)
    await world.reserve(
        "later", input_bytes=100, room=ROOMY, run_at_ms=NOW_MS + DAY_MS, first_day=TODAY + 1, lapse_ms=60_000
    )

    world.later(59_999)
    again = await world.reserve("a", input_bytes=900, room=ROOMY, lapse_ms=60_000)
    world.later(1)
    await world.view.sweep(now_ms=world.now_ms)
    one_left = await world.view.stored()
    world.later(59_999)
    await world.view.sweep(now_ms=world.now_ms)

    assert isinstance(again, Reserved)
    assert (one_left, await world.view.stored()) == (900, 0)


async def test_every_phase_is_counted_from_the_reservation_on_and_once(world: ViewScenario) -> None:
    phases = {"p1": 300, "p2": 300, "p3": 300}
    place = await world.reserve("p1", workflow="flow", inputs=phases, room=ROOMY)
    assert isinstance(place, Reserved)
    reserved = await world.view.stored("ann")

    await world.appear("p1", place, workflow="flow", input_bytes=300)
    begun = await world.view.stored("ann")
    for phase in ("p2", "p3"):
        await world.wait(phase, workflow="flow", input_bytes=300)

    assert (reserved, begun, await world.view.stored("ann")) == (900, 900, 900)


async def test_a_rebuilt_view_counts_what_the_log_says_and_no_more(world: ViewScenario) -> None:
    await world.submit("a", input_bytes=300, room=ROOMY)
    await world.submit("ended", input_bytes=200, room=ROOMY)
    await world.finish("ended")
    await world.reserve("never", input_bytes=400, room=ROOMY)

    await world.open(seeds=world.seeds(), generation="g2")

    assert (await world.view.stored("ann"), await world.view.stored()) == (500, 500)
    full = await world.reserve("b", input_bytes=501, room=ROOMY)
    assert full == BytesFull(500, 1_000, INPUT_MS)
    world.later(INPUT_MS)
    await world.view.sweep(now_ms=world.now_ms)
    assert await world.view.stored("ann") == 300


async def test_a_job_whose_reservation_was_lost_is_counted_when_it_is_folded(world: ViewScenario) -> None:
    place = await world.reserve("a", input_bytes=700, room=ROOMY)
    assert isinstance(place, Reserved)
    await world.open(generation="g2")

    await world.appear("a", place, input_bytes=700)

    assert await world.view.stored("ann") == 700


async def test_who_asks_again_with_other_inputs_has_no_part_in_what_is_held(world: ViewScenario) -> None:
    await world.reserve("a", input_bytes=700, room=ROOMY, digest="one")

    other = await world.reserve("a", input_bytes=700, room=ROOMY, digest="two")
    again = await world.reserve("a", input_bytes=700, room=ROOMY, digest="one")

    assert isinstance(other, Other)
    assert isinstance(again, Reserved)
    assert await world.view.stored("ann") == 700


async def test_the_fuller_the_bucket_the_less_one_user_may_hold_and_who_holds_little_gets_in(
    world: ViewScenario,
) -> None:
    for user in ("ann", "bob"):
        await world.submit(f"of-{user}", user=user, input_bytes=750, room=TIGHT)

    large = await world.reserve("more", user="ann", input_bytes=1, room=TIGHT)
    small = await world.reserve("first", user="cleo", input_bytes=200, room=TIGHT)

    assert large == BytesFull(750, 250, None)  # half of what was free is: a quarter of the share
    assert isinstance(small, Reserved)


@pytest.mark.parametrize("details", [{}, {"run_at_ms": NOW_MS + 1}], ids=["now", "later"])
async def test_a_dry_run_says_the_same_of_bytes_and_holds_none(world: ViewScenario, details: dict[str, bool]) -> None:
    await world.submit("a", input_bytes=600, room=ROOMY)
    before = await observe(world.view, now_ms=world.now_ms)

    fits = await world.reserve("b", input_bytes=400, room=ROOMY, dry=True, **details)
    full = await world.reserve("b", input_bytes=401, room=ROOMY, dry=True, **details)

    assert isinstance(fits, Reserved | Deferred)
    assert full == BytesFull(600, 1_000, None)
    assert await observe(world.view, now_ms=world.now_ms) == before

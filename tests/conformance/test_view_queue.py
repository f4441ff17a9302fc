"""Places for new jobs: reservations, the caps and the days, by every store of the view."""

from libs.capacity.answers import (
    Busy,
    Deferred,
    HorizonFull,
    Known,
    Reserved,
    ShareFull,
)
from libs.capacity.rows import ARRIVAL_STEP
from tests.conformance.view_log import DAY_MS, NOW_MS, TODAY
from tests.conformance.view_scenario import ViewScenario

# ── reservations ──────────────────────────────────────────────────────────────


async def test_a_new_job_joins_at_the_end_of_its_class(world: ViewScenario) -> None:
    first = await world.reserve("a")
    second = await world.reserve("b")
    urgent = await world.reserve("c", class_number=10)

    assert first == Reserved(1, 1 * ARRIVAL_STEP, (), 1, TODAY)
    assert second == Reserved(2, 2 * ARRIVAL_STEP, (), 2, TODAY)
    assert urgent == Reserved(3, 3 * ARRIVAL_STEP, (), 1, TODAY)
    assert await world.names() == ["c", "a", "b"]


async def test_the_same_request_twice_is_the_same_reservation(world: ViewScenario) -> None:
    first = await world.reserve("a")
    await world.reserve("b", class_number=10)
    again = await world.reserve("a")

    assert again == first
    assert await world.names() == ["b", "a"]
    assert await world.view.day_used("ann", TODAY) == 2


async def test_a_reservation_lapses_with_all_it_holds(world: ViewScenario) -> None:
    await world.submit("old")
    await world.reserve("a", tier="partner", lapse_ms=1_000)
    await world.reserve("b", run_at_ms=NOW_MS + DAY_MS, first_day=TODAY + 1, lapse_ms=1_000)

    world.later(999)
    early = await world.view.sweep(now_ms=world.now_ms)
    world.later(1)
    late = await world.view.sweep(now_ms=world.now_ms)

    assert early.lapsed == ()
    assert late.lapsed == ("a", "b")
    assert await world.times_passed() == {"old": 0}
    assert await world.view.day_used("ann", TODAY) == 1
    assert await world.view.day_used("ann", TODAY + 1) == 0


async def test_asking_again_puts_the_lapse_off(world: ViewScenario) -> None:
    await world.reserve("a", lapse_ms=1_000)
    world.later(900)
    await world.reserve("a", lapse_ms=1_000)
    world.later(900)

    swept = await world.view.sweep(now_ms=world.now_ms)

    assert swept.lapsed == ()
    assert await world.names() == ["a"]


async def test_a_reservation_lapses_in_a_sweep_alone(world: ViewScenario) -> None:
    await world.reserve("a", lapse_ms=1_000)
    world.later(5_000)

    await world.look()
    other = await world.reserve("b", cap=1)

    assert isinstance(other, Busy)
    assert await world.names() == ["a"]


async def test_a_folded_job_no_longer_lapses(world: ViewScenario) -> None:
    await world.submit("a", lapse_ms=1_000)
    world.later(1_000)

    swept = await world.view.sweep(now_ms=world.now_ms)

    assert swept.lapsed == ()
    assert [entry.reserved for entry in await world.view.queue()] == [False]


async def test_a_job_of_the_log_is_known(world: ViewScenario) -> None:
    await world.submit("a")
    await world.dispatch("a")

    assert await world.reserve("a") == Known("starting", seq=2)


async def test_the_queue_takes_no_more_than_its_cap(world: ViewScenario) -> None:
    await world.worker("w1", slots=3)
    await world.worker("w2", pool="gpu", slots=4)
    await world.submit("a")
    await world.reserve("b")

    assert await world.reserve("c", cap=2) == Busy(queued=2, slots=7)
    assert await world.view.day_used("ann", TODAY) == 2


async def test_a_job_that_comes_back_stands_above_the_cap_and_counts(world: ViewScenario) -> None:
    await world.worker()
    await world.run("back", "asks")
    await world.spread("a", "b")
    await world.give_back("back")
    await world.ask_to_continue("asks")
    await world.confirm("asks")

    assert sorted(await world.names()) == ["a", "asks", "b", "back"]
    assert await world.reserve("c", user="cy", cap=2) == Busy(queued=4, slots=100)


async def test_a_user_takes_no_more_than_their_share(world: ViewScenario) -> None:
    await world.submit("a", user="ann")
    await world.reserve("b", user="ann")

    assert await world.reserve("c", user="ann", user_share=2) == ShareFull(held=2)
    assert isinstance(await world.reserve("d", user="bob", user_share=2), Reserved)


async def test_a_running_job_leaves_its_place_and_keeps_its_day(world: ViewScenario) -> None:
    await world.submit("a")
    await world.dispatch("a")

    assert isinstance(await world.reserve("b", cap=1, user_share=1), Reserved)
    assert await world.view.day_used("ann", TODAY) == 2


# ── days ──────────────────────────────────────────────────────────────────────


async def test_who_is_over_the_daily_cap_gets_the_first_free_days(world: ViewScenario) -> None:
    answers = [await world.reserve(f"job-{number}", per_day=5) for number in range(17)]

    assert all(isinstance(answer, Reserved) for answer in answers[:5])
    assert answers[5:10] == [Deferred(TODAY + 1)] * 5
    assert answers[10:15] == [Deferred(TODAY + 2)] * 5
    assert answers[15:] == [Deferred(TODAY + 3)] * 2
    assert len(await world.names()) == 5


async def test_nobody_is_scheduled_beyond_the_horizon(world: ViewScenario) -> None:
    for number in range(3):
        await world.reserve(f"job-{number}", per_day=1, horizon_days=2)

    assert await world.reserve("late", per_day=1, horizon_days=2) == HorizonFull(TODAY + 2)
    assert await world.reserve("far", per_day=1, horizon_days=2, first_day=TODAY + 3) == HorizonFull(TODAY + 2)


async def test_a_job_with_a_time_of_its_own_holds_a_day_and_no_place(world: ViewScenario) -> None:
    today = await world.reserve("today", run_at_ms=NOW_MS + 1, first_day=TODAY)
    friday = await world.reserve("friday", run_at_ms=NOW_MS + 4 * DAY_MS, first_day=TODAY + 4)
    again = await world.reserve("friday", run_at_ms=NOW_MS + 4 * DAY_MS, first_day=TODAY + 4)

    assert (today, friday, again) == (Deferred(TODAY), Deferred(TODAY + 4), Deferred(TODAY + 4))
    assert await world.names() == []
    assert [await world.view.day_used("ann", TODAY + day) for day in (0, 4)] == [1, 1]


async def test_a_time_of_its_own_has_come_or_has_not_by_the_stores_clock(world: ViewScenario) -> None:
    come = await world.reserve("come", run_at_ms=NOW_MS, first_day=TODAY)
    past = await world.reserve("past", run_at_ms=NOW_MS - DAY_MS, first_day=TODAY - 1)

    assert [type(answer) for answer in (come, past)] == [Reserved, Reserved]
    assert await world.names() == ["come", "past"]


async def test_a_job_that_takes_no_day_holds_none(world: ViewScenario) -> None:
    placed = await world.reserve("phase", takes_day=False, per_day=0)
    later = await world.reserve("timed", takes_day=False, run_at_ms=NOW_MS + 2 * DAY_MS, first_day=TODAY + 2)

    assert placed == Reserved(1, ARRIVAL_STEP, (), 1, None)
    assert later == Deferred(TODAY + 2)
    assert await world.view.day_used("ann", TODAY) == 0


async def test_a_refunded_job_gives_its_day_back(world: ViewScenario) -> None:
    await world.submit("a")
    await world.submit("b")

    await world.finish("a", "cancelled", refund=True)
    await world.finish("b", "failed")

    assert await world.view.day_used("ann", TODAY) == 1

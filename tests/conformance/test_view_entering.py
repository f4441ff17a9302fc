"""How often a user may ask, what a dry run changes, and a queued job's other day, by every store of the view."""

import pytest

from libs.capacity.answers import Busy, Deferred, HorizonFull, Known, NotQueued, Reserved, ShareFull, TooFast
from tests.conformance.view_log import DAY_MS, NOW_MS, TODAY
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import observe

# ── a user's pace ─────────────────────────────────────────────────────────────


async def test_a_minutes_reservations_may_come_at_once_and_the_next_is_told_when(world: ViewScenario) -> None:
    first = [await world.reserve(f"j{number}", cost_ms=20_000) for number in range(3)]

    fourth = await world.reserve("j3", cost_ms=20_000)
    world.later(20_000)
    again = await world.reserve("j3", cost_ms=20_000)
    fifth = await world.reserve("j4", cost_ms=20_000)

    assert all(isinstance(answer, Reserved) for answer in (*first, again))
    assert (fourth, fifth) == (TooFast(20_000), TooFast(20_000))


async def test_who_asks_evenly_is_never_too_fast(world: ViewScenario) -> None:
    for number in range(40):
        assert isinstance(await world.reserve(f"j{number}", cost_ms=10_000), Reserved)
        world.later(10_000)


async def test_time_that_was_not_used_is_not_saved_beyond_a_minute(world: ViewScenario) -> None:
    await world.reserve("early", cost_ms=30_000)
    world.later(3_600_000)

    answers = [await world.reserve(f"j{number}", cost_ms=30_000) for number in range(3)]

    assert [type(answer) for answer in answers] == [Reserved, Reserved, TooFast]


async def test_one_users_haste_is_not_anothers(world: ViewScenario) -> None:
    await world.reserve("a", user="ann", cost_ms=60_000)

    assert isinstance(await world.reserve("b", user="ann", cost_ms=60_000), TooFast)
    assert isinstance(await world.reserve("c", user="bob", cost_ms=60_000), Reserved)


async def test_what_is_known_held_or_refused_costs_nothing(world: ViewScenario) -> None:
    await world.submit("known", user="bob")
    await world.reserve("held", cost_ms=30_000)

    for _ in range(5):
        assert isinstance(await world.reserve("known", cost_ms=30_000), Known)
        assert isinstance(await world.reserve("held", cost_ms=30_000), Reserved)
        assert isinstance(await world.reserve("busy", cost_ms=30_000, cap=1), Busy)
        assert isinstance(await world.reserve("much", cost_ms=30_000, user_share=1), ShareFull)
        assert isinstance(await world.reserve("far", cost_ms=30_000, per_day=1, horizon_days=0), HorizonFull)

    assert isinstance(await world.reserve("second", cost_ms=30_000), Reserved)


async def test_who_is_too_fast_is_told_so_before_anything_else_and_holds_nothing(world: ViewScenario) -> None:
    await world.reserve("a", cost_ms=60_000)

    answer = await world.reserve("b", cost_ms=60_000, cap=1, per_day=1, horizon_days=0)

    assert isinstance(answer, TooFast)
    assert await world.names() == ["a"]
    assert await world.view.day_used("ann", TODAY) == 1


async def test_a_changed_rate_counts_at_once(world: ViewScenario) -> None:
    for number in range(4):
        await world.reserve(f"j{number}", cost_ms=15_000)

    assert isinstance(await world.reserve("more", cost_ms=12_000), TooFast)
    assert isinstance(await world.reserve("more", cost_ms=0), Reserved)


async def test_a_deferred_job_costs_time_too(world: ViewScenario) -> None:
    await world.reserve("a", per_day=1, cost_ms=30_000)
    await world.reserve("b", per_day=1, cost_ms=30_000)

    assert isinstance(await world.reserve("c", per_day=1, cost_ms=30_000), TooFast)


async def test_time_that_is_over_is_not_kept(world: ViewScenario) -> None:
    await world.reserve("a", cost_ms=30_000)
    before = await observe(world.view, now_ms=world.now_ms)
    world.later(30_000)

    await world.view.sweep(now_ms=world.now_ms)

    assert before.spent == {"ann": world.now_ms}
    assert (await observe(world.view, now_ms=world.now_ms)).spent == {}


# ── dry runs ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "details",
    [
        {"tier": "partner"},
        {"tier": "cto_scale", "class_number": 20},
        {"user": "cleo", "run_at_ms": NOW_MS + DAY_MS},
        {"per_day": 1},
        {"per_day": 1, "horizon_days": 0},
        {"cap": 3},
        {"user_share": 1},
        {"cost_ms": 60_000},
        {"takes_day": False, "first_day": TODAY + 3, "run_at_ms": NOW_MS + 3 * DAY_MS},
    ],
    ids="-".join,
)
async def test_a_dry_run_has_the_same_answer_and_changes_nothing(
    world: ViewScenario, details: dict[str, object]
) -> None:
    for job in ("a", "b"):
        await world.submit(job)
    await world.reserve("held", user="ann", cost_ms=60_000)
    before = await observe(world.view, now_ms=world.now_ms)

    tried = [await world.reserve("new", dry=True, **details) for _ in range(2)]
    after = await observe(world.view, now_ms=world.now_ms)
    meant = await world.reserve("new", **details)

    assert tried == [meant, meant]
    assert after == before


async def test_a_dry_run_of_what_is_held_or_known_says_so_and_holds_it_no_longer(world: ViewScenario) -> None:
    held = await world.reserve("held", lapse_ms=1_000)
    await world.submit("known")
    world.later(500)

    assert await world.reserve("held", dry=True) == held
    assert isinstance(await world.reserve("known", dry=True), Known)
    world.later(500)
    assert (await world.view.sweep(now_ms=world.now_ms)).lapsed == ("held",)


# ── another day for a queued job ──────────────────────────────────────────────


async def test_a_queued_job_is_given_the_first_day_with_a_free_place_that_is_not_its_own(world: ViewScenario) -> None:
    for job in ("a", "b", "c"):
        await world.submit(job)

    answers = [await world.defer(job, per_day=1) for job in ("a", "b", "c")]

    assert answers == [Deferred(TODAY + 1), Deferred(TODAY + 2), Deferred(TODAY + 3)]
    assert await world.names() == ["a", "b", "c"]


async def test_its_own_day_is_not_the_answer_even_where_it_has_room(world: ViewScenario) -> None:
    await world.submit("a")

    assert await world.defer("a", per_day=5, first_day=TODAY) == Deferred(TODAY + 1)
    assert await world.view.day_used("ann", TODAY) == 1


async def test_asked_again_it_is_the_same_day_however_the_days_have_filled(world: ViewScenario) -> None:
    await world.submit("a")
    first = await world.defer("a", per_day=1)

    again = await world.defer("a", per_day=9, first_day=TODAY + 5)

    assert first == again == Deferred(TODAY + 1)
    assert await world.view.day_used("ann", TODAY + 1) == 1


async def test_asked_again_it_is_held_for_longer(world: ViewScenario) -> None:
    await world.submit("a")
    await world.defer("a", lapse_ms=1_000)
    world.later(500)
    await world.defer("a", lapse_ms=1_000)
    world.later(500)

    assert (await world.view.sweep(now_ms=world.now_ms)).lapsed == ()


async def test_the_day_goes_over_to_the_row_that_names_it(world: ViewScenario) -> None:
    await world.submit("a")
    answer = await world.defer("a")
    assert isinstance(answer, Deferred)

    await world.put_off("a", answer)

    assert [await world.view.day_used("ann", TODAY + days) for days in range(2)] == [0, 1]
    world.later(3_600_000)
    assert (await world.view.sweep(now_ms=world.now_ms)).lapsed == ()
    assert await world.view.day_used("ann", TODAY + 1) == 1


async def test_any_other_event_of_the_job_takes_the_day_back(world: ViewScenario) -> None:
    await world.submit("a")
    await world.defer("a")

    await world.dispatch("a")

    assert [await world.view.day_used("ann", TODAY + days) for days in range(2)] == [1, 0]


async def test_a_day_that_nobody_wrote_down_lapses_and_the_job_stays_where_it_is(world: ViewScenario) -> None:
    await world.submit("a")
    await world.defer("a", lapse_ms=1_000)
    world.later(1_000)

    swept = await world.view.sweep(now_ms=world.now_ms)

    assert swept.lapsed == ("a",)
    assert [await world.view.day_used("ann", TODAY + days) for days in range(2)] == [1, 0]
    assert await world.plan() == ["a"]


async def test_a_job_with_another_day_is_queued_like_any_other(world: ViewScenario) -> None:
    await world.submit("a")
    await world.defer("a")

    await world.pause("user:ann")
    paused = await world.plan()
    await world.resume("user:ann")

    assert paused == []
    assert await world.plan() == ["a"]
    assert [entry.reserved for entry in await world.view.queue()] == [False]


async def test_where_no_day_is_free_up_to_the_horizon_there_is_none(world: ViewScenario) -> None:
    await world.submit("a")
    await world.submit("b")
    await world.defer("b", per_day=1, horizon_days=1)

    assert await world.defer("a", per_day=1, horizon_days=1) == HorizonFull(TODAY + 1)


async def test_only_a_queued_job_is_given_another_day(world: ViewScenario) -> None:
    for job in ("scheduled", "released", "ended"):
        await world.schedule(job)
    await world.release("released")
    await world.finish("ended", "cancelled")
    await world.submit("running")
    await world.dispatch("running")

    for job in ("scheduled", "released", "ended", "running"):
        assert await world.defer(job) == NotQueued(job)

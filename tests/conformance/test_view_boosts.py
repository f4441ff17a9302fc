"""Who passes whom, how often and how far, by every store of the view."""

from libs.capacity.answers import (
    Reserved,
)
from libs.capacity.rows import ARRIVAL_STEP
from tests.conformance.view_scenario import ViewScenario

# ── boosts ────────────────────────────────────────────────────────────────────


async def test_a_boosted_job_passes_as_many_as_its_boost(world: ViewScenario) -> None:
    for job in "abcd":
        await world.submit(job)

    answer = await world.submit("fast", tier="partner")

    assert answer.passed == ("d", "c")
    assert answer.position == 3
    assert await world.names() == ["a", "b", "fast", "c", "d"]
    assert await world.times_passed() == {"a": 0, "b": 0, "fast": 0, "c": 1, "d": 1}


async def test_a_place_lies_near_the_left_of_its_gap(world: ViewScenario) -> None:
    for job in "abc":
        await world.submit(job)

    answer = await world.submit("fast", tier="partner")

    assert answer.place == ARRIVAL_STEP + ARRIVAL_STEP // 64


async def test_nobody_passes_a_job_of_the_same_or_a_higher_boost(world: ViewScenario) -> None:
    await world.submit("a")
    await world.submit("same", tier="partner")
    await world.submit("b")

    answer = await world.submit("next", tier="partner")
    higher = await world.submit("top", tier="cto_scale")

    assert answer.passed == ("b", "a")
    assert higher.passed == ("b", "a", "next", "same")
    assert await world.names() == ["top", "same", "next", "a", "b"]


async def test_the_first_that_may_not_be_passed_stops_the_boost(world: ViewScenario) -> None:
    await world.submit("a")
    await world.submit("wall", tier="cto_scale", passed_bound=0)
    await world.submit("b")

    answer = await world.submit("fast", boost=4)

    assert answer.passed == ("b",)
    assert await world.names() == ["a", "wall", "fast", "b"]


async def test_a_job_is_passed_ten_times_and_never_again(world: ViewScenario) -> None:
    await world.submit("patient")
    for number in range(10):
        answer = await world.submit(f"fast-{number}", boost=2)
        assert answer.passed == ("patient",)

    last = await world.submit("too-late", boost=2)

    assert last.passed == ()
    assert (await world.names())[-2:] == ["patient", "too-late"]
    assert (await world.times_passed())["patient"] == 10


async def test_a_reservation_counts_as_passing_until_it_lapses(world: ViewScenario) -> None:
    await world.submit("patient")
    await world.reserve("first", boost=1, passed_bound=1, lapse_ms=1_000)

    stopped = await world.reserve("second", boost=1, passed_bound=1, lapse_ms=9_000)
    world.later(1_000)
    await world.view.sweep(now_ms=world.now_ms)
    third = await world.reserve("third", boost=1, passed_bound=1)

    assert isinstance(stopped, Reserved)
    assert stopped.passed == ()
    assert isinstance(third, Reserved)
    assert third.passed == ()  # "second" stands between, of the same boost
    assert (await world.times_passed())["patient"] == 0


async def test_a_folded_reservation_counts_its_passing_once(world: ViewScenario) -> None:
    await world.submit("patient")
    answer = await world.submit("fast", tier="partner")

    assert answer.passed == ("patient",)
    assert (await world.times_passed())["patient"] == 1


async def test_an_event_without_its_reservation_is_folded_like_any_other(world: ViewScenario) -> None:
    await world.submit("patient")
    answer = await world.reserve("fast", tier="partner", lapse_ms=1_000)
    assert isinstance(answer, Reserved)
    world.later(1_000)
    await world.view.sweep(now_ms=world.now_ms)

    await world.appear("fast", answer, tier="partner")

    assert await world.names() == ["fast", "patient"]
    assert (await world.times_passed())["patient"] == 1


async def test_a_job_that_was_passed_before_its_own_first_event_keeps_the_count(world: ViewScenario) -> None:
    slow = await world.reserve("slow")
    fast = await world.reserve("fast", tier="partner")
    assert isinstance(slow, Reserved)
    assert isinstance(fast, Reserved)

    await world.appear("fast", fast, tier="partner")
    await world.appear("slow", slow)

    assert fast.passed == ("slow",)
    assert await world.times_passed() == {"fast": 0, "slow": 1}


async def test_boosts_stay_in_their_class(world: ViewScenario) -> None:
    await world.submit("high", class_number=20)
    await world.submit("a")

    answer = await world.submit("fast", boost=5)

    assert answer.passed == ("a",)
    assert await world.names() == ["high", "fast", "a"]


async def test_where_no_number_is_left_between_two_the_boost_stops_earlier(world: ViewScenario) -> None:
    await world.submit("a")
    await world.submit("b")
    await world.move("b", ARRIVAL_STEP + 1)

    tight = await world.submit("fast", boost=1)

    assert tight.passed == ()
    assert await world.names() == ["a", "b", "fast"]


async def test_a_boost_that_finds_no_number_passes_one_less(world: ViewScenario) -> None:
    for job in "abc":
        await world.submit(job)
    await world.move("b", ARRIVAL_STEP + 1)

    answer = await world.submit("fast", boost=2)

    assert answer.passed == ("c",)
    assert await world.names() == ["a", "b", "fast", "c"]

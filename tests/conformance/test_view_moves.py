"""Places of jobs that the log knows: release, room, moves and positions, by every store of the view."""

import pytest

from libs.capacity.answers import (
    Between,
    Busy,
    NoGap,
    NoRoom,
    NotQueued,
    NotReleasable,
    Reserved,
)
from libs.capacity.errors import ViewMisused
from libs.capacity.rows import ARRIVAL_STEP
from tests.conformance.view_log import TODAY
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import observe

# ── release ───────────────────────────────────────────────────────────────────


async def test_a_released_job_is_placed_like_a_new_one_and_keeps_its_day(world: ViewScenario) -> None:
    await world.schedule("due", day=TODAY, tier="partner")
    await world.submit("a")

    answer = await world.release("due")
    again = await world.release("due")
    assert isinstance(answer, Reserved)
    await world.enter("due", answer)

    assert again == answer
    assert (answer.passed, answer.day) == (("a",), TODAY)
    assert await world.names() == ["due", "a"]
    assert (await world.times_passed())["a"] == 1


async def test_a_released_job_waits_for_room_and_goes_before_new_ones(world: ViewScenario) -> None:
    await world.submit("a")
    await world.schedule("first")
    await world.wait("second", workflow="flow")

    refused = [await world.release("first", cap=1), await world.release("second", cap=1)]
    await world.finish("a")
    new = await world.reserve("new", cap=1)
    impatient = await world.release("second", cap=1)
    first = await world.release("first", cap=1)

    assert refused == [NoRoom(), NoRoom()]
    assert new == Busy(queued=0, slots=100)
    assert impatient == NoRoom()
    assert isinstance(first, Reserved)
    assert (await observe(world.view, now_ms=world.now_ms)).room == ("second",)


async def test_an_end_gives_up_the_wait_for_room(world: ViewScenario) -> None:
    await world.submit("a")
    await world.schedule("first")
    await world.release("first", cap=1)

    await world.finish("first", "cancelled")

    assert isinstance(await world.reserve("new", cap=2), Reserved)


async def test_an_event_that_releases_nothing_keeps_the_wait_for_room(world: ViewScenario) -> None:
    await world.submit("a")
    await world.schedule("first")
    await world.release("first", cap=1)

    await world.fold(world.rows["first"])

    assert isinstance(await world.reserve("new", cap=2), Busy)


async def test_only_scheduled_and_waiting_jobs_are_released(world: ViewScenario) -> None:
    await world.submit("a")

    assert await world.release("a") == NotReleasable("a")
    assert await world.release("nobody") == NotReleasable("nobody")


async def test_a_released_place_lapses_and_can_be_had_again(world: ViewScenario) -> None:
    await world.schedule("due", day=TODAY)
    await world.release("due")
    world.later(60_000)

    swept = await world.view.sweep(now_ms=world.now_ms)
    gone = await world.names()
    again = await world.release("due")

    assert swept.lapsed == ("due",)
    assert gone == []
    assert isinstance(again, Reserved)
    assert again.arrival == 2


# ── moves ─────────────────────────────────────────────────────────────────────


async def test_a_move_finds_a_number_right_beside_the_neighbour(world: ViewScenario) -> None:
    for job in "abc":
        await world.submit(job)

    before = await world.view.between("c", before="b")
    after = await world.view.between("a", after="b")
    first = await world.view.between("c", before="a")
    last = await world.view.between("a", after="c")

    step = ARRIVAL_STEP // 64
    assert before == Between(50, ARRIVAL_STEP + step)
    assert after == Between(50, 2 * ARRIVAL_STEP + step)
    assert first == Between(50, step)
    assert last == Between(50, 3 * ARRIVAL_STEP + step)


async def test_a_move_does_not_count_the_moved_job_as_a_neighbour(world: ViewScenario) -> None:
    for job in "abc":
        await world.submit(job)

    back = await world.view.between("b", before="c")

    assert back == Between(50, ARRIVAL_STEP + 2 * ARRIVAL_STEP // 64)


async def test_a_move_joins_the_class_of_its_neighbour(world: ViewScenario) -> None:
    await world.submit("low", class_number=70)
    await world.submit("high", class_number=20)

    answer = await world.view.between("low", after="high")
    assert isinstance(answer, Between)
    await world.move("low", answer.place, class_number=answer.class_number)
    await world.submit("next", class_number=20)

    assert answer.class_number == 20
    assert await world.names() == ["high", "low", "next"]


async def test_a_move_between_two_consecutive_numbers_needs_space_first(world: ViewScenario) -> None:
    for job in "abc":
        await world.submit(job)
    await world.move("b", ARRIVAL_STEP + 1)

    assert await world.view.between("c", after="a") == NoGap(50)
    assert await world.view.between("c", before="b") == NoGap(50)


async def test_a_move_is_about_two_jobs_of_the_queue(world: ViewScenario) -> None:
    await world.submit("a")
    await world.reserve("held")

    assert await world.view.between("held", before="a") == NotQueued("held")
    assert await world.view.between("a", before="held") == NotQueued("held")
    assert await world.view.between("nobody", after="nowhere") == NotQueued("nobody")


@pytest.mark.parametrize("sides", [{}, {"before": "b", "after": "b"}, {"before": "a"}])
async def test_a_move_without_one_other_job_is_refused(world: ViewScenario, sides: dict[str, str]) -> None:
    await world.submit("a")
    await world.submit("b")

    with pytest.raises(ViewMisused):
        await world.view.between("a", **sides)


# ── positions ─────────────────────────────────────────────────────────────────


async def test_a_position_counts_the_unpaused_jobs_ahead_in_its_own_pool(world: ViewScenario) -> None:
    await world.submit("a", user="bob")
    await world.submit("elsewhere", pool="gpu")
    await world.submit("mine")

    before = await world.view.outlook("mine", now_ms=world.now_ms)
    await world.pause("user:bob")
    paused = await world.view.outlook("mine", now_ms=world.now_ms)
    of_the_paused = await world.view.outlook("a", now_ms=world.now_ms)

    assert before is not None
    assert paused is not None
    assert of_the_paused is not None
    assert (before.position, paused.position, of_the_paused.position) == (2, 1, 1)
    assert [pause.scope for pause in of_the_paused.pauses] == ["user:bob"]


async def test_equal_places_go_by_name(world: ViewScenario) -> None:
    await world.submit("b")
    await world.submit("a")
    await world.move("a", ARRIVAL_STEP)

    assert await world.names() == ["a", "b"]
    assert await world.plan() == ["a", "b"]

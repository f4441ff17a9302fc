"""Groups that are shut for a while and gates that must not be, by every store of the view."""

import pytest

from libs.capacity.answers import Full, Granted, WaitsInLine
from tests.conformance.view_scenario import ViewScenario

OLLAMA, GLOBAL = "llm:ollama", "llm:global"


# ── leases ────────────────────────────────────────────────────────────────────


async def test_nobody_gets_a_slot_of_a_group_that_is_shut_until_its_end(world: ViewScenario) -> None:
    await world.shut(OLLAMA, 5_000)

    world.later(4_999)
    early = await world.acquire("early", OLLAMA, wait_ms=0)
    other = await world.acquire("other", GLOBAL, wait_ms=0)
    world.later(1)
    late = await world.acquire("late", OLLAMA, wait_ms=0)

    assert early == Full(OLLAMA, 4, 0, until_ms=world.now_ms)
    assert isinstance(other, Granted)
    assert isinstance(late, Granted)


async def test_who_holds_a_slot_keeps_it(world: ViewScenario) -> None:
    await world.hold("mine", OLLAMA)

    await world.shut(OLLAMA, 5_000)

    assert await world.active(OLLAMA) == ["mine"]
    assert isinstance(await world.acquire("mine", OLLAMA), Granted)


async def test_of_two_ends_the_later_counts_whichever_was_told_last(world: ViewScenario) -> None:
    until_ms = world.now_ms + 9_000
    await world.shut(OLLAMA, 9_000)
    await world.shut(OLLAMA, 1_000)

    assert (await world.view.group(OLLAMA, now_ms=world.now_ms)).shut_until_ms == until_ms
    await world.shut(OLLAMA, 10_000)
    assert (await world.view.group(OLLAMA, now_ms=world.now_ms)).shut_until_ms == until_ms + 1_000


async def test_an_end_that_is_past_shuts_nothing(world: ViewScenario) -> None:
    await world.shut(OLLAMA, 0)
    await world.shut(GLOBAL, -1)

    assert isinstance(await world.acquire("l", OLLAMA, GLOBAL), Granted)


async def test_groups_are_shut_with_ends_of_their_own(world: ViewScenario) -> None:
    await world.shut(OLLAMA, 1_000)
    await world.shut(GLOBAL, 2_000)

    waits = await world.acquire("l", OLLAMA, GLOBAL)
    world.later(1_000)
    moved = await world.acquire("l", OLLAMA, GLOBAL)
    world.later(1_000)
    swept = await world.view.sweep(now_ms=world.now_ms)

    assert waits == WaitsInLine("l", OLLAMA, 0, until_ms=world.now_ms - 1_000)
    assert moved == WaitsInLine("l", GLOBAL, 0, until_ms=world.now_ms)
    assert [grant.lease for grant in swept.grants] == ["l"]


async def test_whoever_shuts_a_group_hears_of_grants_that_nobody_has_told(world: ViewScenario) -> None:
    await world.shut(OLLAMA, 1_000)
    await world.acquire("l", OLLAMA)
    world.later(1_000)

    assert [grant.lease for grant in await world.shut(GLOBAL, 5_000)] == ["l"]


async def test_a_raised_limit_opens_no_group(world: ViewScenario) -> None:
    await world.shut(OLLAMA, 5_000)
    await world.acquire("l", OLLAMA)

    assert await world.set_limit(OLLAMA, 50) == ()


async def test_a_group_is_shut_beside_the_quarantine_and_opens_when_both_are_over(world: ViewScenario) -> None:
    await world.run("a")
    await world.open(seeds=world.seeds(), generation="g1", quarantine_ms=2_000)
    await world.shut(OLLAMA, 1_000)

    world.later(1_000)
    in_quarantine = await world.acquire("early", OLLAMA, wait_ms=0)
    await world.shut(OLLAMA, 2_000)
    await world.worker(holders=("a:1",))
    shut = await world.acquire("early", OLLAMA, wait_ms=0)
    world.later(2_000)

    assert isinstance(in_quarantine, Full)
    assert isinstance(shut, Full)
    assert isinstance(await world.acquire("late", OLLAMA, wait_ms=0), Granted)


# ── jobs ──────────────────────────────────────────────────────────────────────


async def test_a_job_that_needs_a_slot_of_a_shut_group_holds_nobody_up(world: ViewScenario) -> None:
    await world.spread("blocked", groups=(OLLAMA,))
    await world.spread("free")
    await world.shut(OLLAMA, 5_000)

    shut = await world.plan()
    world.later(5_000)

    assert shut == ["free"]
    assert await world.plan() == ["blocked", "free"]


async def test_all_whom_a_shut_group_has_blocked_are_looked_at_when_it_opens(world: ViewScenario) -> None:
    await world.shut(OLLAMA, 5_000)
    jobs = [f"j{number}" for number in range(6)]
    await world.spread(*jobs, groups=(OLLAMA,))
    assert await world.plan() == []

    world.later(5_000)

    assert await world.plan() == jobs[:4]


async def test_a_pool_that_is_shut_starts_nothing(world: ViewScenario) -> None:
    await world.spread("a")

    await world.shut("pool:default", 1_000)
    shut = await world.plan()
    world.later(1_000)

    assert shut == []
    assert await world.plan() == ["a"]


async def test_a_gate_keeps_a_job_back_while_it_is_shut_and_takes_no_slot(world: ViewScenario) -> None:
    await world.set_limit(OLLAMA, 1)
    await world.spread("a", "b", gates=(OLLAMA,))
    await world.shut(OLLAMA, 5_000)

    shut = await world.plan()
    world.later(5_000)
    await world.hold("full", OLLAMA)

    assert shut == []
    assert await world.plan() == ["a", "b"]


async def test_a_gate_that_opens_lets_go_whom_it_kept_even_where_the_group_is_full(world: ViewScenario) -> None:
    await world.set_limit(OLLAMA, 0)
    await world.shut(OLLAMA, 5_000)
    await world.spread("needs", groups=(OLLAMA,))
    await world.spread("a", "b", gates=(OLLAMA,))
    assert await world.plan() == []

    world.later(5_000)

    assert await world.plan() == ["a", "b"]


async def test_a_job_behind_a_gate_leaves_its_slots_to_others(world: ViewScenario) -> None:
    await world.submit("kept", project="one", gates=(OLLAMA,))
    for job in ("b", "c", "d"):
        await world.submit(job, project=job)
    await world.plan_all()

    await world.shut(OLLAMA, 5_000)

    assert await world.plan() == ["b", "c"]


async def test_a_groups_status_counts_whom_its_gate_keeps(world: ViewScenario) -> None:
    await world.shut(OLLAMA, 5_000)
    await world.spread("needs", groups=(OLLAMA,))
    await world.spread("kept", gates=(OLLAMA,))

    status = await world.view.group(OLLAMA, now_ms=world.now_ms)

    assert (status.blocked, status.active, status.shut_until_ms) == (2, 0, world.now_ms + 5_000)


@pytest.mark.parametrize("how", ["groups", "gates"])
async def test_an_outlook_says_until_when_a_group_is_shut(world: ViewScenario, how: str) -> None:
    await world.spread("a", **{how: (OLLAMA,)})
    await world.shut(OLLAMA, 5_000)

    outlook = await world.view.outlook("a", now_ms=world.now_ms)
    after = await world.view.outlook("a", now_ms=world.now_ms + 5_000)

    assert outlook is not None
    assert after is not None
    obstacles = [(each.group, each.limit, each.active, each.until_ms) for each in outlook.obstacles]
    assert obstacles == [(OLLAMA, 4, 0, world.now_ms + 5_000)]
    assert after.obstacles == ()


async def test_a_group_that_is_a_gate_too_is_one_obstacle(world: ViewScenario) -> None:
    await world.spread("a", groups=(OLLAMA,), gates=(OLLAMA,))
    await world.shut(OLLAMA, 5_000)

    outlook = await world.view.outlook("a", now_ms=world.now_ms)

    assert outlook is not None
    assert [each.group for each in outlook.obstacles] == [OLLAMA]


async def test_what_was_shut_is_forgotten_with_the_generation(world: ViewScenario) -> None:
    await world.shut(OLLAMA, 5_000)

    await world.open(generation="g1")

    assert isinstance(await world.acquire("l", OLLAMA, wait_ms=0), Granted)

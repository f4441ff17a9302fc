"""Slots that a job takes before it is dispatched, in groups that leases want too, by every store of the view."""

from dataclasses import replace

from libs.capacity.answers import Claim, ClaimAnswer, Full, Grant, Granted, Unclaimed, WaitsInLine
from tests.conformance.view_log import held
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import observe

DB, OLLAMA = "group:shop:db", "llm:ollama"


async def test_a_claim_holds_its_slots_under_the_name_of_the_attempt_to_come(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))

    answer = await world.claim("a")

    assert answer == ClaimAnswer(held=("a:1",))
    assert await world.active(DB) == ["a:1"]
    assert await world.acquire("lease", DB, wait_ms=0) == Full(DB, limit=1, active=1)


async def test_a_group_that_is_claimed_is_listed_and_says_by_whom(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    before = await world.view.groups(now_ms=world.now_ms)

    await world.claim("a", lapse_ms=1_000)

    assert DB not in before
    assert set(await world.view.groups(now_ms=world.now_ms)) == {*before, DB}
    (holder,) = (await world.view.group(DB, now_ms=world.now_ms)).holders
    assert (holder.name, holder.expires_ms) == ("a:1", world.now_ms + 1_000)


async def test_the_dispatch_makes_it_last_and_its_end_gives_it_back(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    await world.claim("a", lapse_ms=1_000)

    await world.dispatch("a")
    world.later(2_000)
    await world.view.sweep(now_ms=world.now_ms)
    lasting = await world.active(DB)
    await world.finish("a")

    assert (lasting, await world.active(DB)) == (["a:1"], [])
    assert (await observe(world.view, now_ms=world.now_ms)).claims == {}


async def test_the_same_claim_again_is_the_same_and_lapses_later(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    await world.claim("a", lapse_ms=1_000)
    world.later(900)

    assert await world.claim("a", lapse_ms=1_000) == ClaimAnswer(held=("a:1",))
    world.later(900)
    await world.view.sweep(now_ms=world.now_ms)
    assert await world.active(DB) == ["a:1"]


async def test_a_claim_gets_all_its_groups_or_none(world: ViewScenario) -> None:
    await world.spread("a", groups=(OLLAMA, DB))
    await world.hold("lease", DB)

    answer = await world.claim("a")

    assert answer == ClaimAnswer(refused=(Unclaimed("a:1", DB, others=1, until_ms=None),))
    assert await world.active(OLLAMA) == []


async def test_what_the_log_tells_of_is_no_others(world: ViewScenario) -> None:
    await world.set_limit(DB, 3)
    await world.run("runs", groups=(DB,))
    await world.hold("lease", DB)
    await world.spread("a", "b", groups=(DB,))

    answer = await world.claim("a", "b")

    assert answer == ClaimAnswer(held=("a:1",), refused=(Unclaimed("b:1", DB, others=1, until_ms=None),))


async def test_whoever_waits_is_served_before_a_claim(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    await world.hold("first", DB, ttl_ms=1_000)
    assert isinstance(await world.acquire("second", DB), WaitsInLine)
    world.later(1_000)

    answer = await world.claim("a")

    assert [each.holder for each in answer.refused] == ["a:1"]
    assert await world.active(DB) == ["second"]


async def test_a_claim_that_comes_to_nothing_lapses_in_a_sweep_alone(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    await world.claim("a", lapse_ms=1_000)
    world.later(1_000)

    before = await world.acquire("lease", DB)
    swept = await world.view.sweep(now_ms=world.now_ms)

    assert isinstance(before, WaitsInLine)
    assert [grant.lease for grant in swept.grants] == ["lease"]
    assert await world.active(DB) == ["lease"]


async def test_a_claim_that_came_to_nothing_is_dropped_for_whoever_waits(world: ViewScenario) -> None:
    await world.spread("a", "b", groups=(DB,))
    await world.claim("a")
    await world.acquire("lease", DB, ttl_ms=1_000)

    answer = await world.claim("b", drop=("a:1", "a:2", "nobody:1"))
    told = (await world.view.sweep(now_ms=world.now_ms)).grants

    assert answer.refused == (Unclaimed("b:1", DB, others=1, until_ms=None),)
    assert told == (Grant("lease", None, "inbox", world.now_ms + 1_000),)


async def test_a_job_that_has_changed_claims_anew(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    await world.claim("a")

    await world.fold(replace(world.rows["a"], class_number=20))

    assert await world.active(DB) == []
    assert await world.claim("a") == ClaimAnswer(held=("a:1",))


async def test_a_job_that_has_ended_holds_nothing(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    await world.claim("a")
    await world.acquire("lease", DB)

    grants = await world.finish("a", "cancelled")

    assert [grant.lease for grant in grants] == ["lease"]


async def test_where_the_view_is_behind_nothing_is_claimed(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))

    assert await world.claim("a", applied=world.seq + 1) == ClaimAnswer()
    assert await world.active(DB) == []


async def test_a_shut_group_and_a_shut_gate_are_refused_until_they_open(world: ViewScenario) -> None:
    await world.spread("a", groups=(OLLAMA,))
    await world.spread("b", gates=(OLLAMA,))
    await world.shut(OLLAMA, 5_000)
    until_ms = world.now_ms + 5_000

    shut = await world.claim("a", "b")
    world.later(5_000)

    assert shut.refused == (Unclaimed("a:1", OLLAMA, 0, until_ms), Unclaimed("b:1", OLLAMA, 0, until_ms))
    assert await world.claim("a", "b") == ClaimAnswer(held=("a:1", "b:1"))


async def test_whoever_has_claimed_keeps_it_while_the_group_is_shut_but_not_behind_its_gate(
    world: ViewScenario,
) -> None:
    await world.spread("a", groups=(OLLAMA,))
    await world.spread("b", groups=(DB,), gates=(OLLAMA,))
    await world.claim("a", "b")

    await world.shut(OLLAMA, 5_000)
    answer = await world.claim("a", "b")

    assert answer.held == ("a:1",)
    assert [each.group for each in answer.refused] == [OLLAMA]


async def test_nothing_is_claimed_before_running_jobs_have_said_what_they_hold(world: ViewScenario) -> None:
    await world.run("runs")
    await world.spread("a", groups=(DB,))
    await world.open(seeds=world.seeds(), generation="generation-1", quarantine_ms=9_000)

    shut = await world.claim("a")
    await world.worker(holders=("runs:1",), leases=(held("inner", DB, owner="runs:1"),))

    assert shut.refused == (Unclaimed("a:1", DB, 0, None, quarantined_until_ms=world.now_ms + 9_000),)
    assert (await world.claim("a")).refused == (Unclaimed("a:1", DB, 1, None),)


async def test_a_claim_is_shown_as_held(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    await world.claim("a", lapse_ms=1_000)

    (holder,) = (await world.view.group(DB, now_ms=world.now_ms)).holders

    assert (holder.name, holder.job, holder.attempt, holder.since_ms) == ("a:1", "a", 1, None)
    assert holder.expires_ms == world.now_ms + 1_000


async def test_a_lease_that_is_over_makes_room_for_a_claim(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    assert isinstance(await world.acquire("lease", DB, ttl_ms=1_000), Granted)
    world.later(1_000)

    assert await world.claim("a") == ClaimAnswer(held=("a:1",))


async def test_a_claim_is_gone_with_its_life_of_the_view(world: ViewScenario) -> None:
    await world.spread("a", groups=(DB,))
    await world.claim("a")

    await world.open(seeds=world.seeds(), generation="generation-1")

    assert await world.active(DB) == []
    assert world.claim_of("a") == Claim("a:1", (DB,))

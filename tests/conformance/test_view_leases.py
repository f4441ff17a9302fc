"""Slots inside jobs and outside any: leases, who waits for one, and what ends one, by every store of the view."""

from libs.capacity.answers import DueTimer, Full, Grant, Granted, NotYours, WaitsInLine
from libs.capacity.rows import FreeLease
from tests.conformance.view_log import DAY_MS, DEFAULTS, LEASE_MS, held
from tests.conformance.view_scenario import ViewScenario

DB, OLLAMA, GLOBAL = "group:shop:db", "llm:ollama", "llm:global"


# ── leases ────────────────────────────────────────────────────────────────────


async def test_a_lease_holds_a_slot_of_all_its_groups(world: ViewScenario) -> None:
    await world.run("a")

    answer = await world.acquire("lease", OLLAMA, GLOBAL, owner="a:1")

    assert answer == Granted("lease", world.now_ms + LEASE_MS)
    assert await world.active(OLLAMA) == ["lease"]
    assert await world.active(GLOBAL) == ["lease"]


async def test_where_one_group_is_full_none_is_taken(world: ViewScenario) -> None:
    await world.hold("first", DB)

    waits = await world.acquire("second", OLLAMA, DB)
    full = await world.acquire("third", OLLAMA, DB, wait_ms=0)

    assert waits == WaitsInLine("second", DB, behind=0)
    assert full == Full(DB, limit=1, active=1)
    assert await world.active(OLLAMA) == []


async def test_the_same_question_twice_has_the_same_answer(world: ViewScenario) -> None:
    await world.run("a")
    held_first = await world.acquire("held", DB, owner="a:1")
    waits_first = await world.acquire("waits", DB, owner="a:1")
    world.later(1_000)

    assert await world.acquire("held", DB, owner="a:1") == held_first
    assert await world.acquire("waits", DB, owner="a:1") == waits_first
    assert await world.active(DB) == ["held"]


async def test_it_is_said_whether_a_question_is_the_first_and_how_many_slots_are_taken(world: ViewScenario) -> None:
    first = await world.acquire("held", DB, OLLAMA)
    second = await world.acquire("beside", OLLAMA)
    waits = await world.acquire("waits", DB)
    again = (await world.acquire("held", DB, OLLAMA), await world.acquire("waits", DB))

    assert isinstance(first, Granted)
    assert isinstance(second, Granted)
    assert isinstance(waits, WaitsInLine)
    assert (first.again, second.again, waits.again) == (False, False, False)
    assert (first.active, second.active) == (((DB, 1), (OLLAMA, 1)), ((OLLAMA, 2),))
    assert [isinstance(answer, Granted | WaitsInLine) and answer.again for answer in again] == [True, True]


async def test_only_a_running_attempt_may_take_a_lease(world: ViewScenario) -> None:
    await world.run("a")
    await world.give_back("a")
    await world.dispatch("a")

    assert await world.acquire("old", DB, owner="a:1") == NotYours("a:1")
    assert await world.acquire("none", DB, owner="nobody:1") == NotYours("nobody:1")
    assert isinstance(await world.acquire("new", DB, owner="a:2"), Granted)


async def test_a_group_that_the_job_holds_is_not_taken_again(world: ViewScenario) -> None:
    await world.run("a", groups=(DB,))

    nothing_left = await world.acquire("inner", DB, owner="a:1")
    one_left = await world.acquire("other", DB, OLLAMA, owner="a:1")

    assert isinstance(nothing_left, Granted)
    assert isinstance(one_left, Granted)
    assert await world.active(DB) == ["a:1"]
    assert await world.active(OLLAMA) == ["other"]


async def test_waiters_are_granted_in_order_and_at_once(world: ViewScenario) -> None:
    await world.hold("first", DB)
    waits = [await world.acquire(name, DB, reply=f"inbox-{name}", ttl_ms=5_000) for name in ("second", "third")]

    grants = await world.view.give_up("first", now_ms=world.now_ms)

    assert waits == [WaitsInLine("second", DB, behind=0), WaitsInLine("third", DB, behind=1)]
    assert grants == (Grant("second", None, "inbox-second", world.now_ms + 5_000),)
    assert await world.acquire("third", DB) == WaitsInLine("third", DB, behind=0)


async def test_a_waiter_moves_with_its_turn_to_the_group_that_blocks_it_next(world: ViewScenario) -> None:
    await world.configure({**DEFAULTS, OLLAMA: 1})
    await world.hold("db", DB)
    await world.hold("llm", OLLAMA)
    await world.acquire("both", DB, OLLAMA)
    await world.acquire("llm-only", OLLAMA)

    moved = await world.view.give_up("db", now_ms=world.now_ms)
    where = await world.acquire("both", DB, OLLAMA)
    granted = await world.view.give_up("llm", now_ms=world.now_ms)

    assert moved == ()
    assert where == WaitsInLine("both", OLLAMA, behind=0)  # it came before "llm-only"
    assert [grant.lease for grant in granted] == ["both"]


async def test_a_freed_slot_goes_to_waiters_before_jobs(world: ViewScenario) -> None:
    await world.hold("first", DB)
    await world.submit("job", groups=(DB,))
    await world.acquire("second", DB)

    await world.view.give_up("first", now_ms=world.now_ms)
    while_held = await world.plan()
    await world.view.give_up("second", now_ms=world.now_ms)

    assert while_held == []
    assert await world.plan() == ["job"]


async def test_a_raised_limit_is_given_to_waiters(world: ViewScenario) -> None:
    await world.hold("first", DB)
    for name in ("second", "third"):
        await world.acquire(name, DB)

    grants = await world.set_limit(DB, 2)

    assert [grant.lease for grant in grants] == ["second"]


async def test_a_grant_that_an_answer_cannot_carry_is_told_by_the_next_that_can(world: ViewScenario) -> None:
    await world.hold("first", DB, ttl_ms=1_000)
    await world.acquire("second", DB)
    world.later(1_000)

    await world.look()
    told = await world.view.sweep(now_ms=world.now_ms)
    again = await world.view.sweep(now_ms=world.now_ms)

    assert [grant.lease for grant in told.grants] == ["second"]
    assert again.grants == ()


async def test_a_changed_policy_lets_waiters_in(world: ViewScenario) -> None:
    await world.hold("first", DB)
    await world.acquire("second", DB)

    await world.configure({**DEFAULTS, "group": 2})
    told = await world.view.sweep(now_ms=world.now_ms)

    assert [grant.lease for grant in told.grants] == ["second"]


async def test_a_waiter_gives_up_at_its_deadline(world: ViewScenario) -> None:
    await world.hold("first", DB)
    await world.acquire("second", DB, wait_ms=1_000)
    await world.acquire("third", DB)
    world.later(1_000)

    grants = await world.view.give_up("first", now_ms=world.now_ms)

    assert [grant.lease for grant in grants] == ["third"]


async def test_who_gives_up_waiting_is_not_granted(world: ViewScenario) -> None:
    await world.hold("first", DB)
    await world.acquire("second", DB)

    await world.view.give_up("second", now_ms=world.now_ms)
    grants = await world.view.give_up("first", now_ms=world.now_ms)

    assert grants == ()


async def test_what_a_stage_has_given_up_is_held_again_by_no_heartbeat_that_was_under_way(world: ViewScenario) -> None:
    await world.run("a")
    await world.hold("inner", DB, owner="a:1")
    await world.view.give_up("inner", now_ms=world.now_ms)

    heard = await world.worker(holders=("a:1",), leases=(held("inner", DB, owner="a:1"),))

    assert heard.lost_leases == ("inner",)
    assert await world.active(DB) == []


async def test_what_a_stage_has_given_up_is_granted_to_no_question_that_was_under_way(world: ViewScenario) -> None:
    await world.run("a")
    await world.hold("first", DB, owner="a:1")
    for name in ("first", "second"):  # of the second no question has come yet
        await world.view.give_up(name, now_ms=world.now_ms)

    answers = [await world.acquire(name, DB, owner="a:1") for name in ("first", "second", "third")]

    assert answers[:2] == [NotYours("a:1"), NotYours("a:1")]
    assert await world.active(DB) == ["third"]


async def test_what_a_stage_has_given_up_is_forgotten_after_two_minutes(world: ViewScenario) -> None:
    await world.run("a")
    for name in ("first", "second"):
        await world.view.give_up(name, now_ms=world.now_ms)
        world.later(60_000)

    assert isinstance(await world.acquire("first", DB, owner="a:1"), Granted)
    assert isinstance(await world.acquire("second", DB, owner="a:1"), NotYours)


async def test_outside_jobs_a_name_may_be_used_again(world: ViewScenario) -> None:
    await world.hold("lease", DB)
    await world.view.give_up("lease", now_ms=world.now_ms)

    assert isinstance(await world.acquire("lease", DB), Granted)


async def test_giving_up_what_is_unknown_changes_nothing(world: ViewScenario) -> None:
    assert await world.view.give_up("nobody", now_ms=world.now_ms) == ()


# ── what ends a lease ─────────────────────────────────────────────────────────


async def test_a_lease_ends_by_itself_and_its_waiter_is_granted(world: ViewScenario) -> None:
    await world.hold("first", DB, ttl_ms=1_000)
    await world.acquire("second", DB)
    world.later(999)
    early = await world.view.sweep(now_ms=world.now_ms)
    world.later(1)

    late = await world.view.sweep(now_ms=world.now_ms)

    assert early.grants == ()
    assert [grant.lease for grant in late.grants] == ["second"]


async def test_whoever_waits_goes_before_whoever_comes_when_a_lease_has_ended(world: ViewScenario) -> None:
    await world.hold("first", DB, ttl_ms=1_000)
    await world.acquire("second", DB)
    world.later(1_000)

    third = await world.acquire("third", DB)

    assert third == WaitsInLine("third", DB, behind=0)
    assert await world.active(DB) == ["second"]


async def test_what_a_job_took_inside_ends_with_its_attempt(world: ViewScenario) -> None:
    await world.run("a", "b")
    await world.hold("inner", DB, owner="a:1")
    await world.acquire("waits-inside", DB, owner="a:1")
    await world.acquire("other", DB, owner="b:1")

    grants = await world.finish("a")

    assert [grant.lease for grant in grants] == ["other"]
    assert await world.acquire("waits-inside", DB, owner="a:1") == NotYours("a:1")


async def test_a_jobs_own_slot_is_freed_by_the_log_alone(world: ViewScenario) -> None:
    await world.run("a", groups=(DB,))
    world.later(DAY_MS)

    swept = await world.view.sweep(now_ms=world.now_ms)
    forced = await world.fold(order=FreeLease(DB, "a:1"))

    assert (swept.grants, forced) == ((), ())
    assert await world.active(DB) == ["a:1"]
    assert isinstance(await world.acquire("other", DB, wait_ms=0), Full)


async def test_a_jobs_lease_comes_up_as_due_when_its_heartbeats_stop(world: ViewScenario) -> None:
    await world.run("a")
    world.later(LEASE_MS)

    due = await world.view.due(10, now_ms=world.now_ms)

    assert due == (DueTimer("lease", "a", world.now_ms, attempt=1),)


async def test_a_forced_lease_is_over_and_its_stage_hears_of_it(world: ViewScenario) -> None:
    await world.run("a")
    await world.hold("inner", DB, owner="a:1")
    await world.acquire("other", DB)

    grants = await world.fold(order=FreeLease(DB, "inner"))
    heard = await world.worker(holders=("a:1",), leases=(held("inner", DB, owner="a:1"),))

    assert [grant.lease for grant in grants] == ["other"]
    assert (heard.kept, heard.lost_leases) == (("a:1",), ("inner",))
    assert await world.active(DB) == ["other"]


async def test_force_needs_the_group_of_the_lease(world: ViewScenario) -> None:
    await world.hold("lease", DB)

    await world.fold(order=FreeLease(OLLAMA, "lease"))

    assert await world.active(DB) == ["lease"]

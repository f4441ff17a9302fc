"""Who may run: order, slots, pauses, and what a plan costs, by every store of the view."""

from dataclasses import replace

import pytest

from libs.capacity.answers import Pick, Reserved
from libs.capacity.rows import SetLimit
from tests.conformance.view_log import DAY_MS
from tests.conformance.view_oracle import scan
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import observe

TEAM = {"limits": {"group:shop:db": 2}, "groups": ("group:shop:db",)}


# ── order and slots ───────────────────────────────────────────────────────────


async def test_a_plan_goes_by_class_then_by_place(world: ViewScenario) -> None:
    await world.spread("normal-1", "normal-2")
    await world.spread("urgent", class_number=10)

    assert await world.plan() == ["urgent", "normal-1", "normal-2"]


async def test_a_plan_says_what_it_counted_with(world: ViewScenario) -> None:
    await world.submit("a", tier="partner", **TEAM)

    plan = await world.look()

    assert plan.picks == (Pick("a", seq=1),)
    assert plan.limits == {"user:ann": 3, "project:shop": 3, "group:shop:db": 2}
    assert plan.slots == {"default": 100}
    assert (plan.applied, plan.more) == (1, False)


async def test_a_plan_changes_nothing_by_itself(world: ViewScenario) -> None:
    await world.spread("a", "b", pool="gpu")
    await world.worker("w2", pool="gpu", slots=1)

    assert await world.plan() == ["a"]
    assert await world.plan() == ["a"]


async def test_a_plan_stops_at_its_limit(world: ViewScenario) -> None:
    await world.spread("a", "b", "c")

    assert await world.plan(limit=2) == ["a", "b"]


async def test_no_more_run_than_a_pool_has_slots(world: ViewScenario) -> None:
    await world.worker("w1", slots=2)
    await world.spread("a", "b", "c")

    first = await world.plan()
    await world.dispatch(*first)
    second = await world.plan()
    await world.finish("a")

    assert (first, second) == (["a", "b"], [])
    assert await world.plan() == ["c"]


async def test_a_pool_without_slots_holds_no_other_pool_up(world: ViewScenario) -> None:
    await world.spread("stuck", pool="gpu")
    await world.spread("a")

    assert await world.plan() == ["a"]


async def test_a_draining_or_silent_worker_has_no_slots(world: ViewScenario) -> None:
    await world.worker("w1", slots=1, ttl_ms=1_000)
    await world.worker("w2", slots=1, draining=True)
    await world.spread("a", "b")

    alone = await world.plan()
    world.later(1_000)

    assert alone == ["a"]
    assert await world.plan() == []


async def test_a_reserved_place_is_not_planned(world: ViewScenario) -> None:
    await world.reserve("held")

    assert await world.plan() == []


async def test_a_job_given_back_returns_to_its_old_place(world: ViewScenario) -> None:
    await world.spread("a", "b")
    await world.spread("fast", tier="partner")
    await world.dispatch("fast")

    await world.give_back("fast")

    assert await world.plan() == ["fast", "a", "b"]


# ── pauses ────────────────────────────────────────────────────────────────────

PAUSES = {
    "all": ["mine", "other"],
    "priority:normal": ["mine", "other"],
    "priority:low": [],
    "pool:default": ["mine", "other"],
    "pool:gpu": [],
    "user:ann": ["mine"],
    "project:shop": ["mine"],
    "workflow:flow": ["mine"],
}


@pytest.mark.parametrize("scope", sorted(PAUSES))
async def test_a_pause_stops_its_scope_alone_until_it_is_resumed(world: ViewScenario, scope: str) -> None:
    await world.submit("mine", user="ann", project="shop", workflow="flow")
    await world.submit("other", user="bob", project="blog")

    await world.pause(scope)
    paused = await world.plan()
    await world.resume(scope)

    assert paused == [job for job in ("mine", "other") if job not in PAUSES[scope]]
    assert await world.plan() == ["mine", "other"]


@pytest.mark.parametrize("scope", ["all", "priority:normal", "pool:default", "user:ann"])
async def test_who_comes_while_a_scope_is_paused_waits_too(world: ViewScenario, scope: str) -> None:
    await world.pause(scope)
    await world.submit("late")

    paused = await world.plan()
    await world.resume(scope)

    assert paused == []
    assert await world.plan() == ["late"]


async def test_a_job_under_two_pauses_waits_for_both(world: ViewScenario) -> None:
    await world.submit("a")
    await world.pause("user:ann")
    await world.pause("project:shop")

    await world.resume("user:ann")
    half = await world.plan()
    await world.resume("project:shop")

    assert half == []
    assert await world.plan() == ["a"]


async def test_a_paused_job_stands_for_nobody(world: ViewScenario) -> None:
    for job in ("a", "b", "c"):
        await world.submit(job, project=job)
    await world.plan()

    await world.pause("project:a")

    assert await world.plan() == ["b", "c"]


async def test_paused_jobs_count_towards_the_queue(world: ViewScenario) -> None:
    await world.submit("a")
    await world.pause("user:ann")

    assert [entry.job for entry in await world.view.queue()] == ["a"]
    assert (await observe(world.view, now_ms=world.now_ms)).pauses["user:ann"]["by"] == "olga"


async def test_a_reserved_job_can_be_paused_and_resumed(world: ViewScenario) -> None:
    answer = await world.reserve("held")
    await world.pause("user:ann")
    await world.resume("user:ann")

    assert await world.plan() == []
    await world.appear("held", answer)  # type: ignore[arg-type]
    assert await world.plan() == ["held"]


# ── the price ─────────────────────────────────────────────────────────────────


async def backlog(world: ViewScenario, count: int) -> None:
    """Many jobs that one group blocks, folded in one go, and one behind them that it does not."""
    details = {"cap": 10_000, "user_share": 10_000, "per_day": 10_000}
    answers = [await world.reserve(f"job-{number:04}", **details) for number in range(count)]
    for number, answer in enumerate(answers):
        assert isinstance(answer, Reserved), answer
        await world.appear(
            f"job-{number:04}", answer, groups=("group:shop:db",), user=f"u{number}", project=f"p{number}"
        )
    await world.submit("free", **details, user="free", project="free")


async def test_a_plan_that_has_looked_long_enough_says_that_there_is_more(world: ViewScenario) -> None:
    await backlog(world, 1_002)

    first = await world.look()
    second = await world.look()

    assert [pick.job for pick in first.picks] == ["job-0000"]
    assert first.more
    assert [pick.job for pick in second.picks] == ["job-0000", "free"]
    assert not second.more


async def test_debts_that_cannot_be_paid_in_one_call_are_paid_in_the_next(world: ViewScenario) -> None:
    await backlog(world, 1_002)
    await world.plan_all()

    await world.fold(order=SetLimit("group:shop:db", 5_000))
    first = await world.look(limit=2_000)
    second = await world.look(limit=2_000)

    assert (first.picks, first.more) == ((), True)
    assert len(second.picks) == 100  # the slots of the pool
    assert not second.more


async def test_the_plan_is_what_a_walk_over_the_whole_queue_would_pick(world: ViewScenario) -> None:
    await world.worker("w1", slots=6)
    await world.worker("w2", pool="gpu", slots=3)
    for number in range(60):
        await world.submit(
            f"job-{number:02}",
            user=f"user-{number % 7}",
            project=f"project-{number % 3}",
            tier=("bootstrapper", "partner", "cto_scale")[number % 3],
            pool=("default", "gpu")[number % 5 == 0],
            groups=(("group:shop:db",), ("llm:ollama",), ())[number % 3],
            cap=1_000,
        )

    for turn in range(30):
        plan = await world.plan(limit=100)
        seen = await observe(world.view, now_ms=world.now_ms)
        assert plan == list(scan(seen, world.rows, world.orders, quarantined=False))
        await world.dispatch(*plan[: 1 + turn % 4])
        running = sorted(job for job, row in world.rows.items() if row.holder)
        for job in running[: turn % 3]:
            await (world.give_back(job) if turn % 5 == 0 else world.finish(job))


async def test_what_is_due_comes_in_order(world: ViewScenario) -> None:
    await world.schedule("b", release_ms=world.now_ms + 10)
    await world.schedule("a", release_ms=world.now_ms + 10)
    await world.submit("running")
    await world.dispatch("running")
    running = world.rows["running"]
    await world.fold(replace(running, timers={"deadline": world.now_ms + 5, "far": world.now_ms + DAY_MS}))

    early = await world.view.due(10, now_ms=world.now_ms + 4)
    world.later(30_000)
    due = await world.view.due(10, now_ms=world.now_ms)
    two = await world.view.due(2, now_ms=world.now_ms)

    assert early == ()
    assert [(each.kind, each.job) for each in due] == [
        ("deadline", "running"),
        ("release", "a"),
        ("release", "b"),
        ("lease", "running"),
    ]
    assert due[-1].attempt == 1
    assert two == due[:2]


# ── one class alone ───────────────────────────────────────────────────────────


async def test_with_a_class_only_its_jobs_are_planned(world: ViewScenario) -> None:
    await world.spread("urgent", class_number=10)
    await world.spread("a", "b")
    await world.spread("last", class_number=90)

    assert await world.plan(only_class=50) == ["a", "b"]
    assert await world.plan(limit=1, only_class=50) == ["a"]
    assert await world.plan(only_class=90) == ["last"]
    assert await world.plan(only_class=20) == []


async def test_a_job_parked_behind_those_of_a_higher_class_is_found_for_its_own(world: ViewScenario) -> None:
    """Its user never has nothing to run in the higher class, so in its turn it would never start."""
    for job in ("a", "b", "c", "d"):
        await world.submit(job, project=job)
    await world.submit("background", project="e", class_number=90)
    await world.dispatch(*await world.plan())
    await world.plan_all()
    await world.finish("a")

    in_turn = await world.plan()

    assert await world.plan(only_class=90) == ["background"]
    assert in_turn == ["c"]


async def test_a_class_by_itself_keeps_to_every_limit(world: ViewScenario) -> None:
    await world.worker("w1", slots=3)
    await world.run("runs", user="ann", project="one")
    for number in range(3):
        await world.submit(f"j{number}", project=f"p{number}", class_number=90)
    await world.spread("x", "y", class_number=90)

    assert await world.plan(only_class=90) == ["j0", "x"]


async def test_a_job_that_is_passed_over_stands_in_nobodys_way(world: ViewScenario) -> None:
    """Picks of another pool fill one of its groups, so its other group is for who is parked behind it."""
    await world.worker("w2", pool="gpu", slots=1)
    await world.set_limit("group:shop:a", 1)
    await world.hold("outside", "group:shop:b", ttl_ms=5_000)
    await world.spread("of-gpu", pool="gpu", groups=("group:shop:a",))
    await world.spread("passed-over", groups=("group:shop:a", "group:shop:b"))
    await world.spread("behind", groups=("group:shop:b",))
    world.later(5_000)

    assert await world.plan() == ["of-gpu", "behind"]

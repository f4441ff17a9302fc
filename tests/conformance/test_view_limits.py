"""What a limit blocks and what wakes it, and that the blocked hold nobody up, by every store of the view."""

import pytest

from tests.conformance.view_log import DEFAULTS
from tests.conformance.view_scenario import ViewScenario

TEAM = {"limits": {"group:shop:db": 2}, "groups": ("group:shop:db",)}


# ── limits ────────────────────────────────────────────────────────────────────


async def test_a_full_user_holds_nobody_else_up(world: ViewScenario) -> None:
    for job in ("a", "b", "c"):
        await world.submit(job, user="ann", project=job)
    await world.submit("d", user="bob")

    assert await world.plan() == ["a", "b", "d"]


async def test_a_full_project_holds_nobody_else_up(world: ViewScenario) -> None:
    for job in ("a", "b", "c"):
        await world.submit(job, user=f"user-{job}", project="shop")
    await world.submit("d", user="dan", project="blog")

    first = await world.plan()
    await world.dispatch(*first)

    assert first == ["a", "b", "d"]
    assert await world.plan() == []


async def test_a_projects_limit_is_that_of_the_tier_that_wants_to_start(world: ViewScenario) -> None:
    for number in range(2):
        await world.spread(f"small-{number}", project="shop", tier="bootstrapper")
    for number in range(4):
        await world.spread(f"large-{number}", project="shop", tier="cto_scale", boost=0)

    assert await world.plan() == ["small-0", "small-1", "large-0", "large-1", "large-2"]


async def test_a_stages_own_group_ends_with_its_limit_unless_another_is_set(world: ViewScenario) -> None:
    names = ("stage:build-deps:3", "stage:build-deps:0", "stage:build-deps:x", "stage:3", "stage:a:9999999999")
    before = [(await world.view.group(name, now_ms=world.now_ms)).limit for name in names]

    await world.set_limit(names[0], 7)
    await world.configure({**DEFAULTS, names[1]: 2})

    assert before == [3, 0, 1, 1, 1]
    assert [(await world.view.group(name, now_ms=world.now_ms)).limit for name in names[:2]] == [7, 2]


async def test_a_slot_that_comes_free_goes_to_the_first_it_blocked(world: ViewScenario) -> None:
    for job in ("a", "b", "c", "d"):
        await world.submit(job, project=job)
    await world.dispatch(*await world.plan())

    blocked = await world.plan()
    await world.finish("b")

    assert blocked == []
    assert await world.plan() == ["c"]


@pytest.mark.parametrize("how", ["give_back", "ask_to_continue"])
async def test_a_job_that_stops_running_frees_its_slots(world: ViewScenario, how: str) -> None:
    for job in ("a", "b", "c"):
        await world.submit(job, project=job)
    await world.dispatch("a", "b")

    await getattr(world, how)("a")
    planned = await world.plan()

    assert planned == (["a"] if how == "give_back" else ["c"])


async def test_a_users_limit_is_that_of_their_newest_submission(world: ViewScenario) -> None:
    for job in ("a", "b", "c", "d"):
        await world.submit(job, project=job)
    before = await world.plan()

    await world.submit("e", project="e", tier="partner", boost=0)

    assert before == ["a", "b"]
    assert await world.plan() == ["a", "b", "c"]


async def test_a_raised_limit_wakes_as_many_as_it_grew_by(world: ViewScenario) -> None:
    await world.spread(*"abcd", **TEAM)
    await world.dispatch(*await world.plan())

    await world.set_limit("group:shop:db", 3)

    assert await world.plan() == ["c"]


async def test_a_lowered_limit_holds_from_the_next_decision_on(world: ViewScenario) -> None:
    await world.spread(*"abcd", **TEAM)
    await world.dispatch("a")

    await world.set_limit("group:shop:db", 1)
    lowered = await world.plan()
    await world.set_limit("group:shop:db", 2)

    assert lowered == []
    assert await world.plan() == ["b"]


async def test_a_changed_policy_applies_to_the_backlog_at_once(world: ViewScenario) -> None:
    for job in "abc":
        await world.submit(job, project=job)
    await world.dispatch(*await world.plan())

    await world.configure({**DEFAULTS, "user/bootstrapper": 3})
    raised = await world.plan()
    await world.configure({**DEFAULTS, "user/bootstrapper": 1})

    assert raised == ["c"]
    assert await world.plan() == []


async def test_the_first_submission_sets_a_groups_limit(world: ViewScenario) -> None:
    await world.spread("a", groups=("group:shop:db",), limits={"group:shop:db": 2})
    await world.spread("b", groups=("group:shop:db",), limits={"group:shop:db": 9})
    await world.spread("c", groups=("group:shop:db",))

    assert await world.plan() == ["a", "b"]


async def test_a_group_that_no_job_names_any_more_leaves_the_view(world: ViewScenario) -> None:
    await world.spread("a", **TEAM)
    await world.dispatch("a")
    used = await world.view.groups(now_ms=world.now_ms)

    await world.finish("a", unused=("group:shop:db",))
    unused = await world.view.groups(now_ms=world.now_ms)
    await world.spread("b", "c", groups=("group:shop:db",))

    assert set(used) - set(unused) >= {"group:shop:db"}
    assert await world.plan() == ["b"], "the default again"


async def test_a_limit_that_is_gone_lets_as_many_start_as_policy_allows(world: ViewScenario) -> None:
    await world.configure({**DEFAULTS, "group/db": 3})
    await world.spread(*"abcd", **TEAM)
    await world.set_limit("group:shop:db", 1)
    limited = await world.plan()

    await world.unset_limit("group:shop:db")

    assert limited == ["a"]
    assert await world.plan() == ["a", "b", "c"]


async def test_who_waits_for_a_slot_hears_that_a_limit_is_gone(world: ViewScenario) -> None:
    await world.configure({**DEFAULTS, "group/db": 2})
    await world.set_limit("group:shop:db", 1)
    await world.hold("first", "group:shop:db")
    await world.acquire("second", "group:shop:db", wait_ms=60_000)

    grants = await world.unset_limit("group:shop:db")

    assert [grant.lease for grant in grants] == ["second"]


async def test_policy_names_a_group_of_every_project(world: ViewScenario) -> None:
    await world.configure({**DEFAULTS, "group/db": 1})
    await world.spread("a", "b", **TEAM)

    assert await world.plan() == ["a"]


async def test_a_group_without_a_limit_has_the_default(world: ViewScenario) -> None:
    await world.spread("a", "b", groups=("group:shop:db",))

    assert await world.plan() == ["a"]


async def test_without_any_limit_nothing_starts(world: ViewScenario) -> None:
    await world.configure({})
    await world.submit("a")

    assert await world.plan() == []


async def test_a_job_that_waits_for_one_group_leaves_the_slot_of_another(world: ViewScenario) -> None:
    await world.spread("holder", groups=("llm:ollama",))
    await world.dispatch("holder")
    await world.set_limit("llm:ollama", 1)
    await world.spread("both", groups=("group:shop:db", "llm:ollama"))
    await world.spread("one", groups=("group:shop:db",))

    assert await world.plan() == ["one"]


async def test_a_job_that_leaves_hands_on_what_it_stood_for(world: ViewScenario) -> None:
    for job in ("a", "b", "c"):
        await world.submit(job, project=job)
    seen = await world.plan()

    await world.finish("a", "cancelled")

    assert seen == ["a", "b"]
    assert await world.plan() == ["b", "c"]


async def test_a_job_of_an_idle_pool_holds_nobody_of_another_up(world: ViewScenario) -> None:
    """All of one user, and the first of them cannot run for want of a worker."""
    await world.worker("w2", pool="gpu", slots=2)
    for job in ("gpu-1", "gpu-2"):
        await world.submit(job, project=job, pool="gpu")
    await world.submit("mine", project="mine")
    first = await world.plan()

    await world.worker("w2", pool="gpu", slots=0)

    assert first == ["gpu-1", "gpu-2"]
    assert await world.plan() == ["mine"]


async def test_a_slot_freed_for_an_idle_pool_can_be_taken_in_another(world: ViewScenario) -> None:
    for job in ("a", "b"):
        await world.submit(job, project=job)
    await world.dispatch("a", "b")
    await world.submit("stuck", project="stuck", pool="gpu")
    await world.submit("mine", project="mine")

    await world.finish("a")

    assert await world.plan() == ["mine"]


async def test_an_ended_lease_gives_its_slot_to_the_jobs_it_blocked(world: ViewScenario) -> None:
    await world.hold("outside", "group:shop:db", ttl_ms=1_000)
    await world.spread("a", groups=("group:shop:db",))
    blocked = await world.plan()

    world.later(1_000)

    assert blocked == []
    assert await world.plan() == ["a"]

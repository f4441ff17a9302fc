"""What operators look at and what replicas show one another, by every store of the view."""

from collections.abc import Callable

import pytest

from libs.capacity.answers import Reserved, SlotHolder, WorkerStatus
from libs.capacity.errors import ViewLost, ViewMisused
from libs.capacity.ports import View
from libs.capacity.rows import Pause
from tests.conformance.view_log import DEFAULTS, LEASE_MS
from tests.conformance.view_scenario import ViewScenario

DB, OLLAMA = "group:shop:db", "llm:ollama"
HOUR_MS = 3_600_000
DIGEST = "0123456789abcdef" * 4


# ── outlooks ──────────────────────────────────────────────────────────────────


async def test_a_scheduled_job_has_an_outlook_without_a_position(world: ViewScenario) -> None:
    await world.run("a", "b", user="ann")
    await world.schedule("mine", groups=(DB,))
    await world.hold("outside", DB)
    await world.pause("user:ann")

    outlook = await world.view.outlook("mine", now_ms=world.now_ms)

    assert outlook is not None
    assert (outlook.position, outlook.score, outlook.room) == (None, None, False)
    assert [pause.scope for pause in outlook.pauses] == ["user:ann"]
    assert [obstacle.group for obstacle in outlook.obstacles] == ["user:ann", DB]


async def test_an_outlook_says_that_a_job_waits_for_room(world: ViewScenario) -> None:
    await world.submit("a")
    await world.wait("mine", workflow="flow")
    before = await world.view.outlook("mine", now_ms=world.now_ms)
    await world.release("mine", cap=1)

    outlook = await world.view.outlook("mine", now_ms=world.now_ms)

    assert before is not None
    assert outlook is not None
    assert (before.room, outlook.room, outlook.position) == (False, True, None)


async def test_an_outlook_says_who_paused_it_why_and_since_when(world: ViewScenario) -> None:
    await world.submit("a", workflow="flow")
    for scope in ("workflow:flow", "project:shop", "all", "pool:gpu"):
        await world.pause(scope)
        world.later(1)

    outlook = await world.view.outlook("a", now_ms=world.now_ms)

    assert outlook is not None
    assert outlook.pauses == tuple(
        Pause(scope, by="olga", reason="maintenance", since_ms=world.now_ms - ago)
        for scope, ago in (("all", 2), ("project:shop", 3), ("workflow:flow", 4))
    )


async def test_an_obstacle_names_who_holds_the_slots_and_since_when(world: ViewScenario) -> None:
    await world.run("a", user="ann", project="one")
    started_ms = world.now_ms
    world.later(10)
    await world.run("b", user="ann", project="two")
    await world.submit("mine", user="ann", project="three")

    outlook = await world.view.outlook("mine", now_ms=world.now_ms)

    assert outlook is not None
    (full,) = outlook.obstacles
    assert (full.group, full.limit, full.active, full.since_ms, full.until_ms) == (
        "user:ann",
        2,
        2,
        world.now_ms,
        None,
    )
    assert full.holders == (
        SlotHolder("a:1", "a", 1, "ann", None, started_ms, started_ms + LEASE_MS),
        SlotHolder("b:1", "b", 1, "ann", None, world.now_ms, world.now_ms + LEASE_MS),
    )


async def test_many_outlooks_are_those_of_each(world: ViewScenario) -> None:
    await world.spread("a", "b")
    await world.schedule("c")
    await world.run("d")

    together = await world.view.outlooks(["b", "nobody", "c", "d", "a"], now_ms=world.now_ms)

    one_by_one = [await world.view.outlook(job, now_ms=world.now_ms) for job in ("b", "nobody", "c", "d", "a")]
    assert together == tuple(one_by_one)
    assert [each is None for each in together] == [False, True, False, True, False]
    assert await world.view.outlooks([]) == ()


# ── groups, workers, pauses, tiers ────────────────────────────────────────────


async def test_every_group_is_listed_that_there_is_something_to_say_of(world: ViewScenario) -> None:
    await world.worker("w2", pool="gpu", slots=0)
    await world.run("a", user="holds", project="holds")
    await world.hold("l", "group:held")
    await world.hold("ends", "group:over", ttl_ms=1_000)
    await world.acquire("waits", "group:awaited", "group:held")
    await world.set_limit("group:limited", 3)
    await world.shut("llm:gemini", 5_000)
    await world.submit("b", user="blocked", project="blocked", groups=("group:held", "group:unused"))
    world.later(1_000)

    groups = await world.view.groups(now_ms=world.now_ms)

    own = {"user:holds", "project:holds", "pool:default", "group:held", "group:limited", "llm:gemini"}
    assert groups == tuple(sorted({"workflows", OLLAMA, "llm:global"} | own))


async def test_a_group_is_listed_that_somebody_waits_for_or_that_is_shut(world: ViewScenario) -> None:
    await world.set_limit("group:none", 0)
    await world.configure({**DEFAULTS, "group": 0})

    await world.acquire("waits", "group:awaited")
    await world.shut("llm:gemini", 5_000)
    listed = await world.view.groups(now_ms=world.now_ms)
    world.later(5_000)

    assert {"group:awaited", "group:none", "llm:gemini"} <= set(listed)
    assert "llm:gemini" not in await world.view.groups(now_ms=world.now_ms)


async def test_workers_are_listed_with_what_they_said_and_what_of_it_still_runs(world: ViewScenario) -> None:
    await world.run("a", "b")
    await world.worker("w1", slots=2, holders=("b:1", "gone:1", "a:1"), ttl_ms=LEASE_MS)
    heard_ms = world.now_ms
    world.later(10)
    await world.worker("w0", pool="gpu", slots=3, draining=True, ttl_ms=5_000)
    await world.finish("b")

    workers = await world.view.workers(now_ms=world.now_ms)

    draining = WorkerStatus(
        worker="w0",
        pool="gpu",
        slots=3,
        draining=True,
        heard_ms=world.now_ms,
        until_ms=world.now_ms + 5_000,
        holders=(),
    )
    running = WorkerStatus(
        worker="w1",
        pool="default",
        slots=2,
        draining=False,
        heard_ms=heard_ms,
        until_ms=heard_ms + LEASE_MS,
        holders=("a:1",),
    )
    assert workers == (draining, running)


async def test_a_silent_worker_is_not_listed_and_a_draining_one_has_no_slots(world: ViewScenario) -> None:
    await world.worker("w1", slots=2, ttl_ms=1_000)
    await world.worker("w2", slots=3, draining=True)
    world.later(1_000)

    assert [each.worker for each in await world.view.workers(now_ms=world.now_ms)] == ["w2"]
    assert (await world.view.group("pool:default", now_ms=world.now_ms)).limit == 0
    await world.view.sweep(now_ms=world.now_ms)
    await world.worker("w2", slots=4)
    assert (await world.view.group("pool:default", now_ms=world.now_ms)).limit == 4


async def test_a_draining_worker_that_fell_silent_takes_no_slots_from_the_others(world: ViewScenario) -> None:
    await world.worker("w1", slots=2)
    await world.worker("w2", slots=3, draining=True, ttl_ms=1_000)
    world.later(1_000)

    assert (await world.view.group("pool:default", now_ms=world.now_ms)).limit == 2


async def test_a_released_job_is_an_entry_that_is_reserved_until_its_event_is_folded(world: ViewScenario) -> None:
    await world.schedule("a")
    answer = await world.release("a")
    assert isinstance(answer, Reserved)
    before = [entry.reserved for entry in await world.view.queue()]

    await world.enter("a", answer)

    assert (before, [entry.reserved for entry in await world.view.queue()]) == ([True], [False])


async def test_pauses_are_listed_by_scope_and_gone_once_resumed(world: ViewScenario) -> None:
    for scope in ("user:ann", "all", "pool:gpu"):
        await world.pause(scope)
    await world.resume("all")

    pauses = await world.view.pauses()

    assert pauses == tuple(Pause(scope, "olga", "maintenance", world.now_ms) for scope in ("pool:gpu", "user:ann"))


async def test_the_queued_jobs_of_each_tier_are_counted_paused_ones_too(world: ViewScenario) -> None:
    await world.spread("a", "b")
    await world.spread("c", tier="partner")
    await world.spread("d", tier="cto_scale")
    await world.reserve("unseen", user="eve", tier="cto_scale")
    await world.schedule("later")
    await world.pause("user:user-a")

    before = dict(await world.view.tiers_queued())
    await world.dispatch("c")
    await world.finish("b", "cancelled")
    running = dict(await world.view.tiers_queued())
    await world.give_back("c")

    assert before == {"bootstrapper": 2, "partner": 1, "cto_scale": 1}
    assert running == {"bootstrapper": 1, "cto_scale": 1}
    assert await world.view.tiers_queued() == {"bootstrapper": 1, "partner": 1, "cto_scale": 1}


async def test_a_rebuilt_view_counts_the_same_tiers(world: ViewScenario) -> None:
    await world.spread("a", "b", tier="partner")

    await world.open(seeds=world.seeds() * 2, generation="g1")

    assert await world.view.tiers_queued() == {"partner": 2}


# ── what is published, refused, or shown once ─────────────────────────────────


async def test_what_is_published_last_is_what_is_read(world: ViewScenario) -> None:
    before = await world.view.published("forecast")
    for text in ("{}", '{"ü": "\\u0000 \U0001f600"}'):
        await world.view.publish("forecast", text)

    assert before is None
    assert await world.view.published("forecast") == '{"ü": "\\u0000 \U0001f600"}'
    assert await world.view.published("analytics") is None


async def test_what_is_published_dies_with_the_generation(world: ViewScenario) -> None:
    await world.view.publish("forecast", "{}")

    await world.open(generation="g1")

    assert await world.view.published("forecast") is None


async def test_refusals_are_counted_by_hour_and_reason_for_a_day(world: ViewScenario) -> None:
    hour_ms = world.now_ms // HOUR_MS * HOUR_MS
    for reason in ("busy", "too-fast", "busy"):
        await world.view.count_refused(reason, now_ms=world.now_ms)
    world.now_ms = hour_ms + HOUR_MS
    await world.view.count_refused("busy", now_ms=world.now_ms)

    first = {(hour_ms, "busy"): 2, (hour_ms, "too-fast"): 1}
    second = {(hour_ms + HOUR_MS, "busy"): 1}
    world.now_ms = hour_ms + 24 * HOUR_MS - 1
    await world.view.sweep(now_ms=world.now_ms)
    assert await world.view.refused(now_ms=world.now_ms) == first | second
    assert await world.view.refused(now_ms=world.now_ms + 1) == second
    await world.view.sweep(now_ms=world.now_ms + 1)
    assert await world.view.refused(now_ms=world.now_ms) == second


async def test_a_ticket_is_worth_something_once(world: ViewScenario) -> None:
    await world.view.keep_ticket(DIGEST, '{"user_id": "ann"}', user="ann", most=9, ttl_ms=30_000)

    assert await world.view.take_ticket(DIGEST) == '{"user_id": "ann"}'
    assert await world.view.take_ticket(DIGEST) is None
    assert await world.view.take_ticket(DIGEST[::-1]) is None


async def test_a_ticket_outlives_the_generation_and_needs_no_view(views: Callable[[str], View]) -> None:
    view = views("another epoch")
    await view.keep_ticket(DIGEST, "{}", user="ann", most=9, ttl_ms=30_000)

    await ViewScenario(views("epoch-1")).open()

    assert await view.take_ticket(DIGEST) == "{}"


async def test_a_user_has_so_many_tickets_and_the_next_when_the_first_is_over_used_or_not(world: ViewScenario) -> None:
    async def keep(number: int, user: str = "ann") -> int | None:
        ticket = f"{number:064x}"
        return await world.view.keep_ticket(ticket, "{}", user=user, most=2, ttl_ms=30_000, now_ms=world.now_ms)

    first = [await keep(1), await keep(1)]
    world.later(10_000)
    second = await keep(2)
    await world.view.take_ticket(f"{1:064x}")

    assert (first, second) == ([None, None], None)
    assert (await keep(3), await keep(4, "bob")) == (20_000, None)
    assert await world.view.take_ticket(f"{3:064x}") is None
    world.later(20_000)
    assert await keep(3) is None


@pytest.mark.parametrize("digest", ["", "a" * 63, "g" * 64, "A" * 64, "*" * 64])
async def test_a_ticket_is_kept_under_a_digest_alone(view: View, digest: str) -> None:
    with pytest.raises(ViewMisused, match="SHA-256"):
        await view.keep_ticket(digest, "{}", user="ann", most=9, ttl_ms=1)
    with pytest.raises(ViewMisused, match="SHA-256"):
        await view.take_ticket(digest)


async def test_nothing_is_told_of_a_view_that_is_not_there(view: View) -> None:
    asked = (
        view.groups,
        view.workers,
        view.pauses,
        view.tiers_queued,
        view.refused,
        lambda: view.publish("forecast", "{}"),
        lambda: view.published("forecast"),
        lambda: view.outlooks(["a"]),
        lambda: view.outlooks([]),
        lambda: view.shut(OLLAMA, 1),
        lambda: view.count_refused("busy"),
    )
    for ask in asked:
        with pytest.raises(ViewLost):
            await ask()

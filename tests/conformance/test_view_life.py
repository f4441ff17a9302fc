"""The view's life: begun, seeded, opened, folded, lost and folded again, by every store of the view."""

from dataclasses import replace
from typing import Any

import pytest

from libs.capacity.answers import Folded, Heartbeat, LeaseRequest, Release, Reserved, StaleView, ViewMark
from libs.capacity.errors import ViewLost
from libs.capacity.ports import View
from libs.capacity.rows import Change, Pause, Seed, SetLimit, StandingOrders
from tests.conformance.view_log import DAY_MS, DEFAULTS, LEASE_MS, TODAY, request, row
from tests.conformance.view_scenario import Views, ViewScenario
from tests.fixtures.observing import observe
from tests.fixtures.stores import EPOCH

QUESTIONS: dict[str, Any] = {
    "fold": lambda view: view.fold([], lease_ms=LEASE_MS),
    "configure": lambda view: view.configure({}),
    "prolong": lambda view: view.prolong(1),
    "reserve": lambda view: view.reserve(request("a")),
    "release": lambda view: view.release(Release(job="a", cap=1, passed_bound=1, lapse_ms=1)),
    "between": lambda view: view.between("a", before="b"),
    "claim": lambda view: view.claim((), applied=0, lapse_ms=1),
    "due": lambda view: view.due(1),
    "acquire": lambda view: view.acquire(LeaseRequest(lease="l", groups=("g",), owner=None, ttl_ms=1, wait_ms=0)),
    "give_up": lambda view: view.give_up("l"),
    "beat": lambda view: view.beat(
        Heartbeat(worker="w", pool="p", slots=1, draining=False, holders=(), leases=(), ttl_ms=1)
    ),
    "sweep": lambda view: view.sweep(),
    "job": lambda view: view.job("a"),
    "outlook": lambda view: view.outlook("a"),
    "group": lambda view: view.group("g"),
    "jobs_of": lambda view: view.jobs_of("ann"),
    "day_used": lambda view: view.day_used("ann", TODAY),
    "queue": lambda view: view.queue(),
    "observe": observe,
}


# ── missing, closed, of another log ───────────────────────────────────────────


@pytest.mark.parametrize("question", sorted(QUESTIONS))
async def test_a_missing_view_answers_nothing(view: View, question: str) -> None:
    with pytest.raises(ViewLost):
        await QUESTIONS[question](view)

    assert await view.mark() is None


@pytest.mark.parametrize("question", sorted(QUESTIONS))
async def test_a_closed_view_answers_nothing(view: View, question: str) -> None:
    await view.begin(EPOCH, generation="g", applied=7, standing=StandingOrders())

    with pytest.raises(ViewLost):
        await QUESTIONS[question](view)

    assert await view.mark() == ViewMark(EPOCH, "g", 7, open=False)


@pytest.mark.parametrize("question", sorted(QUESTIONS))
async def test_the_view_of_another_log_answers_nothing(views: Views, question: str) -> None:
    other, view = views("another-epoch"), views(EPOCH)
    await other.begin("another-epoch", generation="g", applied=7, standing=StandingOrders())
    await other.open(generation="g", quarantine_ms=0)

    with pytest.raises(ViewLost):
        await QUESTIONS[question](view)

    await QUESTIONS[question](other)
    assert await view.mark() == ViewMark("another-epoch", "g", 7, open=True)


@pytest.mark.parametrize("question", sorted(QUESTIONS))
async def test_an_open_view_answers(view: View, question: str) -> None:
    world = ViewScenario(view)
    await world.open()

    await QUESTIONS[question](view)


async def test_only_the_current_generation_is_seeded_and_opened(view: View) -> None:
    await view.begin(EPOCH, generation="new", applied=0, standing=StandingOrders())

    with pytest.raises(ViewLost):
        await view.seed([Seed(row("a"), 0)], generation="old", lease_ms=LEASE_MS)
    with pytest.raises(ViewLost):
        await view.open(generation="old", quarantine_ms=0)


async def test_nobody_opens_the_view_of_another_log(views: Views) -> None:
    await views("another-epoch").begin("another-epoch", generation="g", applied=0, standing=StandingOrders())

    with pytest.raises(ViewLost):
        await views(EPOCH).seed([Seed(row("a"), 0)], generation="g", lease_ms=LEASE_MS)
    with pytest.raises(ViewLost):
        await views(EPOCH).open(generation="g", quarantine_ms=0)


async def test_an_open_generation_is_not_seeded(world: ViewScenario) -> None:
    with pytest.raises(ViewLost):
        await world.view.seed([Seed(row("a"), 0)], generation="generation-0", lease_ms=LEASE_MS)


async def test_begin_and_open_may_be_asked_twice(world: ViewScenario) -> None:
    await world.submit("a")
    await world.dispatch("a")

    await world.view.begin(EPOCH, generation="generation-0", applied=0, standing=StandingOrders())
    await world.view.open(generation="generation-0", quarantine_ms=LEASE_MS)

    assert await world.view.mark() == ViewMark(EPOCH, "generation-0", 2, open=True)
    assert isinstance(await world.reserve("b"), Reserved)


async def test_a_new_generation_knows_nothing_of_the_last(world: ViewScenario) -> None:
    await world.submit("a")
    await world.reserve("held")
    await world.hold("lease", "group:shop:db")

    await world.open(generation="generation-2")

    seen = await observe(world.view, now_ms=world.now_ms)
    assert seen.mark == ViewMark(EPOCH, "generation-2", 1, open=True)
    assert (seen.queue, seen.statuses, seen.groups, seen.quotas, seen.slots) == ((), {}, {}, {}, {})


# ── folding ───────────────────────────────────────────────────────────────────


async def test_changes_are_folded_in_the_logs_order_and_once(world: ViewScenario) -> None:
    changes = [world.write(replace(row(job), status="waiting")) for job in "abc"]

    first = await world.view.fold(changes[:2], lease_ms=LEASE_MS)
    gap = await world.view.fold([Change(seq=9, prev=8)], lease_ms=LEASE_MS)
    again = await world.view.fold(changes[:2], lease_ms=LEASE_MS)
    all_of_them = await world.view.fold(changes, lease_ms=LEASE_MS)
    nothing = await world.view.fold([], lease_ms=LEASE_MS)

    assert (first, gap, again) == (Folded(2), StaleView(2), Folded(2))
    assert (all_of_them, nothing) == (Folded(3), Folded(3))
    assert await world.view.jobs_of("ann") == (("c", 3), ("b", 2), ("a", 1))


async def test_a_record_that_was_stepped_over_still_counts(world: ViewScenario) -> None:
    answer = await world.view.fold([Change(seq=4, prev=0, complaint="not readable")], lease_ms=LEASE_MS)

    assert answer == Folded(4)


async def test_a_row_that_is_folded_again_changes_nothing(world: ViewScenario) -> None:
    await world.submit("a")
    await world.dispatch("a")
    before = await observe(world.view, now_ms=world.now_ms)

    await world.fold(world.rows["a"])
    after = await observe(world.view, now_ms=world.now_ms)

    assert replace(after, mark=before.mark) == before


async def test_timers_are_those_of_the_newest_row(world: ViewScenario) -> None:
    await world.submit("a")
    await world.fold(replace(world.rows["a"], timers={"ageing": 5, "ttl": 9}))
    await world.fold(replace(world.rows["a"], timers={"ageing": 7}))

    assert (await observe(world.view, now_ms=world.now_ms)).timers == {"ageing:a": 7}


async def test_an_end_leaves_nothing_but_the_row_and_its_day(world: ViewScenario) -> None:
    await world.submit("a", workflow="flow")
    await world.dispatch("a")
    await world.finish("a")

    seen = await observe(world.view, now_ms=world.now_ms)

    assert seen.statuses == {"a": "ready"}
    assert (seen.queue, seen.groups, seen.leases) == ((), {}, {})
    assert seen.quotas == {f"ann:{TODAY}": ("a",)}


async def test_a_users_tier_is_forgotten_with_their_last_job(world: ViewScenario) -> None:
    """Whose tier is not known is shown the highest limit there is."""
    for job in ("first", "last"):
        await world.submit(job)
        await world.finish(job)

    limits: list[int] = []
    for job in ("first", "last"):
        await world.forget(job)
        limits.append((await world.view.group("user:ann", now_ms=world.now_ms)).limit)

    assert limits == [DEFAULTS["user/bootstrapper"], DEFAULTS["user/cto_scale"]]


async def test_a_finished_job_is_forgotten_and_no_other(world: ViewScenario) -> None:
    await world.submit("done")
    await world.submit("waits")
    await world.finish("done")

    for job in ("done", "waits", "nobody"):
        await world.forget(job)

    assert await world.view.job("done") is None
    assert await world.view.job("waits") == '{"id":"waits"}'
    assert await world.view.jobs_of("ann") == (("waits", 2),)
    assert (await observe(world.view, now_ms=world.now_ms)).timers == {}


# ── the view is a fold of the log ─────────────────────────────────────────────


async def test_a_rebuilt_view_equals_the_one_that_was_lost(world: ViewScenario) -> None:
    await world.pause("project:blog")
    for job, tier in (("a", "bootstrapper"), ("b", "bootstrapper"), ("fast", "cto_scale"), ("c", "partner")):
        await world.submit(job, tier=tier, project="blog" if job == "b" else "shop", limits={"group:shop:db": 3})
    await world.set_limit("llm:ollama", 2)
    await world.dispatch("fast")
    await world.schedule("tomorrow")
    await world.finish("a", "cancelled")
    before = await observe(world.view, now_ms=world.now_ms)

    await world.open(seeds=reversed(world.seeds()), generation="generation-2")
    await world.worker()
    after = await observe(world.view, now_ms=world.now_ms)

    assert replace(after, mark=before.mark) == before
    answer = await world.reserve("next")
    assert isinstance(answer, Reserved)
    assert answer.arrival == 5


async def test_a_seeded_view_has_the_standing_orders(view: View) -> None:
    world = ViewScenario(view)
    world.orders.arrivals = 41
    world.orders.limits["user:ann"] = 7
    world.orders.pauses["pool:gpu"] = Pause("pool:gpu", "olga", "repair", 5)

    await world.open()
    answer = await world.reserve("a")

    assert isinstance(answer, Reserved)
    assert answer.arrival == 42
    seen = await observe(view, now_ms=world.now_ms)
    assert seen.limits == {"user:ann": 7}
    assert seen.pauses == {"pool:gpu": {"by": "olga", "reason": "repair", "since_ms": "5"}}


async def test_a_tier_that_no_order_names_is_that_of_the_seeded_row(view: View) -> None:
    world = ViewScenario(view)
    seeds = [Seed(replace(row("a", tier="partner"), arrival=1, place=1 << 16), 0)]

    await world.open(seeds=seeds)

    assert (await view.group("user:ann", now_ms=world.now_ms)).limit == DEFAULTS["user/partner"]


# ── reading ───────────────────────────────────────────────────────────────────


async def test_the_queue_is_read_in_pages(world: ViewScenario) -> None:
    for job in "abcde":
        await world.submit(job)

    page = await world.view.queue(offset=1, count=2)
    rest = await world.view.queue(offset=3)

    assert [entry.job for entry in page] == ["b", "c"]
    assert [entry.job for entry in rest] == ["d", "e"]


async def test_a_users_jobs_are_read_newest_first_in_pages(world: ViewScenario) -> None:
    for job in "abcd":
        await world.submit(job)
    await world.submit("other", user="bob")
    await world.finish("d")

    page = await world.view.jobs_of("ann", count=2)
    rest = await world.view.jobs_of("ann", before=page[-1][1])

    assert page == (("d", 4), ("c", 3))
    assert rest == (("b", 2), ("a", 1))
    assert await world.view.jobs_of("nobody") == ()


async def test_what_is_not_there_is_null(world: ViewScenario) -> None:
    await world.submit("running")
    await world.dispatch("running")
    await world.reserve("held")

    assert await world.view.job("nobody") is None
    assert await world.view.outlook("nobody") is None
    assert await world.view.outlook("running") is None
    assert await world.view.outlook("held") is None
    assert await world.view.day_used("nobody", TODAY) == 0


async def test_the_limit_for_a_job_is_that_of_its_tier_unless_an_operator_has_set_one(world: ViewScenario) -> None:
    await world.submit("a", user="ann")

    async def limits(tier: str) -> list[int]:
        names = ("user:ann", "user:nobody", "project:shop", "llm:ollama")
        return [(await world.view.group(name, tier=tier, now_ms=world.now_ms)).limit for name in names]

    assert await limits("partner") == [DEFAULTS["user/partner"]] * 2 + [DEFAULTS["project/partner"], 4]
    await world.fold(order=SetLimit("user:ann", 7))
    assert (await limits("partner"))[:2] == [7, DEFAULTS["user/partner"]]
    assert (await world.view.group("user:ann", now_ms=world.now_ms)).limit == 7


async def test_the_limit_a_reader_sees_of_a_project_is_the_highest(world: ViewScenario) -> None:
    assert (await world.view.group("project:shop", now_ms=world.now_ms)).limit == DEFAULTS["project/cto_scale"]
    assert (await world.view.group("user:nobody", now_ms=world.now_ms)).limit == DEFAULTS["user/cto_scale"]
    assert (await world.view.group("llm:ollama", now_ms=world.now_ms)).limit == 4
    assert (await world.view.group("pool:empty", now_ms=world.now_ms)).limit == 0


async def test_a_scheduled_job_has_a_day_and_no_place(world: ViewScenario) -> None:
    await world.schedule("a", day=TODAY + 3)

    seen = await observe(world.view, now_ms=world.now_ms)

    assert seen.queue == ()
    assert seen.quotas == {f"ann:{TODAY + 3}": ("a",)}
    assert seen.timers == {"release:a": (TODAY + 3) * DAY_MS}

"""What workers say and are told, after a rebuild too, and what a reader sees of slots, by every store of the view."""

from libs.capacity.answers import Reserved, SlotHolder, WaitsInLine
from tests.conformance.view_log import LEASE_MS, held
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import observe

DB, OLLAMA, GLOBAL = "group:shop:db", "llm:ollama", "llm:global"


# ── heartbeats ────────────────────────────────────────────────────────────────


async def test_a_heartbeat_says_what_is_kept_cancelled_and_not_yours(world: ViewScenario) -> None:
    await world.run("a", "b")
    await world.ask_to_cancel("b")

    heard = await world.worker(holders=("b:1", "a:1", "c:1"))

    assert (heard.kept, heard.cancel, heard.not_yours) == (("a:1",), ("b:1",), ("c:1",))


async def test_a_heartbeat_extends_what_the_worker_holds(world: ViewScenario) -> None:
    await world.run("a")
    await world.hold("inner", DB, owner="a:1", ttl_ms=60_000)
    world.later(20_000)

    await world.worker(holders=("a:1",), leases=(held("inner", DB, owner="a:1"),), ttl_ms=LEASE_MS)

    seen = await observe(world.view, now_ms=world.now_ms)
    assert seen.leases == {"a:1": world.now_ms + LEASE_MS}
    status = await world.view.group(DB, now_ms=world.now_ms)
    assert [holder.expires_ms for holder in status.holders] == [world.now_ms + 60_000]


async def test_a_lease_that_ended_too_early_is_held_again_even_above_the_limit(world: ViewScenario) -> None:
    await world.run("a")
    await world.hold("inner", DB, owner="a:1", ttl_ms=1_000)
    world.later(1_000)
    await world.view.sweep(now_ms=world.now_ms)
    await world.hold("other", DB)

    heard = await world.worker(holders=("a:1",), leases=(held("inner", DB, owner="a:1"),))

    assert heard.lost_leases == ()
    assert await world.active(DB) == ["inner", "other"]


async def test_a_lease_of_an_attempt_that_is_over_is_lost(world: ViewScenario) -> None:
    await world.run("a")
    await world.give_back("a")

    heard = await world.worker(holders=("a:1",), leases=(held("inner", DB, owner="a:1"),))

    assert (heard.not_yours, heard.lost_leases) == (("a:1",), ("inner",))
    assert await world.active(DB) == []


async def test_a_silent_worker_is_gone_once(world: ViewScenario) -> None:
    await world.worker("w2", ttl_ms=1_000)
    world.later(1_000)

    first = await world.view.sweep(now_ms=world.now_ms)
    second = await world.view.sweep(now_ms=world.now_ms)

    assert (first.gone_workers, second.gone_workers) == (("w2",), ())


async def test_an_outage_is_added_to_all_that_ends_by_silence(world: ViewScenario) -> None:
    await world.run("a")
    await world.worker("w2", ttl_ms=1_000)
    await world.hold("inner", DB, owner="a:1", ttl_ms=1_000)
    await world.acquire("waits", DB, wait_ms=1_000)

    await world.view.prolong(5_000)
    world.later(5_999)
    swept = await world.view.sweep(now_ms=world.now_ms)

    assert (swept.grants, swept.gone_workers) == ((), ())
    seen = await observe(world.view, now_ms=world.now_ms)
    assert seen.leases["a:1"] == world.now_ms - 5_999 + LEASE_MS + 5_000
    assert seen.groups[DB] == ("inner",)
    assert seen.waiters == {DB: ("waits",)}


# ── quarantine ────────────────────────────────────────────────────────────────


async def rebuilt(world: ViewScenario, *jobs: str) -> None:
    """A view that was lost while these jobs ran, and was folded again."""
    await world.run(*jobs)
    await world.open(seeds=world.seeds(), generation="generation-2", quarantine_ms=LEASE_MS)
    await world.worker()


async def test_after_a_rebuild_inner_groups_are_shut_until_all_have_reported(world: ViewScenario) -> None:
    await rebuilt(world, "a", "b")
    await world.submit("needs-db", user="ned", project="ned", groups=(DB,))
    await world.submit("plain", user="pam", project="pam")
    asked = await world.acquire("new", DB, owner="a:1")
    shut = await world.plan()
    outlook = await world.view.outlook("needs-db", now_ms=world.now_ms)

    await world.worker(holders=("a:1",))
    half = await world.plan()
    heard = await world.worker(holders=("b:1",))
    await world.view.give_up("new", now_ms=world.now_ms)

    assert asked == WaitsInLine("new", DB, behind=0)
    assert (shut, half) == (["plain"], ["plain"])
    assert outlook is not None
    assert outlook.quarantined
    assert [grant.lease for grant in heard.grants] == ["new"]
    assert await world.plan() == ["needs-db", "plain"]


async def test_what_runs_is_named_again_before_anything_is_granted(world: ViewScenario) -> None:
    await rebuilt(world, "a")
    await world.acquire("new", DB)

    heard = await world.worker(holders=("a:1",), leases=(held("inner", DB, owner="a:1"),))

    assert heard.grants == ()
    assert await world.active(DB) == ["inner"]


async def test_a_quarantine_ends_with_the_last_silent_job(world: ViewScenario) -> None:
    await rebuilt(world, "a", "b")
    await world.acquire("new", DB)

    await world.worker(holders=("a:1",))
    grants = await world.finish("b", "failed")

    assert [grant.lease for grant in grants] == ["new"]


async def test_a_quarantine_ends_with_its_time(world: ViewScenario) -> None:
    await rebuilt(world, "a")
    await world.acquire("new", DB)
    world.later(LEASE_MS)

    swept = await world.view.sweep(now_ms=world.now_ms)

    assert [grant.lease for grant in swept.grants] == ["new"]


async def test_a_view_without_running_jobs_needs_no_quarantine(world: ViewScenario) -> None:
    await world.submit("a", groups=(DB,))
    await world.open(seeds=world.seeds(), generation="generation-2", quarantine_ms=LEASE_MS)
    await world.worker()

    assert await world.plan() == ["a"]


async def test_a_running_job_gets_a_lease_of_grace(world: ViewScenario) -> None:
    await world.run("a")
    world.later(LEASE_MS * 2)

    await world.open(seeds=world.seeds(), generation="generation-2", quarantine_ms=LEASE_MS)

    assert await world.view.due(10, now_ms=world.now_ms) == ()
    assert await world.active("pool:default") == ["a:1"]


# ── status ────────────────────────────────────────────────────────────────────


async def test_a_groups_status_names_its_holders(world: ViewScenario) -> None:
    await world.run("a", groups=(DB,))
    await world.start("a", worker="w7")
    await world.set_limit(DB, 3)
    started_ms = world.now_ms
    world.later(10)
    await world.hold("inner", DB, OLLAMA, owner="a:1")
    await world.hold("outside", DB, ttl_ms=5_000)
    await world.hold("third", DB)
    await world.acquire("waits", DB)
    await world.submit("blocked", groups=(DB,))

    db = await world.view.group(DB, now_ms=world.now_ms)
    llm = await world.view.group(OLLAMA, now_ms=world.now_ms)
    pool = await world.view.group("pool:default", now_ms=world.now_ms)

    assert (db.limit, db.active, db.waiting, db.blocked) == (3, 3, 1, 1)
    assert db.holders[0] == SlotHolder("a:1", "a", 1, "user-a", "w7", started_ms, started_ms + LEASE_MS)
    assert db.holders[1] == SlotHolder("outside", None, None, None, None, world.now_ms, world.now_ms + 5_000)
    assert llm.holders == (SlotHolder("inner", "a", 1, "user-a", "w7", world.now_ms, world.now_ms + LEASE_MS),)
    assert (pool.limit, pool.active) == (100, 1)


async def test_whom_a_project_blocks_is_measured_by_the_tier_of_the_first(world: ViewScenario) -> None:
    """Also where that has been released and is not folded yet."""
    for user in ("ann", "bob"):
        await world.submit(f"runs-{user}", user=user)
        await world.dispatch(f"runs-{user}")
    await world.schedule("released", user="cleo")
    assert isinstance(await world.release("released"), Reserved)
    await world.submit("behind", user="dora", tier="partner", class_number=90)

    project = await world.view.group("project:shop", now_ms=world.now_ms)

    assert (project.active, project.limit, project.blocked) == (2, 5, 2)


async def test_an_outlook_names_all_that_is_full(world: ViewScenario) -> None:
    await world.run("a", "b", user="ann", groups=())
    await world.hold("outside", DB)
    await world.pause("pool:default")
    await world.pause("all")
    await world.submit("mine", user="ann", groups=(DB,))

    outlook = await world.view.outlook("mine", now_ms=world.now_ms)

    assert outlook is not None
    assert [pause.scope for pause in outlook.pauses] == ["all", "pool:default"]
    assert [(each.group, each.limit, each.active, each.since_ms) for each in outlook.obstacles] == [
        ("user:ann", 2, 2, world.now_ms),
        (DB, 1, 1, None),
    ]
    assert (outlook.pool_slots, outlook.pool_active, outlook.quarantined) == (100, 2, False)

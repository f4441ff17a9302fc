"""Slots outside any job: whose they are, what asking again does, what a lost view leaves; each store of the view."""

from typing import Any

from libs.capacity.answers import Full, Grant, Granted, LeaseAnswer, LeasesFull, NotYours, WaitsInLine
from tests.conformance.view_scenario import ViewScenario

DB, CACHE = "group:shop:db", "group:shop:cache"
FULL_MS = 300_000


async def take(world: ViewScenario, lease: str, *groups: str, user: str = "ann", **details: Any) -> LeaseAnswer:
    wanted: dict[str, Any] = {"wait_ms": 0, "ttl_ms": 10_000} | details
    return await world.acquire(lease, *(groups or (DB,)), user=user, **wanted)


async def extend(world: ViewScenario, lease: str, *, told_ms: int = 0, **details: Any) -> LeaseAnswer:
    return await take(world, lease, held_until_ms=told_ms, **details)


# ── the same lease ────────────────────────────────────────────────────────────


async def test_asked_again_it_is_the_same_lease_for_as_long_from_now(world: ViewScenario) -> None:
    await take(world, "mine")
    world.later(4_000)

    again = await take(world, "mine")
    world.later(9_999)

    assert isinstance(again, Granted)
    assert (again.again, again.expires_ms) == (True, world.now_ms + 1)
    assert await world.active(DB) == ["mine"]


async def test_a_shorter_wish_takes_nothing_of_what_was_told(world: ViewScenario) -> None:
    first = await take(world, "mine")

    assert await take(world, "mine", ttl_ms=1_000) == first


async def test_anothers_lease_or_one_for_other_groups_is_not_theirs(world: ViewScenario) -> None:
    await take(world, "held")
    await take(world, "waits", wait_ms=5_000)

    assert [await take(world, name, user="bob") for name in ("held", "waits")] == [NotYours(None)] * 2
    assert await take(world, "held", CACHE) == NotYours(None)
    assert await extend(world, "held", user="bob") == NotYours(None)
    assert await take(world, "waits") == WaitsInLine("waits", DB, behind=0)


async def test_who_asks_again_waits_on_at_the_old_place_for_as_long_from_now(world: ViewScenario) -> None:
    await take(world, "held", ttl_ms=60_000)
    await take(world, "first", wait_ms=5_000)
    await take(world, "second", wait_ms=60_000)
    world.later(4_000)

    again = await take(world, "first", wait_ms=5_000)
    world.later(4_999)
    grants = await world.view.give_up("held", user="ann", now_ms=world.now_ms)

    assert again == WaitsInLine("first", DB, behind=0)
    assert [grant.lease for grant in grants] == ["first"]


async def test_a_holder_is_named_by_its_user(world: ViewScenario) -> None:
    await take(world, "held")
    since_ms = world.now_ms
    await take(world, "waits", user="bob", wait_ms=60_000)

    (held,) = (await world.view.group(DB, now_ms=world.now_ms)).holders
    world.later(1_000)
    await world.view.give_up("held", user="ann", now_ms=world.now_ms)
    (granted,) = (await world.view.group(DB, now_ms=world.now_ms)).holders

    assert (held.name, held.user, held.job, held.since_ms) == ("held", "ann", None, since_ms)
    assert (granted.name, granted.user, granted.expires_ms) == ("waits", "bob", world.now_ms + 10_000)


# ── extended ──────────────────────────────────────────────────────────────────


async def test_what_is_extended_is_never_taken_anew(world: ViewScenario) -> None:
    await take(world, "mine", ttl_ms=1_000)
    held = await extend(world, "mine", ttl_ms=2_000)
    world.later(2_000)

    assert held == Granted("mine", world.now_ms)
    assert await extend(world, "mine", told_ms=world.now_ms + 5_000) == NotYours(None)
    assert await world.active(DB) == []


async def test_a_waiter_has_nothing_to_extend(world: ViewScenario) -> None:
    await take(world, "held")
    await take(world, "waits", wait_ms=5_000)

    assert await extend(world, "waits") == NotYours(None)


# ── how many one user may have ────────────────────────────────────────────────


async def test_a_user_holds_and_waits_for_so_many_and_others_for_theirs(world: ViewScenario) -> None:
    await take(world, "holds", most=2)
    await take(world, "waits", most=2, wait_ms=5_000)

    assert await take(world, "third", CACHE, most=2) == LeasesFull(2)
    assert isinstance(await take(world, "others", CACHE, user="bob", most=2), Granted)
    assert [type(await take(world, name, most=2)) for name in ("holds", "waits")] == [Granted, WaitsInLine]
    assert isinstance(await world.acquire("third", CACHE, user="ann", wait_ms=0), Full)


async def test_whatever_ends_a_lease_or_its_wait_makes_room_for_another(world: ViewScenario) -> None:
    await take(world, "given-back", most=1)
    await world.view.give_up("given-back", user="ann", now_ms=world.now_ms)
    await take(world, "ends", most=1)
    world.later(10_000)
    await take(world, "held", user="bob", ttl_ms=60_000)
    await take(world, "granted", most=1, wait_ms=50_000)
    await world.view.give_up("held", user="bob", now_ms=world.now_ms)

    assert await take(world, "second", CACHE, most=1) == LeasesFull(1)
    await world.view.give_up("granted", user="ann", now_ms=world.now_ms)
    await take(world, "held", user="bob", ttl_ms=60_000)
    await take(world, "gives-up", most=1, wait_ms=1_000)
    world.later(1_000)
    assert isinstance(await take(world, "second", CACHE, most=1), Granted)


# ── given back ────────────────────────────────────────────────────────────────


async def test_nobody_gives_up_what_is_anothers(world: ViewScenario) -> None:
    await take(world, "held")
    await take(world, "waits", wait_ms=5_000)

    assert await world.view.give_up("held", user="bob", now_ms=world.now_ms) == ()
    assert await world.view.give_up("waits", user="bob", now_ms=world.now_ms) == ()
    assert await world.active(DB) == ["held"]
    (grant,) = await world.view.give_up("held", user="ann", now_ms=world.now_ms)
    assert grant == Grant("waits", None, "inbox", world.now_ms + 10_000)


async def test_of_who_went_away_the_wait_alone_ends(world: ViewScenario) -> None:
    await take(world, "held")
    await take(world, "waits", wait_ms=5_000)

    for name in ("held", "waits"):
        await world.view.give_up(name, user="ann", wait_only=True, now_ms=world.now_ms)

    assert await world.active(DB) == ["held"]
    assert await world.view.give_up("held", user="ann", now_ms=world.now_ms) == ()


# ── the view was lost ─────────────────────────────────────────────────────────


async def test_after_a_loss_nothing_is_granted_until_a_full_lease_has_passed(world: ViewScenario) -> None:
    await reopened(world)
    asked_ms = world.now_ms + FULL_MS

    early = await take(world, "other")
    waits = await take(world, "waits", wait_ms=FULL_MS + 1)
    free = await take(world, "elsewhere", CACHE)
    world.later(FULL_MS)
    told = await world.view.sweep(now_ms=world.now_ms)

    assert early == Full(DB, 1, 0, until_ms=asked_ms)
    assert waits == WaitsInLine("waits", DB, behind=0, until_ms=asked_ms)
    assert isinstance(free, Granted)
    assert [grant.lease for grant in told.grants] == ["waits"]


async def test_a_holder_that_says_what_it_was_told_is_held_again(world: ViewScenario) -> None:
    await reopened(world)

    held = await extend(world, "mine", told_ms=world.now_ms + 1)

    assert held == Granted("mine", world.now_ms + 10_000)
    assert await world.active(DB) == ["mine"]
    assert isinstance(await take(world, "mine"), Granted)


async def test_a_holder_that_comes_too_late_or_finds_no_room_has_lost_its_lease(world: ViewScenario) -> None:
    await reopened(world)

    assert await extend(world, "late", told_ms=world.now_ms) == NotYours(None)
    assert await extend(world, "silent") == NotYours(None)
    assert isinstance(await extend(world, "first", told_ms=world.now_ms + 5_000), Granted)
    assert await extend(world, "second", told_ms=world.now_ms + 5_000) == NotYours(None)
    assert await world.active(DB) == ["first"]


async def test_a_job_that_needs_the_group_holds_nobody_up_meanwhile(world: ViewScenario) -> None:
    await reopened(world)
    await world.spread("needs", groups=(DB,))
    await world.spread("free")

    meanwhile = await world.plan()
    world.later(FULL_MS)

    assert meanwhile == ["free"]
    assert await world.plan() == ["needs", "free"]


async def reopened(world: ViewScenario) -> None:
    await take(world, "mine")
    await world.open(seeds=world.seeds(), generation="g1", leased=(DB,), leased_ms=FULL_MS)
    await world.worker()

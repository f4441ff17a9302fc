"""Many at once on a real server: the last place, the last of a day and a ticket have one winner, and limits hold."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from random import Random
from typing import Any

import pytest_asyncio
from redis.asyncio import Redis

from libs.capacity.answers import Busy, BytesFull, Deferred, Folded, Reserved, TooFast
from libs.capacity.rooms import Room
from libs.capacity.rows import SetLimit
from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from tests.conformance.view_log import Details
from tests.conformance.view_scenario import LEASE_MS, TODAY, ViewScenario, request, row
from tests.fixtures.stores import EPOCH
from tests.fixtures.suites import some_or_many

some_or_many_rounds = some_or_many("rounds", 50, 1_000, suite="races")
SEED = 20_241_004


@pytest_asyncio.fixture
async def rivals(redis_url: str) -> AsyncIterator[tuple[RedisView, RedisView]]:
    """Two services with connections of their own."""
    clients: list[Redis] = [open_client(redis_url) for _ in range(2)]
    views = [RedisView(client, shard="main", epoch=EPOCH) for client in clients]
    yield views[0], views[1]
    for view, client in zip(views, clients, strict=True):
        await view.close()
        await client.aclose()


@pytest_asyncio.fixture
async def world(rivals: tuple[RedisView, RedisView]) -> ViewScenario:
    world = ViewScenario(rivals[0])
    await world.open()
    await world.worker()
    return world


async def both(*asked: Awaitable[Any]) -> list[Any]:
    return await asyncio.gather(*asked)


async def lapse(world: ViewScenario) -> None:
    """What the winner reserved and never appended is taken back, so that the next round is about the same place."""
    world.later(60_000)
    await world.view.sweep(now_ms=world.now_ms)


@some_or_many_rounds
async def test_two_admissions_at_the_last_of_the_hundred_places_are_one(
    rivals: tuple[RedisView, RedisView], world: ViewScenario, rounds: int
) -> None:
    await world.spread(*(f"j{number}" for number in range(99)))

    for round_ in range(rounds):
        asked = [request(f"r{round_}-{number}", user=f"u{number}", cap=100) for number in range(2)]
        answers = await both(*(view.reserve(ask, now_ms=world.now_ms) for view, ask in zip(rivals, asked, strict=True)))

        assert Counter(map(type, answers)) == {Reserved: 1, Busy: 1}
        assert Busy(100, 100) in answers
        await lapse(world)
    assert len(await world.names()) == 99


@some_or_many_rounds
async def test_two_admissions_at_the_last_place_of_a_day_are_one_and_the_other_is_tomorrow(
    rivals: tuple[RedisView, RedisView], world: ViewScenario, rounds: int
) -> None:
    for number in range(4):
        await world.submit(f"j{number}")

    for round_ in range(rounds):
        asked = [request(f"r{round_}-{number}", per_day=5, lapse_ms=1) for number in range(2)]
        answers = await both(*(view.reserve(ask, now_ms=world.now_ms) for view, ask in zip(rivals, asked, strict=True)))

        assert Counter(map(type, answers)) == {Reserved: 1, Deferred: 1}
        assert Deferred(TODAY + 1) in answers
        await world.view.sweep(now_ms=world.now_ms + 1)
    assert await world.view.day_used("ann", TODAY) == 4


@some_or_many_rounds
async def test_two_jobs_put_off_to_the_last_place_of_a_day_are_given_two_days(
    rivals: tuple[RedisView, RedisView], world: ViewScenario, rounds: int
) -> None:
    await world.spread("a", "b", user="ann")
    for round_ in range(rounds):
        answers = await both(
            *(ViewScenario.defer(_over(world, view), job, per_day=1) for view, job in zip(rivals, "ab", strict=True))
        )

        assert sorted(answer.day for answer in answers) == [TODAY + 1, TODAY + 2], round_
        await world.view.sweep(now_ms=world.now_ms + 60_000)


def _over(world: ViewScenario, view: RedisView) -> ViewScenario:
    other = ViewScenario(view)
    other.rows, other.now_ms = world.rows, world.now_ms
    return other


@some_or_many_rounds
async def test_of_two_requests_for_the_last_of_a_users_minute_one_is_too_fast(
    rivals: tuple[RedisView, RedisView], world: ViewScenario, rounds: int
) -> None:
    for round_ in range(rounds):
        asked = [request(f"r{round_}-{number}", cost_ms=60_000, per_day=10**6, cap=10**6) for number in range(2)]
        answers = await both(*(view.reserve(ask, now_ms=world.now_ms) for view, ask in zip(rivals, asked, strict=True)))

        assert Counter(map(type, answers)) == {Reserved: 1, TooFast: 1}
        await lapse(world)


@some_or_many_rounds
async def test_of_two_submissions_at_the_last_bytes_of_a_share_one_is_refused(
    rivals: tuple[RedisView, RedisView], world: ViewScenario, rounds: int
) -> None:
    room = Room(share=1_000, crowded_at=10_000, bucket=20_000)
    for round_ in range(rounds):
        asked = [request(f"r{round_}-{n}", input_bytes=501, room=room, per_day=10**6, cap=10**6) for n in range(2)]
        answers = await both(*(view.reserve(ask, now_ms=world.now_ms) for view, ask in zip(rivals, asked, strict=True)))

        assert Counter(map(type, answers)) == {Reserved: 1, BytesFull: 1}
        await lapse(world)


@some_or_many_rounds
async def test_of_two_submissions_at_the_last_bytes_of_the_bucket_one_is_refused(
    rivals: tuple[RedisView, RedisView], world: ViewScenario, rounds: int
) -> None:
    room = Room(share=1_000, crowded_at=999, bucket=1_000)
    for round_ in range(rounds):
        asked = [
            request(f"r{round_}-{n}", user=f"user-{n}", input_bytes=501, room=room, per_day=10**6, cap=10**6)
            for n in range(2)
        ]
        answers = await both(*(view.reserve(ask, now_ms=world.now_ms) for view, ask in zip(rivals, asked, strict=True)))

        assert Counter(map(type, answers)) == {Reserved: 1, BytesFull: 1}
        await lapse(world)


@some_or_many_rounds
async def test_of_many_who_show_one_ticket_one_is_let_in(rivals: tuple[RedisView, RedisView], rounds: int) -> None:
    for round_ in range(rounds):
        digest = f"{round_:064x}"
        await rivals[0].keep_ticket(digest, "{}", user="ann", most=rounds, ttl_ms=30_000)

        taken = await both(*(view.take_ticket(digest) for view in rivals * 2))

        assert sorted(map(str, taken)) == ["None", "None", "None", "{}"]


@some_or_many_rounds
async def test_of_many_who_ask_for_the_last_of_a_users_tickets_one_has_it(
    rivals: tuple[RedisView, RedisView], rounds: int
) -> None:
    for round_ in range(rounds):
        user, asked = f"user-{round_}", enumerate(rivals * 2)
        given = await both(
            *(view.keep_ticket(f"{n:064x}", "{}", user=user, most=1, ttl_ms=30_000) for n, view in asked)
        )

        assert given.count(None) == 1, round_


@some_or_many_rounds
async def test_under_a_limit_lowered_below_what_runs_nothing_starts_until_below_it_and_nothing_is_ended(
    rivals: tuple[RedisView, RedisView], world: ViewScenario, rounds: int
) -> None:
    """One scheduler claims and dispatches while an operator changes the limit; in either order the limit holds."""
    random, group, limit = Random(SEED), "group:shop:db", 1
    for round_ in range(rounds):
        await _top_up(world, round_, group)
        lowered = world.write(order=SetLimit(group, random.randint(0, 4)))
        running = {job for job, each in world.rows.items() if each.holder}

        claims = [world.claim_of(job) for job, each in world.rows.items() if each.place is not None]
        asked: Details = {"lapse_ms": 60_000, "now_ms": world.now_ms}

        early, folded = await both(
            rivals[1].claim(claims, applied=lowered.prev, **asked),
            rivals[0].fold([lowered], lease_ms=LEASE_MS, now_ms=world.now_ms),
        )

        assert isinstance(folded, Folded)
        before, limit = limit, world.orders.limits[group]
        assert len(early.held) in (0, max(0, before - len(running)))
        late = await rivals[1].claim(claims, applied=lowered.seq, drop=early.held, **asked)
        assert len(late.held) == max(0, limit - len(running))
        assert set(await world.active(group)) == {*late.held, *(world.rows[job].holder for job in running)}
        fits = [holder.rpartition(":")[0] for holder in late.held]
        heard = await world.worker(holders=tuple(f"{job}:1" for job in running))
        assert (len(heard.kept), heard.cancel, heard.not_yours) == (len(running), (), ())
        await world.dispatch(*fits)
        if running and random.random() < 0.6:
            await world.finish(random.choice(sorted(running)))


async def _top_up(world: ViewScenario, round_: int, group: str) -> None:
    """Always more waiting than a limit could let go."""
    for number in range(5 - sum(each.place is not None for each in world.rows.values())):
        job = replace(
            row(f"j{round_}-{number}", user=f"u{round_}-{number}", project=f"p{round_}-{number}", groups=(group,))
        )
        await world.fold(replace(job, place=(round_ * 10 + number + 1) * 2**16, arrival=round_ * 10 + number + 1))

"""Who comes in, in which order and how many at once: the product's rules on the whole system, as its users see them.

The numbers of the policy are small here, and many tests hold the queue still by pausing it: so what is shown is exact.
Each test has users and projects of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import pytest_asyncio

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from libs.runtime.keys import KeyPair, keep_keys, sign_token
from tests.fixtures.customers import LONG, QUICK, Customers, problem
from tests.fixtures.installation import Installation, installed

POLICY = """
[pools]
names = ["gpu"]  # which nobody serves

[queue]
cap = 12
user_share = 6
horizon_days = 2

[order]
max_passed = 2

[tiers.bootstrapper]
jobs_per_day = 3

[submissions]
max_input_bytes = 2000
user_input_bytes = 41000
"""
SLOTS = 8


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installed(tmp_path_factory.mktemp("rules"), policy=POLICY, workers=1, slots=SLOTS) as there:
        yield there


@pytest_asyncio.fixture
async def customers(there: Installation) -> AsyncIterator[Customers]:
    async with Customers(there) as customers:
        yield customers


# ── admission ─────────────────────────────────────────────────────────────────


async def test_beyond_the_cap_it_is_said_when_to_come_back(customers: Customers) -> None:
    await customers.paused()
    one, two, late = [await customers(name) for name in ("cap-1", "cap-2", "cap-3")]
    for user in (one, two):
        for _ in range(6):
            await user.submitted()

    refused = await late.asked()
    told = problem(refused, 503, "busy")

    minutes = told["retry_after_minutes"]
    assert minutes % 15 == 0  # (12 - 12 + 1) × an average below 600 s ÷ 8 workers' slots, rounded up
    assert minutes == 15
    assert told["detail"] == "system busy, try again in 15 minutes"
    assert refused.headers["retry-after"] == "900"
    assert await late.unfinished() == []


async def test_nobody_holds_more_than_their_share_of_the_queue(customers: Customers) -> None:
    await customers.paused()
    greedy, other = await customers("share-1"), await customers("share-2")
    for _ in range(6):
        await greedy.submitted()

    told = problem(await greedy.asked(), 429, "share")

    assert "you hold 6 places of the queue" in told["detail"]
    await other.submitted()


async def test_nobody_holds_more_than_their_share_of_inputs(customers: Customers) -> None:
    await customers.paused()
    greedy, other = await customers("bytes-1"), await customers("bytes-2")
    large = {"prompt": "x" * 1800}
    phases = [{"pipeline": "rehearsal", "input": LONG | large}] * 20
    flow = await greedy.client.post("/workflows", json={"project_id": "shop", "phases": phases})
    assert flow.status_code == 202, flow.text

    body = {"project_id": "shop", "pipeline": "rehearsal", "input": LONG | large}
    tried = await greedy.client.post("/jobs?dry_run=true", json=body)
    refused = await greedy.asked(LONG | large)
    told, same = problem(refused, 429, "input-share"), problem(tried, 429, "input-share")

    assert (told["held_bytes"], told["most_bytes"]) == (same["held_bytes"], 41000)
    assert told["held_bytes"] > 36_000
    assert int(refused.headers["retry-after"]) > 0
    await other.submitted(LONG | large)


async def test_jobs_over_the_daily_cap_are_accepted_for_the_next_days_and_past_the_horizon_refused(
    customers: Customers,
) -> None:
    await customers.paused()
    user = await customers("day-1", tier=Tier.BOOTSTRAPPER)
    jobs = [(await user.asked()).json() for _ in range(9)]
    refused = await user.asked()

    today = datetime.now(UTC).date()
    days = [job["scheduled_for"] and datetime.fromisoformat(job["scheduled_for"]) for job in jobs]
    assert [job["status"] for job in jobs] == ["queued"] * 3 + ["scheduled"] * 6
    assert [(day.date() - today).days for day in days[3:]] == [1, 1, 1, 2, 2, 2]
    assert all(day.hour == 0 or (day.hour, day.minute, day.second) == (1, 0, 0) for day in days[3:])
    assert jobs[3]["message"] == "Scheduled for tomorrow"
    assert jobs[3]["waiting_on"][0]["reason"] == "daily_window"  # the pause comes after it, once the view has the job
    assert [job["usage"]["jobs_remaining"] for job in jobs] == [2, 1, 0] + [0] * 6
    assert f"every day up to {today + timedelta(days=2)}" in problem(refused, 429, "horizon")["detail"]
    assert int(refused.headers["retry-after"]) <= 86_400


async def test_what_was_cancelled_before_it_started_gives_its_place_of_the_day_back(customers: Customers) -> None:
    await customers.paused()
    user = await customers("refund-1", tier=Tier.BOOTSTRAPPER)
    first, *_ = [await user.submitted() for _ in range(3)]

    await user.client.post(f"/jobs/{first}/cancel")

    async def given_back() -> bool:
        return (await user.client.get("/usage")).json()["jobs_used"] == 2

    await eventually(given_back)
    assert (await user.asked()).json()["status"] == "queued"


async def test_scheduled_jobs_take_no_place_in_the_queue(customers: Customers) -> None:
    await customers.paused()
    user = await customers("places-1", tier=Tier.BOOTSTRAPPER)
    for _ in range(5):
        await user.submitted()

    async def three() -> bool:
        return (await customers.ops.client.get("/queue")).json()["length"] == 3

    await eventually(three)


async def test_a_free_place_goes_to_the_job_that_waits_for_room_and_to_nobody_new(customers: Customers) -> None:
    await customers.paused()
    one, two, released = [await customers(name) for name in ("room-1", "room-2", "room-3")]
    soon = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    waits = (await released.asked(run_at=soon)).json()
    queued = [[await user.submitted() for _ in range(6)] for user in (one, two)]
    await released.waits_for(waits["id"], "room")

    await one.client.post(f"/jobs/{queued[0][0]}/cancel")
    entered = await released.until(waits["id"], "queued")

    assert waits["status"] == "scheduled"
    assert entered["queue"]["position"] == 12
    problem(await one.asked(), 503, "busy")


async def test_of_a_batch_beyond_a_minutes_allowance_the_later_ones_say_when_to_come_back(
    customers: Customers,
) -> None:
    user = await customers("batch-1", tier=Tier.CTO_SCALE)
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    job = {"project_id": "batch", "pipeline": "rehearsal", "input": LONG, "run_at": tomorrow}

    answer = await user.client.post("/jobs/batch", json={"jobs": [job] * 75})
    await user.client.post("/jobs/cancel", json={"project": "batch"})

    results = answer.json()["results"]
    taken = [each["status"] for each in results].count(202)
    late = [each["problem"] for each in results if each["status"] == 429]
    assert taken in range(60, 75), "60 a minute at once, and one more for each second that it took"
    assert len(late) == 75 - taken
    assert {each["type"] for each in late} == {"/problems/too-fast"}
    assert all(each["retry_after_s"] == 1 for each in late)


async def test_a_repeated_key_is_the_same_job_and_takes_no_second_place(customers: Customers) -> None:
    await customers.paused()
    user, other = await customers("key-1"), await customers("key-2")
    key, body = {"Idempotency-Key": "a-key"}, {"project_id": "shop", "pipeline": "rehearsal", "input": LONG}

    answers = await asyncio.gather(*(user.client.post("/jobs", json=body, headers=key) for _ in range(5)))
    changed = await user.client.post("/jobs", json={**body, "priority": "low"}, headers=key)
    theirs = await other.client.post("/jobs", json=body, headers=key)

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    problem(changed, 422, "key-reused")
    assert theirs.json()["id"] != answers[0].json()["id"]
    assert (await user.client.get("/usage")).json()["jobs_used"] == 1
    assert len(await user.unfinished()) == 1


async def test_a_dry_run_says_the_same_and_leaves_nothing(customers: Customers) -> None:
    await customers.paused()
    user = await customers("dry-1")
    first = await user.submitted()
    await customers.ordered(first)

    body = {"project_id": "shop", "pipeline": "rehearsal", "input": LONG}
    dry = await user.client.post("/jobs?dry_run=true", json=body)

    assert (dry.status_code, dry.json()["queue"]["position"]) == (200, 2)
    assert [each["reason"] for each in dry.json()["waiting_on"]] == ["paused"]
    assert await user.unfinished() == [first]
    assert (await user.client.get("/usage")).json()["jobs_used"] == 1


# ── order ─────────────────────────────────────────────────────────────────────


async def test_a_new_job_moves_ahead_by_its_tiers_boost_and_nobody_is_passed_too_often(customers: Customers) -> None:
    await customers.paused()
    plain = await customers("boost-0", tier=Tier.BOOTSTRAPPER)
    partner, cto = await customers("boost-2"), await customers("boost-5", tier=Tier.CTO_SCALE)

    a, b, c = [await plain.submitted() for _ in range(3)]
    first = await partner.submitted()  # passes two
    await customers.ordered(a, first, b, c)
    second = await cto.submitted()  # passes all of a lower boost, the partner's too
    await customers.ordered(second, a, first, b, c)
    third = await cto.submitted()  # b and c were passed twice: nobody passes them any more
    await customers.ordered(second, a, first, b, c, third)
    low, high = await plain.submitted(priority="low"), await partner.submitted(priority="high")

    await customers.ordered(high, second, a, first, b, c, third)
    place = (await plain.job(b))["queue"]
    assert (place["position"], place["position_original"], place["passed_by"]) == (5, 2, 2)
    assert place["position_message"] == "Originally #2, currently #5 (3 priority jobs inserted ahead)"
    assert (await plain.job(low))["status"] == "scheduled"  # its fourth of the day


async def test_a_class_goes_before_every_lower_one(customers: Customers) -> None:
    await customers.paused()
    cto = await customers("class-1", tier=Tier.CTO_SCALE)

    jobs = {name: await cto.submitted(priority=name) for name in ("background", "normal", "low", "urgent", "high")}

    await customers.ordered(*(jobs[name] for name in ("urgent", "high", "normal", "low", "background")))


async def test_a_full_user_holds_nobody_else_up_and_keeps_their_place(customers: Customers) -> None:
    full, other = await customers("full-1", tier=Tier.BOOTSTRAPPER), await customers("full-2")
    running = [await full.submitted(project_id="full-1") for _ in range(2)]
    for job in running:
        await full.until(job, "code")
    blocked = await full.submitted(project_id="full-1")

    await other.until(await other.submitted(QUICK, project_id="full-2"), "ready")

    told = (await full.job(blocked))["waiting_on"][0]
    assert (told["reason"], told["limit"], told["active"], sorted(told["jobs"])) == (
        "user_limit",
        2,
        2,
        sorted(running),
    )
    await full.client.post(f"/jobs/{running[0]}/cancel")
    await full.until(blocked, "code")


async def test_a_users_tier_is_that_of_their_newest_submission_for_all_their_jobs(customers: Customers) -> None:
    before = await customers("tier-1", tier=Tier.BOOTSTRAPPER)
    running = [await before.submitted(project_id=f"tier-{number}") for number in range(3)]
    for job in running[:2]:
        await before.until(job, "code")
    await before.waits_for(running[2], "user_limit")

    after = await customers("tier-1", tier=Tier.PARTNER)
    newest = await after.submitted(project_id="tier-4", priority="low")  # behind all of the others

    await before.until(running[2], "code")
    await after.waits_for(newest, "user_limit")


async def test_a_projects_limit_is_that_of_the_tier_that_wants_to_start(customers: Customers) -> None:
    one, two, cto = [
        await customers(name, tier=tier, projects=["shared"])
        for name, tier in (
            ("project-1", Tier.BOOTSTRAPPER),
            ("project-2", Tier.BOOTSTRAPPER),
            ("project-3", Tier.CTO_SCALE),
        )
    ]
    for _ in range(2):
        await one.until(await one.submitted(project_id="shared"), "code")

    third = await two.submitted(project_id="shared")
    await two.waits_for(third, "project_limit")
    theirs = await cto.submitted(project_id="shared")

    await cto.until(theirs, "code")
    told = (await two.job(third))["waiting_on"][0]
    assert (told["limit"], told["active"], told["jobs"]) == (2, 3, [])


async def test_an_operator_moves_a_job_and_gives_it_another_class(customers: Customers) -> None:
    await customers.paused()
    user = await customers("move-1")
    first, second, third = [await user.submitted() for _ in range(3)]
    await customers.ordered(first, second, third)

    moved = await customers.ops.client.post(
        "/queue/move", json={"job_id": third, "before": first, "reason": "blocks the release"}
    )
    await customers.ordered(third, first, second)
    raised = await customers.ops.client.patch(f"/jobs/{second}", json={"priority": "urgent", "reason": "a demo"})
    await customers.ordered(second, third, first)

    assert (moved.status_code, raised.status_code) == (200, 200)
    audit = (await customers.ops.client.get("/audit")).json()
    said = [(each["act"], each["by"], each["reason"]) for each in audit if each["about"] in (second, third)]
    assert said == [("moved", "ops", "blocks the release"), ("reprioritized", "ops", "a demo")]


async def test_order_limits_and_pauses_survive_the_loss_of_the_view(customers: Customers, there: Installation) -> None:
    await customers.paused()
    user = await customers("loss-1")
    first, second, third = [await user.submitted() for _ in range(3)]
    await customers.ordered(first, second, third)
    await customers.ops.client.post("/queue/move", json={"job_id": third, "before": first})
    await customers.ops.client.put("/concurrency/user:loss-1", json={"limit": 7})
    await customers.ordered(third, first, second)

    await there.kill("valkey")

    async def back() -> bool:
        answer = await customers.ops.client.get("/queue")
        return answer.status_code == 200 and len(answer.json()["jobs"]) == 3

    await eventually(back, every_s=0.2)
    assert await customers.order() == [third, first, second]
    assert (await customers.ops.client.get("/concurrency/user:loss-1")).json()["limit"] == 7
    assert [each["scope"] for each in (await customers.ops.client.get("/queue")).json()["paused"]] == ["all"]


# ── groups ────────────────────────────────────────────────────────────────────


async def test_a_named_group_is_its_projects_own_and_the_first_submission_sets_its_limit(customers: Customers) -> None:
    one, two = await customers("group-1"), await customers("group-2")
    running = await one.submitted(project_id="g1", concurrency_group="db", concurrency_limit=1)
    await one.until(running, "code")

    waits = await one.submitted(project_id="g1", concurrency_group="db", concurrency_limit=9)
    elsewhere = await two.submitted(project_id="g2", concurrency_group="db")

    await two.until(elsewhere, "code")
    await one.waits_for(waits, "group_limit")
    status = (await customers.ops.client.get("/concurrency/group:group-1:g1:db")).json()
    assert (status["limit"], status["active"], [each["job_id"] for each in status["holders"]]) == (1, 1, [running])


async def test_a_project_that_a_token_does_not_claim_is_its_users_own(customers: Customers) -> None:
    ann, amy = [await customers(name, projects=["common"]) for name in ("own-1", "own-2")]
    bob = await customers("own-3")
    asked: dict[str, Any] = {"project_id": "common", "concurrency_group": "db", "concurrency_limit": 1}
    theirs = await ann.submitted(**asked)
    await ann.until(theirs, "code")

    waits, own = await amy.submitted(**asked), await bob.submitted(**asked)

    await bob.until(own, "code")
    await amy.waits_for(waits, "group_limit")
    await customers.paused("project:common")
    await bob.client.post(f"/jobs/{own}/cancel")
    again = await bob.submitted(**asked)
    await bob.until(again, "code")
    await amy.waits_for(waits, "paused")
    await customers.paused("project:own-3:common")
    last = await bob.submitted(**asked)
    await bob.waits_for(last, "paused")


async def test_a_limit_below_what_runs_ends_nothing_and_starts_nothing(customers: Customers) -> None:
    user = await customers("lower-1")
    running = [await user.submitted(concurrency_group="low", concurrency_limit=2) for _ in range(2)]
    for job in running:
        await user.until(job, "code")

    lowered = await customers.ops.client.put("/concurrency/group:lower-1:shop:low", json={"limit": 1})
    waits = await user.submitted(concurrency_group="low")
    await user.waits_for(waits, "group_limit")
    await user.client.post(f"/jobs/{running[0]}/cancel")
    await user.until(running[0], "cancelled")

    assert lowered.json()["limit"] == 1
    assert (await user.job(running[1]))["status"] == "code"
    assert (await user.job(waits))["status"] == "queued"
    await user.client.post(f"/jobs/{running[1]}/cancel")
    await user.until(waits, "code")


async def test_a_job_of_a_pool_without_a_worker_says_so_and_holds_nobody_up(customers: Customers) -> None:
    user, other = await customers("pool-1"), await customers("pool-2")
    stuck = await user.submitted(pool="gpu")

    await other.until(await other.submitted(QUICK), "ready")

    await user.waits_for(stuck, "no_worker")
    assert (await user.job(stuck))["queue"]["position"] == 1


# ── what is wrong ─────────────────────────────────────────────────────────────

GOOD: dict[str, Any] = {"project_id": "shop", "pipeline": "rehearsal", "input": QUICK}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"priority": "urgent"}, "priority"),
        ({"priority": "top"}, "priority"),
        ({"concurrency_group": "no such!"}, "concurrency_group"),
        ({"concurrency_group": "llm:openai"}, "concurrency_group"),
        ({"concurrency_group": "db", "concurrency_limit": 0}, "concurrency_limit"),
        ({"concurrency_group": "db", "concurrency_limit": -1}, "concurrency_limit"),
        ({"concurrency_limit": 3}, "concurrency_limit"),
        ({"queue_ttl_s": 0}, "queue_ttl_s"),
        ({"run_timeout_s": 10**6}, "run_timeout_s"),
        ({"run_at": "2026-01-01T00:00:00"}, "run_at"),
        ({"run_at": "2100-01-01T00:00:00Z"}, "run_at"),
        ({"notify_url": "https://hooks.example.com"}, "notify_url"),
        ({"tier": "cto_scale"}, "tier"),
    ],
)
async def test_a_submission_that_may_not_be_is_refused_by_its_field(
    customers: Customers, body: dict[str, Any], field: str
) -> None:
    user = await customers("bad-1")

    told = problem(await user.client.post("/jobs", json=GOOD | body), 422, "invalid")

    assert [error["field"] for error in told["errors"]] == [field]
    assert told["detail"].startswith(f"{field}: ")
    assert await user.unfinished() == []


@pytest.mark.parametrize("limit", [0, -1, 10**6, "many", None])
async def test_a_limit_that_is_none_changes_nothing(customers: Customers, limit: Any) -> None:
    before = (await customers.ops.client.get("/concurrency/workflows")).json()["limit"]

    told = problem(await customers.ops.client.put("/concurrency/workflows", json={"limit": limit}), 422, "invalid")

    assert told["detail"].startswith("limit: ")
    assert (await customers.ops.client.get("/concurrency/workflows")).json()["limit"] == before


async def test_a_move_beside_who_is_not_queued_changes_nothing(customers: Customers) -> None:
    await customers.paused("user:beside-1")
    waiting, runs = await customers("beside-1"), await customers("beside-2")
    first, second = [await waiting.submitted() for _ in range(2)]
    running = await runs.submitted()
    await runs.until(running, "code")
    await customers.ordered(first, second)

    async def moved(**place: str) -> httpx.Response:
        return await customers.ops.client.post("/queue/move", json={"job_id": second, **place})

    gone = problem(await moved(before=running), 409, "neighbour-gone")
    itself = problem(await moved(before=second), 422, "invalid")
    both = problem(await moved(before=first, after=first), 422, "invalid")
    underway = problem(
        await customers.ops.client.post("/queue/move", json={"job_id": running, "before": first}), 409, "underway"
    )

    assert gone["detail"] == f"job {running} is not in the queue: name one that is"
    assert "name another one" in itself["detail"]
    assert "exactly one of before and after" in both["detail"]
    assert "only one that waits to start" in underway["detail"]
    assert await customers.order() == [first, second]


async def test_nobody_gets_in_with_a_token_that_is_not_good(there: Installation) -> None:
    pair, stranger = keep_keys(there.state / "keys"), KeyPair.generate()
    tokens = {
        "expired": signed(pair, ttl_s=-60),
        "forged": signed(stranger),
        "another's": signed(pair, audience="elsewhere"),
        "unknown tier": signed(pair, tier=SimpleNamespace(value="gold")),
    }
    async with httpx.AsyncClient(base_url=f"{there.up.url}/v1", timeout=30) as client:
        answers = {
            name: await client.post("/jobs", json=GOOD, headers={"Authorization": f"Bearer {token}"})
            for name, token in tokens.items()
        }

    said = {name: problem(answer, 401, "unauthorized")["detail"] for name, answer in answers.items()}
    assert "expired" in said["expired"]
    assert "tier" in said["unknown tier"]


def signed(pair: KeyPair, *, tier: Any = Tier.PARTNER, ttl_s: int = 60, audience: str = "headgate") -> str:
    now_ms = time.time_ns() // 1_000_000
    scope = "jobs:read jobs:write"
    return sign_token(
        pair, user="eve", tier=tier, scope=scope, issuer="headgate", audience=audience, now_ms=now_ms, ttl_s=ttl_s
    )

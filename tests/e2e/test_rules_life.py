"""What becomes of jobs that are in: the product's rules on the whole system, where an hour takes less than a second."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.fixtures.customers import LONG, QUICK, Customer, Customers, problem
from tests.fixtures.installation import Installation, installed

POLICY = """
[pools]
names = ["gpu"]  # which nobody serves

[confirmation]
reminders_s = [1.5, 3]
timeout_s = 12

[order]
ageing_after_s = 0.7

[runs]
max_lost = 1

[leases]
job_s = 8
heartbeat_s = 0.5
leader_s = 4
leader_heartbeat_s = 0.4

[providers.limits]
ollama = 1
"""
IMPATIENT = {"HEADGATE_OUTAGE_PATIENCE_S": "1"}
LEASE_S = 8
ASKS: dict[str, Any] = QUICK | {"failing_cycles": 99}
CANCELLED_WITHIN_S = 30.0  # a second with the heartbeats of this policy; on a machine under full load


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    folder = tmp_path_factory.mktemp("life")
    async with installed(folder, policy=POLICY, workers=1, slots=6, environ=IMPATIENT) as there:
        yield there


@pytest_asyncio.fixture
async def customers(there: Installation) -> AsyncIterator[Customers]:
    async with Customers(there) as customers:
        yield customers


async def confirmed(user: Customer, job_id: str) -> int:
    return (await user.client.post(f"/jobs/{job_id}/confirm")).status_code


# ── questions ─────────────────────────────────────────────────────────────────


async def test_a_question_is_repeated_and_unanswered_it_ends_the_job(customers: Customers) -> None:
    user = await customers("question-1", tier=Tier.BOOTSTRAPPER)
    job = await user.submitted(ASKS)
    asked = await user.until(job, "awaiting_confirmation")

    failed = await user.until(job, "failed")
    events = await user.events(job)

    assert asked["message"] == "2 of 2 iterations used. Continue for 2 more?"
    assert [each["reason"] for each in asked["waiting_on"]] == ["confirmation"]
    assert [each["event"] for each in events][-4:] == [
        "awaiting_confirmation",
        "confirmation_reminder",
        "confirmation_reminder",
        "failed",
    ]
    assert (events[-1]["fault"], failed["error"]["summary"]) == (
        "timeout",
        "Nobody answered in time whether the job should continue.",
    )
    assert failed["usage"]["jobs_used"] == 1  # its own place of the day stays taken
    problem(await user.client.post(f"/jobs/{job}/confirm"), 409, "not-asked")


async def test_each_answer_grants_one_batch_up_to_the_hard_cap_where_it_fails_and_says_so(
    customers: Customers,
) -> None:
    user = await customers("cap-1", tier=Tier.BOOTSTRAPPER)
    job = await user.submitted(ASKS)
    early = await user.client.post(f"/jobs/{job}/confirm")
    used: list[int] = []
    for _ in range(2):
        used.append((await user.until(job, "awaiting_confirmation"))["iterations"]["used"])
        assert (await confirmed(user, job), await confirmed(user, job)) == (202, 409)

    failed = await user.until(job, "failed")

    assert "nothing was changed" in problem(early, 409, "not-asked")["detail"]
    assert used == [2, 4]
    assert (failed["iterations"]["used"], failed["usage"]["iterations_remaining"]) == (6, 0)
    assert failed["error"]["summary"] == "The checks still fail after 6 of 6 iterations."


async def test_a_job_that_asks_holds_no_slot(customers: Customers) -> None:
    user = await customers("asks-1", tier=Tier.BOOTSTRAPPER)
    job = await user.submitted(ASKS)
    await user.until(job, "awaiting_confirmation")

    async def free() -> bool:
        return (await customers.ops.client.get("/concurrency/user:asks-1")).json()["active"] == 0

    await eventually(free)


async def test_a_users_new_tier_holds_for_the_iterations_of_the_jobs_they_had_before(customers: Customers) -> None:
    await customers.paused("user:tier-1")
    before = await customers("tier-1", tier=Tier.BOOTSTRAPPER)
    job = await before.submitted(ASKS)
    after = await customers("tier-1", tier=Tier.PARTNER)
    await after.submitted(pool="gpu")
    await after.waits_for(job, "paused")

    await customers.resumed("user:tier-1")
    asked = await after.until(job, "awaiting_confirmation")

    assert asked["message"] == "3 of 3 iterations used. Continue for 3 more?"
    assert asked["usage"]["iterations_remaining"] == 6


async def test_a_stage_asks_and_its_answer_outlives_the_worker_that_would_have_had_it(
    there: Installation, customers: Customers
) -> None:
    user = await customers("ask-1")
    job = await user.submitted(QUICK | {"ask_at": "code", "log_lines": 2, "stages": {"code": 2}})
    question = (await user.until(job, "awaiting_confirmation"))["question"]
    path, red = f"/jobs/{job}/answer", {"question": question["id"], "answer": "red"}
    wrong = await user.client.post(path, json=red | {"answer": "grey"})
    await customers.paused("user:ask-1")
    right, late = await user.client.post(path, json=red), await user.client.post(path, json=red)
    await there.kill("worker")
    await customers.resumed("user:ask-1")
    async with user.client.stream("GET", f"/jobs/{job}/stream") as stream:
        told = [line async for line in stream.aiter_lines() if line.startswith(("event: progress", "event: end"))]

    await user.until(job, "ready", "failed")

    assert told[0] == "event: progress"
    assert (question["text"], question["choices"]) == ("Question 1: which colour?", ["red", "green", "blue"])
    assert "red, green, blue" in problem(wrong, 422, "invalid")["detail"]
    assert (right.status_code, right.json()["status"]) == (202, "queued")
    problem(late, 409, "not-asked")
    assert "the answer to question 1 is red" in (await user.client.get(f"/jobs/{job}/log")).text
    story = [each["event"] for each in await user.events(job) if each["event"] not in ("stage", "started")]
    assert story == ["queued", "dispatched", "awaiting_confirmation", "answered", "dispatched", "ready"]


# ── time ──────────────────────────────────────────────────────────────────────


async def test_a_job_that_waits_rises_class_by_class_and_never_above_high(customers: Customers) -> None:
    user = await customers("age-1")
    job = await user.submitted(pool="gpu", priority="background")

    async def risen() -> bool:
        return (await user.job(job))["priority"] == "high"

    await eventually(risen, every_s=0.1)
    risen_at = time.monotonic()
    await eventually(lambda: time.monotonic() - risen_at > 2)  # two more of its hours
    events = [each for each in await user.events(job) if each["event"] == "reprioritized"]
    assert [(each["from"], each["to"], each["reason"]) for each in events] == [
        ("background", "low", "aged"),
        ("low", "normal", "aged"),
        ("normal", "high", "aged"),
    ]


async def test_a_job_ends_that_waited_or_ran_for_longer_than_it_may(customers: Customers) -> None:
    user = await customers("time-1")
    group: dict[str, Any] = {"concurrency_group": "one", "concurrency_limit": 1}
    holds = await user.submitted(**group)
    await user.until(holds, "code")
    waits, runs = await user.submitted(queue_ttl_s=1, **group), await user.submitted(run_timeout_s=1)

    ended = [await user.until(job, "failed") for job in (waits, runs)]

    assert [job["error"]["summary"] for job in ended] == [
        "The job waited too long in the queue.",
        ended[1]["error"]["summary"],
    ]
    assert "deadline" in ended[1]["error"]["summary"] or "too long" in ended[1]["error"]["summary"]
    assert [(await user.events(job["id"]))[-1]["fault"] for job in ended] == ["timeout", "timeout"]


async def test_a_job_that_runs_for_longer_than_its_lease_keeps_it(customers: Customers) -> None:
    """By its worker's heartbeats, each of which is answered: a lease ends where none is."""
    user = await customers("lease-1")
    job = await user.submitted({"stages": {"scaffold": 0, "code": LEASE_S * 1.5}})

    done = await user.until(job, "ready", "failed")

    assert done["status"] == "ready"
    assert [each["event"] for each in await user.events(job)].count("started") == 1


async def test_a_job_with_a_time_of_its_own_enters_the_queue_then(customers: Customers) -> None:
    user = await customers("later-1")
    at = datetime.now(UTC) + timedelta(seconds=2)
    job = (await user.asked(QUICK, run_at=at.isoformat())).json()

    await user.until(job["id"], "ready")

    [first, entered, *_] = await user.events(job["id"])
    assert (job["status"], job["scheduled_for"]) == ("scheduled", at.isoformat().replace("+00:00", "Z"))
    assert (first["event"], entered["event"], entered["why"]) == ("scheduled", "queued", "released")
    assert datetime.fromisoformat(entered["at"]) >= at


# ── ends ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", ["queued", "scheduled", "waiting", "code", "awaiting_confirmation"])
async def test_a_job_is_cancelled_wherever_it_stands_and_frees_what_it_held(customers: Customers, state: str) -> None:
    user = await customers(f"cancel-{state}", tier=Tier.BOOTSTRAPPER)
    job = await brought_to(user, state)
    began = time.monotonic()

    answer = await user.client.post(f"/jobs/{job}/cancel", json={"reason": "not needed"})
    ended = await user.until(job, "cancelled")

    took_s = time.monotonic() - began
    assert (answer.status_code, ended["error"]) == (202, None)
    assert took_s < CANCELLED_WITHIN_S
    last = (await user.events(job))[-1]
    assert (last["event"], last["by"]) == ("cancelled", f"cancel-{state}")

    async def free() -> bool:
        group = (await customers.ops.client.get(f"/concurrency/user:cancel-{state}")).json()
        return job not in {holder["job_id"] for holder in group["holders"]}

    await eventually(free)
    problem(await user.client.post(f"/jobs/{job}/cancel"), 409, "ended")


async def brought_to(user: Customer, state: str) -> str:
    match state:
        case "queued":
            job = await user.submitted(pool="gpu")
        case "scheduled":
            job = await user.submitted(run_at=(datetime.now(UTC) + timedelta(days=1)).isoformat())
        case "waiting":
            phases = [{"pipeline": "rehearsal", "input": LONG}] * 2
            answer = await user.client.post("/workflows", json={"project_id": "shop", "phases": phases})
            job = answer.json()["phases"][1]["id"]
        case "code":
            job = await user.submitted()
        case _:
            job = await user.submitted(ASKS)
    await user.until(job, state)
    return job


async def test_what_has_ended_is_changed_by_nobody(customers: Customers) -> None:
    user = await customers("ended-1")
    job = await user.submitted(QUICK)
    await user.until(job, "ready")
    before = await user.events(job)

    answers = [
        (await user.client.post(f"/jobs/{job}/cancel"), "ended"),
        (await user.client.post(f"/jobs/{job}/confirm"), "not-asked"),
        (await user.client.post(f"/jobs/{job}/retry"), "not-over"),
        (await user.client.patch(f"/jobs/{job}", json={"priority": "low"}), "underway"),
    ]

    for answer, slug in answers:
        problem(answer, 409, slug)
    assert await user.events(job) == before


async def test_an_error_has_a_friendly_word_and_the_id_to_ask_with(customers: Customers) -> None:
    user = await customers("error-1")
    job = await user.submitted(QUICK | {"fail_at": "deps"})

    failed = await user.until(job, "failed")

    error = failed["error"]
    assert error["summary"]
    assert not re.search(r"(/[a-z_.]+){2,}|Traceback|Bearer|\d+\.\d+\.\d+\.\d+", error["summary"] + error["detail"])
    assert error["debug_id"] == failed["debug_id"]
    assert re.fullmatch("[0-9a-f]{32}", error["debug_id"])
    assert (await user.events(job))[-1]["fault"] == "job"


async def test_a_lost_workers_job_goes_on_from_its_work_and_lost_too_often_it_fails_and_costs_no_place(
    customers: Customers, there: Installation
) -> None:
    user = await customers("lost-1")
    job = await user.submitted({"stages": {"scaffold": 0.02, "code": 0.02, "deps": 600}})
    await user.until(job, "deps")

    for attempt in (1, 2):
        await there.kill("worker")
        if attempt == 1:
            await eventually(lambda: runs_again(user, job), every_s=0.2)
    failed = await user.until(job, "failed")

    events = await user.events(job)
    restored = [each["stage"] for each in events if each["event"] == "stage" and each["restored"]]
    assert [each["reason"] for each in events if each["event"] == "given_back"] == ["lost"]
    assert restored == ["scaffold", "code"]
    assert (events[-1]["fault"], failed["error"]["summary"]) == ("system", "The job's worker was lost too often.")
    assert failed["usage"]["jobs_used"] == 0


async def runs_again(user: Customer, job_id: str) -> bool:
    job = await user.job(job_id)
    return (job["status"], job["attempt"]) == ("deps", 2)


# ── workflows and providers ───────────────────────────────────────────────────


async def test_a_workflow_takes_one_place_and_ends_with_the_phase_that_fails(customers: Customers) -> None:
    user = await customers("flow-1")
    phases = [{"pipeline": "rehearsal", "input": work} for work in (QUICK, QUICK | {"fail_at": "code"}, QUICK)]

    workflow = (await user.client.post("/workflows", json={"project_id": "shop", "phases": phases})).json()
    last = await user.until(workflow["phases"][-1]["id"], "cancelled")

    shown = (await user.client.get(f"/workflows/{workflow['id']}")).json()
    assert [phase["status"] for phase in shown["phases"]] == ["ready", "failed", "cancelled"]
    assert shown["status"] == "failed"
    assert last["usage"]["jobs_used"] == 1


async def test_a_workflow_with_a_phase_that_may_not_be_is_not_there_at_all(customers: Customers) -> None:
    user = await customers("flow-2")
    good = {"pipeline": "rehearsal", "input": QUICK}

    wrong = await user.client.post("/workflows", json={"project_id": "shop", "phases": [good, good | {"pool": "a.b"}]})
    many = await user.client.post("/workflows", json={"project_id": "shop", "phases": [good] * 21})

    assert problem(wrong, 422, "invalid")["errors"][0]["field"] == "phases.1.pool"
    assert "at most 20 phases" in problem(many, 422, "invalid")["detail"]
    assert await user.unfinished() == []


async def test_a_provider_has_no_more_calls_at_once_than_its_limit(customers: Customers) -> None:
    user = await customers("llm-1")
    first, second = [await user.submitted(LONG | {"provider": "ollama"}) for _ in range(2)]
    for job in (first, second):
        await user.until(job, "code")

    async def status() -> tuple[int, int, set[str]]:
        found = (await customers.ops.client.get("/concurrency/llm:ollama")).json()
        return found["active"], found["waiting"], {each["job_id"] for each in found["holders"]}

    async def one_waits() -> bool:
        active, waiting, _ = await status()
        return (active, waiting) == (1, 1)

    await eventually(one_waits)
    [holder] = (await status())[2]
    await user.client.post(f"/jobs/{holder}/cancel")
    await user.until(holder, "cancelled")

    async def the_other_has_it() -> bool:
        return await status() == (1, 0, {first, second} - {holder})

    await eventually(the_other_has_it)
    assert (await customers.ops.client.get("/concurrency/llm:global")).json()["active"] == 1

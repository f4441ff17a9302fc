"""What clients of admission are answered, over the twins of log and view."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from headgate_contracts import Tier
from headgate_contracts.openapi import openapi_document
from libs.runtime.eventually import eventually
from libs.runtime.keys import KeyPair
from tests.fixtures.admission_api import JOB, OPERATOR, AdmissionApi, refused, submitted
from tests.fixtures.memory_admission import MemoryAdmission

WORKFLOW: dict[str, Any] = {"project_id": "shop", "phases": [{"input": {"phase": 1}}, {"input": {"phase": 2}}]}


@pytest.fixture
def api(admission: MemoryAdmission) -> AdmissionApi:
    return AdmissionApi(admission)


async def test_a_submission_is_answered_with_the_job_its_place_and_its_tag(api: AdmissionApi) -> None:
    async with api.client() as ann:
        answer = await ann.post("/v1/jobs", json=JOB)

    job = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert answer.headers["etag"].strip('"').isdigit()
    assert (job["status"], job["queue"]["position"], job["tier"]) == ("queued", 1, "partner")
    assert (job["queue"]["estimate_seconds"], job["queue"]["message"]) == (None, "no estimate yet")
    usage = job["usage"]
    assert (usage["jobs_used"], usage["jobs_remaining"], usage["iterations_used"]) == (1, 49, 0)
    assert usage["daily_limit_resets_at"] == "2027-01-16T00:00:00Z"


async def test_operators_alone_are_shown_where_a_trace_is_read() -> None:
    admission = MemoryAdmission(tracing={"url_template": "https://tempo.example.com/trace/{trace_id}"})
    await admission.fold()
    api = AdmissionApi(admission)
    async with api.client() as ann, api.client("olga", scope=OPERATOR) as olga:
        job = await submitted(ann)
        seen = await olga.get(f"/v1/jobs/{job['id']}")

    assert job["trace_url"] is None
    assert seen.json()["trace_url"] == f"https://tempo.example.com/trace/{job['debug_id']}"


async def test_what_held_a_job_is_told_when_it_is_over(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client() as ann, api.client("olga", scope=OPERATOR) as olga:
        job = await submitted(ann)
        await admission.clock.advance_ms(5000)
        await olga.post("/v1/queue/pause", json={"scope": "user:ann", "reason": "a look"})
        await admission.clock.advance_ms(5000)
        await olga.post("/v1/queue/resume", json={"scope": "user:ann"})
        own = await ann.get(f"/v1/jobs/{job['id']}/waits")
        seen = await olga.get(f"/v1/jobs/{job['id']}/waits")

    messages = [each["message"] for each in own.json()["waits"]]
    assert messages == ["Waited its turn", "Your jobs were paused by olga: a look", "Waits its turn"]
    assert seen.json()["waits"][1]["message"] == "The jobs of user ann were paused by olga: a look"


async def test_the_same_key_quoted_or_not_is_the_same_job(api: AdmissionApi) -> None:
    async with api.client() as ann:
        first = await ann.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "abc"})
        again = await ann.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": '"abc"'})
        other = await ann.post("/v1/jobs", json=JOB | {"priority": "low"}, headers={"Idempotency-Key": "abc"})
        half = await ann.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": '"abc'})
    async with api.client("bob") as bob:
        his = await bob.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "abc"})

    assert first.json()["id"] == again.json()["id"] != his.json()["id"]
    assert again.json()["usage"]["jobs_used"] == 1
    refused(other, 422, "key-reused")
    refused(half, 422, "invalid")


async def test_what_is_in_the_log_is_accepted_though_the_view_is_lost_by_then(
    api: AdmissionApi, admission: MemoryAdmission
) -> None:
    admission.lose_view_with_the_next_append()
    async with api.client() as ann:
        job = await ann.post("/v1/jobs", json=JOB)
        await admission.fold()
        admission.lose_view_with_the_next_append()
        workflow = await ann.post("/v1/workflows", json=WORKFLOW)
        await admission.fold()
        admission.lose_view_with_the_next_append()
        batch = await ann.post("/v1/jobs/batch", json={"jobs": [JOB, JOB]})

    assert (job.status_code, job.json()["status"], job.json()["usage"]["jobs_used"]) == (202, "queued", 1)
    assert job.headers["location"] == f"/v1/jobs/{job.json()['id']}"
    assert (workflow.status_code, len(workflow.json()["phases"])) == (202, 2)
    assert [each["status"] for each in batch.json()["results"]] == [202, 503]


async def test_a_dry_run_is_answered_like_a_submission_and_is_none(
    api: AdmissionApi, admission: MemoryAdmission
) -> None:
    async with api.client() as ann:
        answer = await ann.post("/v1/jobs?dry_run=true", json=JOB)
        listed = await ann.get("/v1/jobs")
        real = await ann.post("/v1/jobs", json=JOB)

    shown = answer.json()
    assert answer.status_code == 200
    assert shown.keys() == real.json().keys()
    assert (shown["status"], shown["queue"]["position"], shown["queue"]["estimate_seconds"]) == ("queued", 1, None)
    assert [each["reason"] for each in shown["waiting_on"]] == ["no_worker"]
    assert shown["usage"]["jobs_used"] == 0
    assert listed.json() == []
    assert (await admission.log.mark()).seq == 1


async def test_a_dry_run_is_refused_like_a_submission(api: AdmissionApi) -> None:
    async with api.client(tier=Tier.BOOTSTRAPPER) as ann:
        priority = await ann.post("/v1/jobs?dry_run=true", json=JOB | {"priority": "high"})

    assert refused(priority, 422, "invalid")["errors"][0]["field"] == "priority"


async def test_whoever_is_too_fast_hears_when_to_come_back() -> None:
    admission = MemoryAdmission(submissions={"per_minute": 1})
    await admission.fold()
    async with AdmissionApi(admission).client() as ann:
        await submitted(ann)
        answer = await ann.post("/v1/jobs", json=JOB)

    problem = refused(answer, 429, "too-fast")
    assert answer.headers["retry-after"] == "60"
    assert "60 s" in problem["detail"]


async def test_whoever_holds_their_share_of_bytes_hears_how_much_and_when_to_come_back() -> None:
    admission = MemoryAdmission(submissions={"max_input_bytes": 400, "max_phases": 1, "user_input_bytes": 500})
    await admission.fold()
    large = {"input": {"prompt": "x" * 300}}
    async with AdmissionApi(admission).client() as ann:
        await submitted(ann, **large)
        answer = await ann.post("/v1/jobs", json=JOB | large)
        tried = await ann.post("/v1/jobs?dry_run=true", json=JOB | large)
        problem, same = refused(answer, 429, "input-share"), refused(tried, 429, "input-share")

    assert (problem["held_bytes"], problem["most_bytes"]) == (441, 500)
    assert answer.headers["retry-after"] == tried.headers["retry-after"] == "3600"
    assert problem["detail"] == same["detail"]


async def test_no_host_may_be_called_that_is_not_listed(api: AdmissionApi) -> None:
    async with api.client() as ann:
        answer = await ann.post("/v1/jobs", json=JOB | {"notify_url": "http://169.254.169.254/latest"})

    assert refused(answer, 422, "invalid")["errors"][0]["field"] == "notify_url"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"concurrency_group": "no token!"}, "concurrency_group"),
        ({"concurrency_group": "db", "concurrency_limit": 0}, "concurrency_limit"),
        ({"concurrency_group": "db", "concurrency_limit": -1}, "concurrency_limit"),
        ({"priority": "highest"}, "priority"),
        ({"pool": "a.b"}, "pool"),
        ({"unknown": 1}, "unknown"),
        ({"project_id": "shop\x1b[2J"}, "project_id"),
        ({"labels": {"team": "a\x9b2J"}}, "labels.team"),
        ({"labels": {"team": "a\nb"}}, "labels.team"),
        ({"project_id": ""}, "project_id"),
        ({"input": "text"}, "input"),
        ({"run_at": "tomorrow"}, "run_at"),
        ({"labels": {"a b": "c"}}, "labels.a b.[key]"),
        ({"queue_ttl_s": 0}, "queue_ttl_s"),
    ],
)
async def test_a_wrong_field_is_named_and_nothing_is_stored(
    api: AdmissionApi, admission: MemoryAdmission, body: dict[str, Any], field: str
) -> None:
    async with api.client() as ann:
        answer = await ann.post("/v1/jobs", json=JOB | body)

    assert refused(answer, 422, "invalid")["errors"][0]["field"] == field
    assert (await admission.log.mark()).seq == 0


async def test_nobody_gets_in_without_a_token_that_is_good(api: AdmissionApi) -> None:
    forged = KeyPair.generate()
    async with (
        api.anonymous() as nobody,
        api.client(pair=forged) as thief,
        api.client(ttl_s=-60) as late,
        api.client(scope="jobs:read") as reader,
    ):
        for client in (nobody, thief, late):
            refused(await client.post("/v1/jobs", json=JOB), 401, "unauthorized")
        refused(await reader.post("/v1/jobs", json=JOB), 403, "forbidden")
        refused(await reader.patch("/v1/jobs/j1", json={"priority": "low"}), 403, "forbidden")
        refused(await reader.post("/v1/queue/move", json={"job_id": "j1", "before": "j2"}), 403, "forbidden")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/jobs/{id}", None),
        ("PATCH", "/v1/jobs/{id}", {"priority": "low"}),
        ("POST", "/v1/jobs/{id}/cancel", None),
        ("POST", "/v1/jobs/{id}/confirm", None),
        ("POST", "/v1/jobs/{id}/retry", None),
    ],
)
async def test_anothers_job_does_not_exist(
    api: AdmissionApi, admission: MemoryAdmission, method: str, path: str, body: Any
) -> None:
    async with api.client("ann") as ann, api.client("bob") as bob:
        job = await submitted(ann)
        answer = await bob.request(method, path.format(id=job["id"]), json=body)
        missing = await bob.request(method, path.format(id="nosuchjob"), json=body)

    problem = refused(answer, 404, "not-found")
    assert problem["detail"].replace(job["id"], "nosuchjob") == refused(missing, 404, "not-found")["detail"]
    assert (await admission.log.mark()).seq == 1


# ── many at once ──────────────────────────────────────────────────────────────


async def test_a_bad_one_of_many_spoils_no_other(api: AdmissionApi) -> None:
    jobs = [JOB, JOB | {"pool": "a.b"}, {"input": {}}, JOB | {"priority": "urgent"}, JOB]
    async with api.client() as ann:
        answer = await ann.post("/v1/jobs/batch", json={"jobs": jobs})

    results = answer.json()["results"]
    assert answer.status_code == 207
    assert [each["status"] for each in results] == [202, 422, 422, 422, 202]
    assert [each["job"] and each["job"]["queue"]["position"] for each in results] == [1, None, None, None, 2]
    assert results[1]["problem"]["errors"][0]["field"] == "pool"
    assert results[2]["problem"]["errors"][0]["field"] == "project_id"
    assert all(each["problem"]["debug_id"] for each in results if each["problem"])


async def test_of_a_batch_beyond_the_users_rate_each_late_one_says_when() -> None:
    admission, key = MemoryAdmission(submissions={"per_minute": 3}), {"Idempotency-Key": "many"}
    await admission.fold()
    async with AdmissionApi(admission).client() as ann:
        first = (await ann.post("/v1/jobs/batch", json={"jobs": [JOB] * 5}, headers=key)).json()["results"]
        await admission.clock.advance_ms(20_000)
        again = (await ann.post("/v1/jobs/batch", json={"jobs": [JOB] * 5}, headers=key)).json()["results"]

    assert [each["status"] for each in first] == [202] * 3 + [429] * 2
    assert {(each["problem"]["type"], each["problem"]["retry_after_s"]) for each in first[3:]} == {
        ("/problems/too-fast", 20)
    }
    assert [each["status"] for each in again] == [202] * 4 + [429]
    assert [each["job"]["id"] for each in again[:3]] == [each["job"]["id"] for each in first[:3]]


async def test_a_batch_sent_twice_is_the_same_jobs(api: AdmissionApi) -> None:
    key = {"Idempotency-Key": "abc"}
    async with api.client() as ann:
        first = await ann.post("/v1/jobs/batch", json={"jobs": [JOB] * 3}, headers=key)
        again = await ann.post("/v1/jobs/batch", json={"jobs": [JOB] * 4}, headers=key)
        alone = await ann.post("/v1/jobs", json=JOB, headers=key)

    ids = [each["job"]["id"] for each in first.json()["results"]]
    assert len({*ids, alone.json()["id"]}) == 4
    assert [each["job"]["id"] for each in again.json()["results"]][:3] == ids
    assert alone.json()["usage"]["jobs_used"] == 5


@pytest.mark.parametrize("jobs", [[], [JOB] * 101])
async def test_a_batch_has_one_to_a_hundred(api: AdmissionApi, jobs: list[Any]) -> None:
    async with api.client() as ann:
        refused(await ann.post("/v1/jobs/batch", json={"jobs": jobs}), 422, "invalid")


async def test_what_was_accepted_a_moment_ago_is_cancelled_too(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client() as ann:
        job = await submitted(ann, labels={"team": "green"})

        cancelling = asyncio.create_task(ann.post("/v1/jobs/cancel", json={"label": "team=green"}))
        await eventually(lambda: admission.clock.sleeping == 1)  # the view is behind the log
        await admission.fold()
        await admission.clock.advance_ms(20)

    [outcome] = (await cancelling).json()["results"]
    assert (outcome["status"], outcome["job"]["id"], outcome["job"]["status"]) == (202, job["id"], "cancelled")


async def test_what_is_meant_is_cancelled_and_nothing_else(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client("ann") as ann, api.client("bob") as bob:
        green = await submitted(ann, labels={"team": "green"})
        red = await submitted(ann, labels={"team": "red"})
        his = await submitted(bob, labels={"team": "green"})
        await admission.fold()

        answer = await ann.post("/v1/jobs/cancel", json={"label": "team=green", "reason": "enough"})
        await admission.fold()
        left = [(await client.get(f"/v1/jobs/{job['id']}")).json() for client, job in ((ann, red), (bob, his))]

    assert answer.status_code == 207
    assert [(each["status"], each["job"]["id"], each["job"]["status"]) for each in answer.json()["results"]] == [
        (202, green["id"], "cancelled")
    ]
    assert [job["status"] for job in left] == ["queued", "queued"]


@pytest.mark.parametrize("body", [{}, {"project": "shop", "label": "a=b"}, {"label": "team"}])
async def test_a_bulk_cancel_says_what_it_means(api: AdmissionApi, body: dict[str, Any]) -> None:
    async with api.client() as ann:
        refused(await ann.post("/v1/jobs/cancel", json=body), 422, "invalid")


# ── workflows ─────────────────────────────────────────────────────────────────


async def test_a_workflow_is_taken_in_shown_and_ended_as_a_whole(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client() as ann, api.client("bob") as bob:
        answer = await ann.post("/v1/workflows", json=WORKFLOW | {"priority": "high"})
        workflow = answer.json()
        await admission.fold()
        shown = await ann.get(answer.headers["location"])
        refused(await bob.get(answer.headers["location"]), 404, "not-found")
        refused(await bob.post(f"/v1/workflows/{workflow['id']}/cancel"), 404, "not-found")
        cancelled = await ann.post(f"/v1/workflows/{workflow['id']}/cancel")
        again = await ann.post(f"/v1/workflows/{workflow['id']}/cancel")

    assert answer.status_code == 202
    assert (workflow["status"], workflow["priority"]) == ("queued", "high")
    assert [phase["status"] for phase in workflow["phases"]] == ["queued", "waiting"]
    assert workflow["phases"][0]["usage"]["jobs_used"] == 1
    assert shown.json()["phases"][1]["waiting_on"][0]["reason"] == "earlier_phase"
    assert cancelled.status_code == 202
    assert cancelled.json()["status"] == "cancelled"
    refused(again, 409, "ended")


async def test_a_dry_run_of_a_workflow_is_none(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client() as ann:
        answer = await ann.post("/v1/workflows?dry_run=true", json=WORKFLOW)

    assert answer.status_code == 200
    assert [phase["status"] for phase in answer.json()["phases"]] == ["queued", "waiting"]
    assert (await admission.log.mark()).seq == 0


@pytest.mark.parametrize(("phases", "field"), [([], "phases"), ([{"input": {}}] * 21, "phases")])
async def test_a_workflow_has_one_to_twenty_phases(api: AdmissionApi, phases: list[Any], field: str) -> None:
    async with api.client() as ann:
        answer = await ann.post("/v1/workflows", json=WORKFLOW | {"phases": phases})

    assert refused(answer, 422, "invalid")["errors"][0]["field"] == field


async def test_a_lost_view_is_said_with_a_time(api: AdmissionApi, admission: MemoryAdmission) -> None:
    lost = AdmissionApi(MemoryAdmission())  # nobody has folded anything
    async with lost.client() as ann:
        one = await ann.post("/v1/jobs", json=JOB)
        many = await ann.post("/v1/jobs/batch", json={"jobs": [JOB, JOB]})

    refused(one, 503, "unavailable")
    assert one.headers["retry-after"] == "2"
    assert many.status_code == 207
    assert [each["problem"]["type"] for each in many.json()["results"]] == ["/problems/unavailable"] * 2


async def test_submissions_are_counted_by_answer_and_those_that_were_taken_are_timed(
    admission: MemoryAdmission,
) -> None:
    api = AdmissionApi(admission)
    async with api.client() as ann:
        answers = [await ann.post("/v1/jobs", json=JOB | {"input": {"number": number}}) for number in range(3)]
        answers.append(await ann.post("/v1/workflows", json=WORKFLOW))
        answers.append(await ann.post("/v1/jobs", json={}))
        many = await ann.post("/v1/jobs/batch", json={"jobs": [JOB, {}]})
        answers.append(await ann.post("/v1/jobs?dry_run=false", json=JOB))
        answers.append(await ann.post("/v1/jobs?dry_run=perhaps", json=JOB))
        await ann.post("/v1/jobs?dry_run=true", json=JOB)

    said = Counter(answer.status_code for answer in answers)
    said.update(item["status"] for item in many.json()["results"])
    text = api.telemetry.metrics_text().decode()
    assert said == {202: 6, 422: 3}
    for status, count in said.items():
        assert f'headgate_admission_submissions_total{{answer="{status}"}} {count}.0' in text
    assert "headgate_admission_accept_seconds_count 6.0" in text


async def test_of_a_batch_what_a_server_that_is_away_refuses_is_counted_too() -> None:
    lost = AdmissionApi(MemoryAdmission())  # nobody has folded anything
    async with lost.client() as ann:
        await ann.post("/v1/jobs/batch", json={"jobs": [JOB] * 3})

    text = lost.telemetry.metrics_text().decode()
    assert 'headgate_admission_submissions_total{answer="503"} 3.0' in text
    assert 'headgate_admission_refused_total{reason="unavailable"} 3.0' in text


async def test_a_refused_submission_leaves_a_line_with_its_user(
    admission: MemoryAdmission, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="services.admission.submission_counts")
    async with AdmissionApi(admission).client() as ann:
        await ann.post("/v1/jobs?dry_run=0", json={})
        await ann.post("/v1/jobs/batch", json={"jobs": [JOB, {}]})

    lines = [each for each in caplog.records if each.name == "services.admission.submission_counts"]
    assert [line.message for line in lines] == ["a submission was refused: invalid"] * 2
    assert None not in [vars(line)["user_id"] for line in lines]


async def test_refused_submissions_are_counted_by_reason(admission: MemoryAdmission) -> None:
    api = AdmissionApi(admission)
    async with api.client(tier=Tier.BOOTSTRAPPER, scope="jobs:write") as ann:
        await ann.post("/v1/jobs", json=JOB | {"priority": "urgent"})
        await ann.post("/v1/jobs", json={})
        await ann.post("/v1/workflows", json=WORKFLOW | {"priority": "urgent"})
        await ann.post("/v1/jobs/batch", json={"jobs": [JOB, JOB | {"priority": "urgent"}, {}]})
        await ann.post("/v1/jobs?dry_run=true", json={})
    async with api.anonymous() as nobody:
        await nobody.post("/v1/jobs", json=JOB)

    counted = {reason: count for (_, reason), count in (await admission.view.refused()).items()}
    assert counted == {"invalid": 5}
    assert 'headgate_admission_refused_total{reason="invalid"} 5.0' in api.telemetry.metrics_text().decode()


def test_the_document_says_of_what_kind_every_answer_is() -> None:
    operations = {
        f"{method.upper()} {path}": operation
        for path, operations in openapi_document()["paths"].items()
        for method, operation in operations.items()
    }
    untold = [
        name
        for name, operation in operations.items()
        for status, answer in operation["responses"].items()
        if status not in ("204", "304") and not name.startswith("HEAD") and not answer.get("content")
    ]
    of_any_kind = [
        name
        for name, operation in operations.items()
        if "'additionalProperties': True" in str(operation["responses"].get("200", {}))
    ]

    assert (untold, of_any_kind) == ([], [])
    log = operations["GET /v1/jobs/{job_id}/log"]["responses"]["200"]["content"]
    result = operations["GET /v1/jobs/{job_id}/result"]["responses"]
    assert set(log) == {"text/plain", "application/x-ndjson"}
    assert set(result["200"]["content"]) == set(result["206"]["content"]) == {"application/gzip"}

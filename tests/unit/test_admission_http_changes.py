"""What clients of admission are answered when they change a job, over the twins of log and view."""

from __future__ import annotations

import pytest

from headgate_contracts import Tier
from tests.fixtures.admission_api import JOB, OPERATOR, AdmissionApi, refused, submitted
from tests.fixtures.lives import step
from tests.fixtures.memory_admission import MemoryAdmission


@pytest.fixture
def api(admission: MemoryAdmission) -> AdmissionApi:
    return AdmissionApi(admission)


async def test_a_change_is_answered_with_the_place_and_the_usage_that_follow_from_it(
    admission: MemoryAdmission,
) -> None:
    api = AdmissionApi(admission, meanwhile=admission.fold)
    async with api.client() as ann, api.client("boss", scope=OPERATOR) as boss:
        first, second = await submitted(ann), await submitted(ann)
        await admission.fold()
        raised = (await ann.patch(f"/v1/jobs/{second['id']}", json={"priority": "high"})).json()
        before = {"job_id": first["id"], "before": second["id"]}
        moved = (await boss.post("/v1/queue/move", json=before)).json()
        cancelled = (await ann.post(f"/v1/jobs/{second['id']}/cancel")).json()
        every = (await ann.post("/v1/jobs/cancel", json={"project": "shop"})).json()

    assert (raised["queue"]["position"], moved["queue"]["position"]) == (1, 1)
    assert (cancelled["status"], cancelled["usage"]["jobs_used"]) == ("cancelled", 1)
    assert [each["job"]["usage"]["jobs_used"] for each in every["results"]] == [0]


async def test_a_change_is_answered_though_nobody_folds_it(api: AdmissionApi) -> None:
    async with api.client() as ann:
        job = await submitted(ann)
        answer = await ann.post(f"/v1/jobs/{job['id']}/cancel")

    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")


async def test_a_change_that_is_in_the_log_is_no_refusal_though_the_view_is_lost_by_then(
    api: AdmissionApi, admission: MemoryAdmission
) -> None:
    async with api.client() as ann:
        job = await submitted(ann)
        await admission.fold()
        admission.lose_view_with_the_next_append()
        answer = await ann.post(f"/v1/jobs/{job['id']}/cancel")

    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")


async def test_a_priority_is_changed_once_by_those_who_saw_the_same(
    api: AdmissionApi, admission: MemoryAdmission
) -> None:
    async with api.client() as ann:
        seen = (await ann.post("/v1/jobs", json=JOB)).headers["etag"]
        await admission.fold()
        [job] = (await ann.get("/v1/jobs")).json()
        path = f"/v1/jobs/{job['id']}"
        low = await ann.patch(path, json={"priority": "low"}, headers={"If-Match": seen})
        late = await ann.patch(path, json={"priority": "background"}, headers={"If-Match": seen})
        weak = await ann.patch(path, json={"priority": "background"}, headers={"If-Match": f"W/{low.headers['etag']}"})
        fresh = await ann.patch(path, json={"priority": "background"}, headers={"If-Match": low.headers["etag"]})
        any_one = await ann.patch(path, json={"priority": "normal"}, headers={"If-Match": "*"})
        stands = any_one.headers["etag"]
        odd = await ann.patch(path, json={"priority": "low"}, headers={"If-Match": stands.replace('"', '"0', 1)})
        bare = await ann.patch(path, json={"priority": "low"}, headers={"If-Match": stands.strip('"')})
        lines = [("If-Match", seen), ("If-Match", stands)]
        of_several = await ann.patch(path, json={"priority": "low"}, headers=lines)

    assert (low.status_code, low.json()["priority"]) == (200, "low")
    assert refused(late, 412, "changed")["detail"].count(low.headers["etag"]) == 1
    refused(weak, 412, "changed")
    assert (fresh.json()["priority"], any_one.json()["priority"]) == ("background", "normal")
    refused(odd, 412, "changed")  # a number is no tag
    refused(bare, 400, "bad-condition")
    assert of_several.json()["priority"] == "low"


async def test_only_an_operator_goes_above_the_tier(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client(tier=Tier.BOOTSTRAPPER) as ann, api.client("op", scope="ops") as operator:
        job = await submitted(ann)
        await admission.fold()
        path = f"/v1/jobs/{job['id']}"
        above = await ann.patch(path, json={"priority": "high"})
        raised = await operator.patch(path, json={"priority": "urgent", "reason": "launch"})

    assert refused(above, 422, "invalid")["errors"][0]["field"] == "priority"
    assert raised.json()["priority"] == "urgent"


async def test_what_has_started_keeps_its_class(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client() as ann:
        shown = await submitted(ann)
        job = await admission.reading.find(shown["id"])
        assert job is not None
        await admission.log.append(step(job, "dispatched"), after=job)
        answer = await ann.patch(f"/v1/jobs/{shown['id']}", json={"priority": "low"})

    refused(answer, 409, "underway")


async def test_a_question_is_answered_once(api: AdmissionApi) -> None:
    async with api.client() as ann:
        job = await submitted(ann)
        early = await ann.post(f"/v1/jobs/{job['id']}/confirm")

    assert "nothing was changed" in refused(early, 409, "not-asked")["detail"]


async def test_an_operator_moves_a_job(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client() as ann, api.client("op", scope=OPERATOR) as operator:
        first, second = [await submitted(ann) for _ in range(2)]
        await admission.fold()
        move = {"job_id": second["id"], "before": first["id"], "reason": "demo"}
        moved = await operator.post("/v1/queue/move", json=move)
        itself = await operator.post("/v1/queue/move", json={"job_id": first["id"], "before": first["id"]})
        gone = await operator.post("/v1/queue/move", json={"job_id": first["id"], "after": "nosuchjob"})
        both = await operator.post("/v1/queue/move", json=move | {"after": first["id"]})
        await admission.fold()
        queue = [entry.job for entry in await admission.view.queue()]

    assert moved.status_code == 200
    assert queue == [second["id"], first["id"]]
    assert refused(itself, 422, "invalid")["errors"][0]["field"] == "before"
    assert "nosuchjob" in refused(gone, 409, "neighbour-gone")["detail"]
    refused(both, 422, "invalid")


async def test_a_job_is_submitted_again_once(api: AdmissionApi, admission: MemoryAdmission) -> None:
    key = {"Idempotency-Key": "once-more"}
    async with api.client() as ann:
        job = await submitted(ann)
        waiting = await ann.post(f"/v1/jobs/{job['id']}/retry")
        await ann.post(f"/v1/jobs/{job['id']}/cancel")
        await admission.fold()
        first = await ann.post(f"/v1/jobs/{job['id']}/retry", headers=key)
        again = await ann.post(f"/v1/jobs/{job['id']}/retry", headers=key)

    refused(waiting, 409, "not-over")
    assert first.status_code == again.status_code == 202
    assert first.json()["id"] == again.json()["id"] != job["id"]
    assert first.headers["location"] == f"/v1/jobs/{first.json()['id']}"
    assert again.json()["usage"]["jobs_used"] == 1


async def test_from_a_stage_a_job_is_run_again_with_another_input(
    api: AdmissionApi, admission: MemoryAdmission
) -> None:
    ready = await admission.go_on(
        await admission.submitted(user="ann"), *["dispatched", "started", "scaffold", "code", "deps", "checks", "ready"]
    )
    await admission.fold()
    path = f"/v1/jobs/{ready.id}/retry"
    async with api.client() as ann, api.client("bob") as bob:
        plain = await ann.post(path)
        starts = await ann.get(path)
        again = await ann.post(path, json={"from": "code", "input": {"prompt": "another"}})
        wrong = await ann.post(path, json={"from": "deploy"})
        large = await ann.post(path, json={"from": "code", "input": {"prompt": "x" * 70_000}})
        others = await bob.post(path, json={"from": "code"})

    assert "name a stage" in refused(plain, 409, "not-over")["detail"]
    assert [each["can_start"] for each in starts.json()["stages"]] == [True] * 4
    assert (again.status_code, again.json()["title"]) == (202, "another")
    assert refused(wrong, 422, "invalid")["errors"][0]["field"] == "from"
    refused(large, 422, "invalid")
    refused(others, 404, "not-found")


async def test_without_its_input_a_job_cannot_be_submitted_again(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client() as ann:
        job = await submitted(ann)
        await ann.post(f"/v1/jobs/{job['id']}/cancel")
        await admission.fold()
        [name] = await admission.inputs.names()
        await admission.inputs.delete(name)
        answer = await ann.post(f"/v1/jobs/{job['id']}/retry")

    assert "submit a new job" in refused(answer, 410, "input-gone")["detail"]


async def test_whoever_changes_too_fast_hears_when_to_come_back() -> None:
    admission = MemoryAdmission(submissions={"changes_per_minute": 1})
    await admission.fold()
    async with AdmissionApi(admission, meanwhile=admission.fold).client() as ann:
        first, second = await submitted(ann), await submitted(ann)
        await admission.fold()
        cancelled = await ann.post(f"/v1/jobs/{first['id']}/cancel")
        late = await ann.patch(f"/v1/jobs/{second['id']}", json={"priority": "low"})
        every = (await ann.post("/v1/jobs/cancel", json={"project": "shop"})).json()["results"]

    assert cancelled.status_code == 202
    assert (refused(late, 429, "too-many-changes")["detail"], late.headers["retry-after"]) == (
        "you may change 1 jobs and phases a minute: try again in 60 s",
        "60",
    )
    assert (every[-1]["status"], every[-1]["problem"]["retry_after_s"]) == (429, 60)

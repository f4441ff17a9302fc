"""Pools: which a job may name, which a worker may serve, and what both are told otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from libs.local.permissions import NATS_USERS, nats_users
from libs.policy import Policy, PolicyError, PolicyInForce, load_policy
from libs.runtime.errors import SettingsWrong
from services.worker.__main__ import main, require_pool
from tests.fixtures.admission_api import JOB, AdmissionApi, refused, submitted
from tests.fixtures.memory_admission import MemoryAdmission

GPU: dict[str, Any] = JOB | {"pool": "gpu"}
PHASES: dict[str, Any] = {"project_id": "shop", "phases": [{"input": {}}, {"input": {}, "pool": "gpu"}]}
POLICY = Policy.model_validate({"pools": {"names": ["gpu"], "closing": ["old"]}})


async def an_admission(**pools: list[str]) -> MemoryAdmission:
    admission = MemoryAdmission(pools=pools)
    await admission.fold()
    return admission


def test_default_is_always_a_pool() -> None:
    assert Policy().pools.open == Policy().pools.served == ("default",)
    assert POLICY.pools.open == ("default", "gpu")
    assert POLICY.pools.served == ("default", "gpu", "old")


@pytest.mark.parametrize("closing", ["gpu", "default"])
def test_no_pool_takes_new_jobs_and_takes_none(closing: str) -> None:
    with pytest.raises(ValueError, match=f"pools.closing: {closing} cannot take new jobs and take none"):
        Policy.model_validate({"pools": {"names": ["gpu"], "closing": [closing]}})


def test_a_name_that_is_no_pools_is_refused_with_what_one_looks_like(tmp_path: Any) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[pools]\nnames = ["a.b"]\n')

    with pytest.raises(PolicyError, match="a pool's name of A-Z, a-z, 0-9, _ and -"):
        load_policy(file, environ={})


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/jobs", GPU, "pool"),
        ("/v1/jobs?dry_run=true", GPU, "pool"),
        ("/v1/workflows", PHASES, "phases.1.pool"),
    ],
    ids=["job", "dry run", "workflow"],
)
async def test_a_job_of_an_unknown_pool_is_refused_with_the_pools_that_there_are(
    path: str, body: dict[str, Any], field: str
) -> None:
    admission = await an_admission(names=["cpu"])
    async with AdmissionApi(admission).client() as ann:
        problem = refused(await ann.post(path, json=body), 422, "invalid")

    assert problem["errors"] == [{"in": "body", "field": field, "message": "'gpu' is no pool here: name default, cpu"}]
    assert (await admission.log.mark()).seq == 0


async def test_of_a_batch_the_job_of_an_unknown_pool_alone_is_refused() -> None:
    async with AdmissionApi(await an_admission()).client() as ann:
        results = (await ann.post("/v1/jobs/batch", json={"jobs": [JOB, GPU, JOB]})).json()["results"]

    assert [each["status"] for each in results] == [202, 422, 202]
    assert results[1]["problem"]["errors"][0]["field"] == "pool"


async def test_a_pool_that_is_named_takes_jobs_and_one_that_closes_takes_none() -> None:
    async with AdmissionApi(await an_admission(names=["gpu"], closing=["old"])).client() as ann:
        taken = await submitted(ann, pool="gpu")
        answer = await ann.post("/v1/jobs", json=JOB | {"pool": "old"})

    assert taken["status"] == "queued"
    assert "'old' takes no new jobs: name default, gpu" in refused(answer, 422, "invalid")["detail"]


async def test_a_job_of_a_pool_that_has_gone_stays_and_ends_but_is_not_submitted_again() -> None:
    admission = await an_admission(names=["gpu"])
    async with AdmissionApi(admission).client() as ann:
        job = await submitted(ann, pool="gpu")
    admission.policy = PolicyInForce.of(Policy())

    async with AdmissionApi(admission).client() as ann:
        there = (await ann.get(f"/v1/jobs/{job['id']}")).json()
        ended = await ann.post(f"/v1/jobs/{job['id']}/cancel")
        await admission.fold()
        again = await ann.post(f"/v1/jobs/{job['id']}/retry")

    assert (there["status"], ended.status_code) == ("queued", 202)
    assert refused(again, 422, "invalid")["errors"][0]["field"] == "pool"


def test_a_worker_serves_what_is_named_or_closes_and_is_told_what_to_do_otherwise() -> None:
    for pool in ("default", "gpu", "old"):
        require_pool(pool, POLICY)

    with pytest.raises(SettingsWrong, match=r"HEADGATE_POOL: 'tpu' .* \(default, gpu, old\); set it .* add it to"):
        require_pool("tpu", POLICY)


def test_a_worker_of_an_unknown_pool_does_not_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    monkeypatch.setenv("HEADGATE_POOL", "gpu")
    monkeypatch.setenv("HEADGATE_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("HEADGATE_REDIS_URL", "redis://127.0.0.1:1")
    monkeypatch.setenv("HEADGATE_WORKSPACES", str(tmp_path))
    monkeypatch.setattr("services.worker.__main__.keep_private", lambda: None)  # it would hold for all later tests
    monkeypatch.setattr("services.worker.__main__.adopt_orphans", lambda: None)
    monkeypatch.setattr("services.worker.__main__.adopts_orphans", lambda: False)

    assert main() == 2
    assert "HEADGATE_POOL: 'gpu' is no pool that the policy names (default); set it to" in capsys.readouterr().err


def test_a_worker_may_pull_from_the_pools_that_are_named() -> None:
    passwords = {str(name): "secret" for name in NATS_USERS}
    worker = nats_users(passwords, shard="main", pools=POLICY.pools.served)["worker"]

    pulled = {subject for subject in worker.publish or () if "CONSUMER.MSG.NEXT" in subject}
    assert pulled == {f"$JS.API.CONSUMER.MSG.NEXT.JOBS.worker-{pool}" for pool in ("default", "gpu", "old")}

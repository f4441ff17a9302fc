"""What an attempt leaves for the next one: stored first, then named, then the one before goes; and nothing twice."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from headgate_contracts import Job
from headgate_contracts.events import JobAwaitingConfirmation, JobFailed, JobGivenBack, JobStage
from libs.eventlog import LogFull, LogUnavailable
from libs.policy import Policy
from libs.runtime.eventually import eventually
from services.worker.child.messages import ProviderEndpoint
from services.worker.children import Spawner
from services.worker.ports import Unheard
from tests.fixtures.workers import Shop, a_shop

KEY = "sk-live-0123456789abcdefghij"
ENDPOINTS = {"openai": ProviderEndpoint(url="https://api.test/v1", model="m-1", key=KEY)}
SHORT_LEASES = {"job_s": 3, "heartbeat_s": 0.2}
LAST_ALONE = Policy.model_validate({"leases": SHORT_LEASES, "retention": {"stage_workspaces": 1}})
ONE_CYCLE = ["scaffold 1", "code 1", "deps 1", "checks 1"]


@pytest_asyncio.fixture(scope="session")
async def spawner() -> AsyncIterator[Spawner]:
    spawner = Spawner(["services.worker.rehearsal", "tests.fixtures.building"], environ=os.environ)
    await spawner.start()
    yield spawner
    await spawner.stop()


@pytest_asyncio.fixture
async def shop(spawner: Spawner, tmp_path: Path) -> AsyncIterator[Shop]:
    async with a_shop(spawner, tmp_path, policy=LAST_ALONE, providers=ENDPOINTS) as shop:
        yield shop


async def begun(shop: Shop, until: str, **content: object) -> Job:
    """A job of the pipeline `building`, in this stage."""
    shop.hand(await shop.dispatched("job-1", dict(content), pipeline="building"))
    return await shop.until("job-1", until)


async def lost_and_claimed_again(shop: Shop) -> None:
    await shop.write("job-1", "given_back:lost")
    await eventually(lambda: not shop.attempts.of_job("job-1"))
    shop.hand(await shop.write("job-1", "dispatched"))


async def made(shop: Shop, name: str, *, job_id: str = "job-1") -> list[str]:
    """The lines of a file of the result."""
    await shop.until(job_id, "ready", "failed")
    return (await shop.result(job_id))[name].decode().splitlines()


def checkpoints(shop: Shop) -> list[str | None]:
    """What the stage events name, in order."""
    return [data.checkpoint for data in shop.datas("job-1") if isinstance(data, JobStage) and not data.restored]


# ── stored, named, gone ───────────────────────────────────────────────────────


async def test_each_finished_stages_work_is_stored_and_named_by_the_next_event(shop: Shop) -> None:
    await begun(shop, "checks", sleep={"checks": 600})

    await eventually(lambda: shop.kept._kept.keys() == {"job-1-1-3"})

    assert checkpoints(shop) == [None, "job-1-1-1", "job-1-1-2", "job-1-1-3"]


async def test_the_newest_small_ones_of_an_attempt_stay_to_be_run_again_from(spawner: Spawner, tmp_path: Path) -> None:
    policy = Policy.model_validate({"leases": SHORT_LEASES, "retention": {"stage_workspaces": 3}})
    async with a_shop(spawner, tmp_path, policy=policy, providers=ENDPOINTS) as shop:
        await begun(shop, "ready")

        await eventually(lambda: shop.kept._kept.keys() == {"job-1-1-2", "job-1-1-3"})


async def test_the_one_before_goes_only_when_the_log_names_the_next(shop: Shop) -> None:
    delete, seen = shop.kept.delete, list[tuple[str, str | None]]()

    async def watched(name: str) -> None:
        seen.append((name, shop.job("job-1").checkpoint))
        await delete(name)

    shop.kept.delete = watched
    await begun(shop, "ready")

    await eventually(lambda: len(seen) == 3)
    assert seen == [("job-1-1-1", "job-1-1-2"), ("job-1-1-2", "job-1-1-3"), ("job-1-1-3", "job-1-1-3")]


async def test_a_good_end_leaves_no_workspace(shop: Shop) -> None:
    await begun(shop, "ready")

    await eventually(lambda: not shop.kept._kept)

    assert shop.job("job-1").checkpoint == "job-1-1-3"


async def test_an_end_that_may_be_tried_again_leaves_the_last_one(shop: Shop) -> None:
    await begun(shop, "deps", sleep={"deps": 600})

    await shop.write("job-1", "cancel_requested")
    job = await shop.until("job-1", "cancelled")

    await eventually(lambda: shop.kept._kept.keys() == {"job-1-1-2"})
    assert job.checkpoint == "job-1-1-2"


async def test_a_stage_that_changes_nothing_stores_nothing(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"stages": {}, "failing_cycles": 1}))

    await shop.until("job-1", "ready")

    assert checkpoints(shop) == [None, None, None, None, "job-1-1-1", None, None, None]


async def test_environments_and_caches_are_not_kept(shop: Shop) -> None:
    makes = ["env/bin/python", ".venv/bin/python", "src/__pycache__/x.pyc", "src/env/kept.py", ".cache/x", "src/a.py"]
    await begun(shop, "deps", sleep={"deps": 2}, makes=makes)

    await lost_and_claimed_again(shop)

    assert await made(shop, "files.txt") == ["noise", "src/a.py", "src/env/kept.py", "steps.txt"]


async def test_nothing_is_stored_under_a_name_that_was_used(shop: Shop) -> None:
    await begun(shop, "deps", sleep={"deps": 600})
    await lost_and_claimed_again(shop)
    await shop.until("job-1", "deps")
    await lost_and_claimed_again(shop)

    await shop.until("job-1", "deps")

    named = [name for name in checkpoints(shop) if name]
    assert len(named) == len(set(named))


# ── going on from it ──────────────────────────────────────────────────────────


async def test_a_job_that_was_lost_goes_on_with_its_work_and_runs_no_recorded_stage_again(shop: Shop) -> None:
    await begun(shop, "deps", sleep={"deps": 1})

    await lost_and_claimed_again(shop)

    assert await made(shop, "steps.txt") == ONE_CYCLE  # the first try of deps was never kept
    assert shop.story("job-1").endswith("given_back dispatched started (scaffold) (code) deps checks ready")


async def test_what_failed_checks_said_reaches_the_next_iteration_and_the_next_attempt(shop: Shop) -> None:
    await begun(shop, "awaiting_confirmation", failing_cycles=4)  # a partner has 3 iterations a batch
    asked = shop.datas("job-1")[-1]
    await shop.write("job-1", "confirmed", batch=3)
    shop.hand(await shop.write("job-1", "dispatched"))

    steps = await made(shop, "steps.txt")

    said = [line.line for line in shop.lines.lines if line.line.startswith("failure=")]
    assert said == ["failure=", *(f"failure=the report of iteration {iteration}" for iteration in (1, 2, 3, 4))]
    assert steps == [
        f"{stage} {iteration}" for iteration in range(1, 6) for stage in ("scaffold", "code", "deps", "checks")
    ]
    assert isinstance(asked, JobAwaitingConfirmation)
    assert asked.checkpoint == "job-1-1-12"


async def test_a_job_tried_again_goes_on_from_the_other_ones_work_and_leaves_it_there(shop: Shop) -> None:
    await begun(shop, "deps", sleep={"deps": 600})
    await shop.write("job-1", "cancel_requested")
    first = await shop.until("job-1", "cancelled")
    again = {"retry_of": "job-1", "finished_stages": first.finished_stages, "checkpoint": first.checkpoint}

    shop.hand(await shop.dispatched("job-2", {}, pipeline="building", **again))

    assert await made(shop, "steps.txt", job_id="job-2") == ONE_CYCLE
    assert shop.story("job-2") == "queued dispatched started (scaffold) (code) deps checks ready"
    await eventually(lambda: shop.kept._kept.keys() == {"job-1-1-2"})


async def test_a_drained_worker_hands_over_what_a_stage_kept_midway(spawner: Spawner, tmp_path: Path) -> None:
    async with a_shop(spawner, tmp_path, policy=LAST_ALONE, drain_grace_s=0.2, providers=ENDPOINTS) as shop:
        await begun(shop, "deps", sleep={"deps": 600}, midway=True)
        await eventually(lambda: "midway" in [line.line for line in shop.lines.lines])

        await shop.attempts.stop()

        handed = shop.datas("job-1")[-1]
        assert isinstance(handed, JobGivenBack)
        assert (handed.finished_stages, handed.checkpoint) == (("scaffold", "code"), "job-1-1-3")
        await eventually(lambda: shop.kept._kept.keys() == {"job-1-1-3"})


async def test_a_job_that_goes_on_is_told_to_stop_before_its_first_stage(shop: Shop) -> None:
    await begun(shop, "deps", sleep={"deps": 600})
    asked, never = asyncio.Event(), asyncio.Event()

    async def hangs(name: str) -> bytes | None:
        asked.set()
        await never.wait()
        return None

    shop.kept.get = hangs
    await lost_and_claimed_again(shop)
    await asked.wait()

    await shop.write("job-1", "cancel_requested")

    await shop.until("job-1", "cancelled")
    assert shop.story("job-1").endswith("dispatched started cancel_requested cancelled")


# ── what goes wrong ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("content", [None, b"no archive", b""])
async def test_a_checkpoint_that_is_gone_fails_the_job_by_the_systems_fault_in_friendly_words(
    shop: Shop, content: bytes | None
) -> None:
    await begun(shop, "deps", sleep={"deps": 600})
    kept = shop.kept._kept
    kept.pop("job-1-1-2")
    kept.update({} if content is None else {"job-1-1-2": content})

    await lost_and_claimed_again(shop)

    job = await shop.until("job-1", "failed")
    failed = shop.datas("job-1")[-1]
    assert isinstance(failed, JobFailed)
    assert failed.fault == "system"
    assert failed.summary.startswith("The work of earlier stages")
    assert "/" not in failed.detail
    assert job.quota_day is None


async def test_a_workspace_that_is_too_large_fails_its_job_and_says_how_large_it_may_be(
    spawner: Spawner, tmp_path: Path
) -> None:
    policy = Policy.model_validate({"runs": {"checkpoint_bytes": 50_000}})
    async with a_shop(spawner, tmp_path, policy=policy, providers=ENDPOINTS) as shop:
        await begun(shop, "failed", bytes=200_000)

        failed = shop.datas("job-1")[-1]

        assert isinstance(failed, JobFailed)
        assert (failed.fault, failed.summary) == ("job", "The workspace is too large to keep.")
        assert "50000" in failed.detail


@pytest.mark.parametrize("fault", [LogUnavailable(reason="away"), LogFull(reason="full")])
async def test_while_nothing_can_be_stored_the_job_waits_and_then_goes_on(
    shop: Shop, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    keep, away = shop.kept.put, True

    async def put(name: str, content: bytes) -> None:
        if away:
            raise fault
        await keep(name, content)

    shop.kept.put = put
    await begun(shop, "scaffold")
    await eventually(lambda: "workspace job-1-1-1 waits" in caplog.text)

    away = False

    assert await made(shop, "steps.txt") == ONE_CYCLE
    assert caplog.text.count("workspace job-1-1-1 waits") == 1


@pytest.mark.parametrize("why", ["cancelled", "lost"])
async def test_storing_is_broken_off_and_outlives_no_lease(shop: Shop, why: str) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def put(name: str, content: bytes) -> None:
        asked.set()
        await never.wait()

    shop.kept.put = put
    await begun(shop, "scaffold")
    await asked.wait()

    if why == "cancelled":
        await shop.write("job-1", "cancel_requested")
        await shop.until("job-1", "cancelled")
    else:
        shop.scheduler.away = Unheard.SILENT
        await eventually(lambda: not shop.attempts.of_job("job-1"))

    assert shop.story("job-1").endswith("scaffold cancel_requested cancelled" if why == "cancelled" else "scaffold")
    assert list(shop.workspaces.iterdir()) == []


async def test_work_that_no_event_came_to_name_is_deleted(shop: Shop) -> None:
    keep = shop.kept.put

    async def put(name: str, content: bytes) -> None:
        await keep(name, content)
        await shop.write("job-1", "cancel_requested")

    shop.kept.put = put
    await begun(shop, "cancelled")

    await eventually(lambda: not shop.kept._kept)

    assert checkpoints(shop) == [None]


# ── providers ─────────────────────────────────────────────────────────────────


async def test_a_stage_knows_its_providers_and_no_log_knows_their_keys(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    await begun(shop, "ready")

    said = [line.line for line in shop.lines.lines]

    assert "providers=[('openai', 'https://api.test/v1', 'm-1')]" in said
    assert KEY not in caplog.text + "".join(said) + repr(ENDPOINTS)


async def test_a_busy_provider_is_shut_for_all_and_the_stage_goes_on_with_a_new_slot(shop: Shop) -> None:
    await begun(shop, "ready", busy=[0.6, 0.6])

    told = ["shut openai", "give up job-1-1-1", "shut openai", "give up job-1-1-2", "give up job-1-1-3"]

    assert shop.scheduler.acts[:5] == told
    assert [pause.provider for pause in shop.scheduler.shuts] == ["openai", "openai"]
    assert all(600 <= pause.for_ms <= 660 for pause in shop.scheduler.shuts)
    assert shop.story("job-1") == "queued dispatched started scaffold code deps checks ready"


async def test_a_long_pause_gives_the_job_back_with_its_work_and_is_not_its_failure(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"busy": [500]}, pipeline="building"))

    job = await shop.until("job-1", "queued")

    handed = shop.datas("job-1")[-1]
    assert isinstance(handed, JobGivenBack)
    assert (handed.reason, handed.provider, handed.finished_stages) == ("provider", "openai", ("scaffold",))
    assert handed.checkpoint == "job-1-1-1"
    assert (job.lost, job.provider) == (0, "openai")
    assert shop.scheduler.shuts[0].for_ms >= 500_000


async def test_a_pause_that_another_began_gives_the_job_back_as_well(shop: Shop) -> None:
    shop.scheduler.limits = {"llm:openai": 0}
    shop.scheduler.shut_ms = {"llm:openai": 500_000}

    shop.hand(await shop.dispatched("job-1", {}, pipeline="building"))

    await shop.until("job-1", "queued")
    assert shop.story("job-1").endswith("scaffold code given_back")


async def test_a_stage_that_allows_two_jobs_takes_a_slot_of_its_own_group(shop: Shop) -> None:
    await begun(shop, "ready")

    groups = [asked.groups for asked in shop.scheduler.asked]

    assert groups == [("llm:openai", "llm:global"), ("stage:building:deps:2",)]

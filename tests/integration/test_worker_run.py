"""One attempt after another on a log in memory, with real processes: what gets into the log, what is left behind."""

import asyncio
import io
import json
import os
import sys
import tarfile
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from headgate_contracts import Job
from headgate_contracts.commands import CHECKS_FAILED
from headgate_contracts.events import (
    AttemptData,
    JobAwaitingConfirmation,
    JobCancelled,
    JobFailed,
    JobGivenBack,
    JobReady,
    JobStage,
    JobTryFailed,
)
from headgate_contracts.tokens import input_name
from headgate_pipeline.rules import StageRules
from libs.policy import Policy
from libs.runtime.eventually import eventually
from libs.runtime.telemetry import job_trace
from services.worker.child.messages import ProviderEndpoint
from services.worker.children import PASSED_ON, Spawner
from services.worker.domain import Interruption
from services.worker.ports import Unheard
from services.worker.sandbox.command import Level
from services.worker.sandbox.levels import find_level
from tests.fixtures.lives import STARTED_AT
from tests.fixtures.misbehaving import Door
from tests.fixtures.passage import passable
from tests.fixtures.workers import QUICK, Shop, a_shop

LONG = {"stages": {"scaffold": 0, "code": 600, "deps": 0, "checks": 0}}
SHORT_LEASES = Policy.model_validate({"leases": {"job_s": 2, "heartbeat_s": 0.1}})
NO_HEARTBEATS = Policy.model_validate({"leases": {"job_s": 3600, "heartbeat_s": 600}})


@pytest_asyncio.fixture(scope="session")
async def spawner() -> AsyncIterator[Spawner]:
    modules = ["services.worker.rehearsal", "tests.fixtures.misbehaving"]
    spawner = Spawner(modules, environ={**os.environ, "HEADGATE_NATS_URL": "nats://worker:hush@127.0.0.1:1"})
    await spawner.start()
    yield spawner
    await spawner.stop()


@pytest_asyncio.fixture
async def shop(spawner: Spawner, tmp_path: Path) -> AsyncIterator[Shop]:
    async with a_shop(spawner, tmp_path) as shop:
        yield shop


@pytest_asyncio.fixture
async def hasty(spawner: Spawner, tmp_path: Path) -> AsyncIterator[Shop]:
    """Leases of 2 s, and ten heartbeats a second."""
    async with a_shop(spawner, tmp_path, policy=SHORT_LEASES) as shop:
        yield shop


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path / "open")


async def waiting(shop: Shop, door: Door) -> Job:
    """A job whose stage `code` has begun, and ends when the door is open."""
    job = await shop.dispatched("job-1", {"do": "waits", "for": str(door.path)}, pipeline="misbehaving")
    shop.hand(job)
    await shop.until("job-1", "code")
    return job


@pytest_asyncio.fixture(scope="session")
async def level(tmp_path_factory: pytest.TempPathFactory) -> Level:
    return await find_level("auto", workspaces=passable(tmp_path_factory.mktemp("workspaces")))


@pytest_asyncio.fixture
async def contained(spawner: Spawner, level: Level, tmp_path: Path) -> AsyncIterator[Shop]:
    """With commands as this machine can contain them."""
    policy = Policy.model_validate({"leases": {"job_s": 3, "heartbeat_s": 0.2}})
    async with a_shop(spawner, passable(tmp_path), policy=policy, level=level) as shop:
        yield shop


# ── the way through ───────────────────────────────────────────────────────────


async def test_an_attempt_that_goes_on_is_in_a_heartbeat_a_moment_after_its_claim(
    spawner: Spawner, tmp_path: Path, door: Door
) -> None:
    policy = Policy.model_validate({"leases": {"job_s": 60, "heartbeat_s": 10}})
    async with a_shop(spawner, tmp_path, policy=policy) as shop:
        await waiting(shop, door)

        await eventually(lambda: any("job-1:1" in beat.holders for beat in shop.scheduler.beats), within_s=8)


async def test_an_attempt_that_has_ended_by_then_is_in_none(spawner: Spawner, tmp_path: Path) -> None:
    async with a_shop(spawner, tmp_path, policy=NO_HEARTBEATS) as shop:
        shop.hand(await shop.dispatched("job-1", {"stages": {}}, pipeline="rehearsal"))
        await shop.until("job-1", "ready")
        await eventually(lambda: shop.attempts.is_idle)

        await shop.heartbeat.beat()

        assert [beat.holders for beat in shop.scheduler.beats if beat.holders] == []


async def answered(shop: Shop, answer: str, *, number: int) -> Job:
    """As admission writes it, and dispatched again."""
    name = f"job-1-{number:022x}"
    await shop.inputs.put(name, json.dumps(answer).encode())
    await shop.write("job-1", "answered", question=f"q{number}", answer=name)
    return await shop.write("job-1", "dispatched")


async def test_a_stage_that_asks_ends_with_its_work_and_begins_again_with_the_answer(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"do": "asks_twice"}, pipeline="misbehaving"))
    await shop.until("job-1", "awaiting_confirmation")
    first = shop.job("job-1")
    shop.hand(await answered(shop, "MIT", number=1))
    await shop.until("job-1", "awaiting_confirmation")
    second = shop.job("job-1")
    shop.hand(await answered(shop, "Ann", number=2))

    await shop.until("job-1", "ready", "failed")

    assert first.question is not None
    assert second.question is not None
    assert (first.question.id, first.question.text, first.question.choices) == ("q1", "Which licence?", ("MIT", "BSD"))
    assert (second.question.id, second.question.key, second.checkpoint is None) == ("q2", "name", False)
    assert first.expires_at is not None
    assert (first.finished_stages, first.groups) == (("scaffold",), ())
    said = [line.line for line in shop.lines.lines if line.line.startswith("given")]
    assert said == ["given MIT, found begun", "given MIT, found begun", "given Ann"]
    assert not any(path.name.startswith("job-1") for path in shop.workspaces.iterdir())


async def test_how_far_a_stage_is_is_told_twice_a_second_and_the_last_word_is_kept(shop: Shop, door: Door) -> None:
    job = await shop.dispatched("job-1", {"do": "tells_how_far", "for": str(door.path)}, pipeline="misbehaving")
    shop.hand(job)

    async def told_last() -> bool:
        said = (await shop.progress.of(["job-1"])).get("job-1")
        return said is not None and said.fraction == 1

    await eventually(told_last)
    said = (await shop.progress.of(["job-1"]))["job-1"]
    told, since = await shop.progress.revision(), shop.job("job-1").claimed_at
    door.open()
    await shop.until("job-1", "ready", "failed")

    assert (said.stage, said.attempt, said.user_id) == ("code", 1, job.user_id)
    assert said.message == "1000 of 1000, key=[masked]"
    assert since is not None
    assert told <= 2 + 2 * (shop.job("job-1").updated_at - since).total_seconds()


@pytest.mark.parametrize(
    ("schema", "why"),
    [('{"type": "stone"}', "stone"), ("[1]", "no object"), ('{"$ref": "http://127.0.0.1:1/"}', "127.0.0.1")],
)
async def test_what_nobody_can_answer_fails_the_job_by_its_schema(shop: Shop, schema: str, why: str) -> None:
    job = await shop.dispatched("job-1", {"do": "asks_by", "schema": schema}, pipeline="misbehaving")

    shop.hand(job)

    await shop.until("job-1", "failed")
    failed = shop.datas("job-1")[-1]
    assert isinstance(failed, JobFailed)
    assert (failed.fault, failed.summary) == ("system", "The stage asks what nobody can answer.")


async def test_a_stage_that_goes_on_after_it_has_asked_ends_with_its_question(shop: Shop) -> None:
    job = await shop.dispatched("job-1", {"do": "asks_and_goes_on"}, pipeline="misbehaving")

    shop.hand(job)

    await shop.until("job-1", "awaiting_confirmation", "failed", "ready")
    assert shop.job("job-1").question is not None


async def test_a_job_goes_through_its_stages_to_ready(shop: Shop) -> None:
    job = await shop.dispatched("job-1", {"stages": QUICK, "log_lines": 3})

    dispatch = shop.hand(job)

    await shop.until("job-1", "ready", "failed")
    assert shop.story("job-1") == "queued dispatched started scaffold code deps checks ready"
    assert dispatch.acked
    assert [line.line for line in shop.lines.lines] == [f"line {n} of 3 of iteration 1" for n in (1, 2, 3)]
    assert {(line.stage, line.attempt) for line in shop.lines.lines} == {("code", 1)}


async def test_what_a_job_made_is_kept_under_the_name_that_ready_tells(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"stages": QUICK}))
    await shop.until("job-1", "ready")

    ready = shop.datas("job-1")[-1]

    assert isinstance(ready, JobReady)
    assert ready.result == "job-1-1"
    with tarfile.open(fileobj=io.BytesIO(await shop.results.get("job-1-1") or b"")) as archive:
        assert archive.getnames() == ["rehearsal.json"]


async def test_an_attempt_leaves_no_file_behind(hasty: Shop) -> None:
    hasty.hand(await hasty.dispatched("job-1", LONG))
    await hasty.until("job-1", "code")
    there = list(hasty.workspaces.iterdir())
    await hasty.write("job-1", "cancel_requested")

    await hasty.until("job-1", "cancelled")

    assert [path.name for path in there] == ["job-1-1"]
    assert list(hasty.workspaces.iterdir()) == []


async def test_a_stage_that_fails_by_something_passing_is_run_again_and_told(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"stages": QUICK, "failing_tries": 2}))

    await shop.until("job-1", "ready", "failed")

    assert shop.story("job-1") == "queued dispatched started scaffold code try_failed try_failed deps checks ready"
    tried = [data.tried for data in shop.datas("job-1") if isinstance(data, JobTryFailed)]
    assert [(each.stage, each.tries, each.most, each.detail) for each in tried] == [
        ("code", 1, 3, "Try 1."),
        ("code", 2, 3, "Try 2."),
    ]
    assert "Try 1 of 4 failed: The rehearsal stumbled, as its input asked for. It is run again in" in said(shop)


async def test_a_stage_that_keeps_failing_fails_the_job_by_its_own_words(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"stages": QUICK, "failing_tries": 9}))

    job = await shop.until("job-1", "failed")

    assert shop.story("job-1").count("try_failed") == 3
    assert job.failure is not None
    assert job.failure.summary == "The rehearsal stumbled, as its input asked for."


async def test_a_pause_that_is_long_is_spent_without_slots(spawner: Spawner, tmp_path: Path) -> None:
    async with a_shop(
        spawner, tmp_path, policy=Policy.model_validate({"providers": {"give_back_after_s": 0.1}})
    ) as shop:
        shop.hand(await shop.dispatched("job-1", {"stages": QUICK, "failing_tries": 1}))

        job = await shop.until("job-1", "scheduled")

    assert shop.story("job-1") == "queued dispatched started scaffold code try_failed given_back"
    assert (job.groups, job.finished_stages) == ((), ("scaffold",))
    assert job.tried is not None
    assert job.scheduled_for == job.tried.again_at


async def test_an_attempt_that_follows_one_drained_in_a_pause_keeps_the_rest_of_it(
    shop: Shop, spawner: Spawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = StageRules(retries=1, backoff_s=(1.5, 1.5))
    known = spawner.pipelines["rehearsal"].model_copy(update={"rules": {"code": patient}})
    monkeypatch.setattr(spawner, "pipelines", {"rehearsal": known})
    job = await shop.dispatched("job-1", {"stages": QUICK, "failing_tries": 1})
    shop.hand(job)
    await eventually(lambda: "try_failed" in shop.story("job-1"))

    shop.running(job).interrupt(Interruption.DRAINED)
    await shop.until("job-1", "queued")
    shop.hand(await shop.write("job-1", "dispatched"))
    await shop.until("job-1", "ready", "failed")

    [tried] = [data.tried for data in shop.datas("job-1") if isinstance(data, JobTryFailed)]
    stages = [
        (data.stage, record.at)
        for record, data in zip(shop.records("job-1"), shop.datas("job-1"), strict=True)
        if isinstance(data, JobStage)
    ]
    assert shop.story("job-1").endswith("deps checks ready")
    assert dict(stages)["deps"] >= tried.again_at - timedelta(seconds=0.1)


async def test_a_stage_has_a_time_limit_beside_the_runs(
    shop: Shop, spawner: Spawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = spawner.pipelines["rehearsal"].model_copy(update={"rules": {"code": StageRules(timeout_s=0.2)}})
    monkeypatch.setattr(spawner, "pipelines", {"rehearsal": limited})
    shop.hand(await shop.dispatched("job-1", LONG))

    await shop.until("job-1", "failed")

    failed = shop.datas("job-1")[-1]
    assert isinstance(failed, JobFailed)
    assert (failed.fault, failed.summary) == ("timeout", "The stage code took longer than it may.")
    await eventually(lambda: "attempt" in {span.name for span in shop.spans.get_finished_spans()})
    wrong = {span.name: span.status.description for span in shop.spans.get_finished_spans() if not span.status.is_ok}
    assert wrong["stage code"] == wrong["attempt"] == failed.summary


def said(shop: Shop) -> str:
    return "\n".join(line.line for line in shop.lines.lines)


async def test_failed_checks_go_to_the_next_iteration_and_then_it_passes(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"stages": QUICK, "failing_cycles": 1}))

    job = await shop.until("job-1", "ready", "failed")

    iteration = "scaffold code deps checks"
    assert shop.story("job-1") == f"queued dispatched started {iteration} {iteration} ready"
    [said] = shop.lines.lines
    assert (said.stage, said.line) == ("checks", f"{CHECKS_FAILED}Told to fail by its input: failing_cycles is 1.")
    assert job.iteration == 2


async def test_a_used_up_batch_asks_and_a_confirmed_job_goes_on_with_the_next_iteration(shop: Shop) -> None:
    shop.hand(
        await shop.dispatched("job-1", {"stages": QUICK, "failing_cycles": 4})
    )  # a partner has 3 iterations a batch

    await shop.until("job-1", "awaiting_confirmation")
    asked = shop.datas("job-1")[-1]
    await shop.write("job-1", "confirmed", batch=3)
    shop.hand(await shop.write("job-1", "dispatched"))
    job = await shop.until("job-1", "ready")

    assert isinstance(asked, JobAwaitingConfirmation)
    assert (asked.iterations_used, asked.next_batch) == (3, 3)
    assert abs(asked.expires_at - shop.records("job-1")[1].at - timedelta(days=1)) < timedelta(seconds=30)
    assert job.iteration == 5


async def test_at_the_hard_cap_a_job_fails_and_says_so(spawner: Spawner, tmp_path: Path) -> None:
    policy = Policy.model_validate({"tiers": {"partner": {"cycles_per_batch": 2, "hard_cap": 2}}})
    async with a_shop(spawner, tmp_path, policy=policy) as shop:
        shop.hand(await shop.dispatched("job-1", {"stages": QUICK, "failing_cycles": 9}))

        await shop.until("job-1", "failed")

        failed = shop.datas("job-1")[-1]
        assert isinstance(failed, JobFailed)
        assert (failed.fault, failed.summary) == ("limit", "The checks still fail after 2 of 2 iterations.")


async def test_a_stage_that_breaks_fails_the_job_with_its_trace_as_debug_id(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.hand(await shop.dispatched("job-1", {"stages": QUICK, "fail_at": "deps"}))

    await shop.until("job-1", "failed")

    failed = shop.datas("job-1")[-1]
    assert isinstance(failed, JobFailed)
    assert (failed.fault, failed.debug_id) == ("job", job_trace(shop.job("job-1")).debug_id)
    assert shop.story("job-1").endswith("scaffold code deps failed")
    [line] = [each for each in caplog.records if each.message.startswith("the job failed: ")]
    assert line.message == f"the job failed: {failed.summary}"
    assert vars(line) | {"user_id": failed.user_id, "attempt": 1, "fault": "job"} == vars(line)


async def test_a_job_that_came_back_passes_through_its_finished_stages_and_runs_none_of_them(shop: Shop) -> None:
    slow = {"stages": {"scaffold": 600, "code": 600, "deps": 0, "checks": 0}}
    await shop.dispatched("job-1", slow)
    for word in ("started", "scaffold", "code", "deps", "given_back:lost", "dispatched"):
        await shop.write("job-1", word)

    shop.hand(shop.job("job-1"))

    await shop.until("job-1", "ready")
    assert shop.story("job-1").endswith("dispatched started (scaffold) (code) deps checks ready")


async def test_the_duration_is_the_time_that_attempts_had_the_job(shop: Shop) -> None:
    await shop.dispatched("job-1", {"stages": {**QUICK, "code": 0.3}})
    for word in ("started", "scaffold", "given_back:drained"):
        await shop.write("job-1", word)
    await asyncio.sleep(0.5)  # it waits in the queue, which is no work

    shop.hand(await shop.write("job-1", "dispatched"))
    job = await shop.until("job-1", "ready")

    assert job.duration_s is not None
    assert job.duration_s >= 0.3
    waited_s = (job.updated_at - job.created_at).total_seconds()
    assert job.duration_s <= waited_s - 0.45


# ── what is wrong before the first stage ──────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "asked", "fault", "said"),
    [
        (None, {}, "system", "The job's input is not there any more."),
        ({}, {"pipeline": "alchemy"}, "system", "There is no pipeline alchemy in the pool."),
        ({"stages": {"code": -1}}, {}, "job", "The job's input is not what the pipeline needs."),
    ],
)
async def test_what_cannot_be_run_fails_and_says_why(
    shop: Shop, content: dict[str, Any] | None, asked: dict[str, Any], fault: str, said: str
) -> None:
    shop.hand(await shop.dispatched("job-1", content, **asked))

    await shop.until("job-1", "failed")

    failed = shop.datas("job-1")[-1]
    assert isinstance(failed, JobFailed)
    assert (failed.fault, failed.summary) == (fault, said)


async def test_an_input_of_more_brackets_than_anybody_counts_is_refused_like_any_other(shop: Shop) -> None:
    job = await shop.dispatched("job-1", {}, pipeline="misbehaving")
    await shop.inputs.put(input_name("job-1", job.submission.input_digest), b"[" * 60_000)

    shop.hand(job)

    await shop.until("job-1", "failed")
    failed = shop.datas("job-1")[-1]
    assert isinstance(failed, JobFailed)
    assert failed.summary == "The job's input is not what the pipeline needs."
    gave_up, counted_them = "Reading it ended with RecursionError.", "Expecting value: line 1 column 60001 (char 60000)"
    assert failed.detail == (counted_them if sys.version_info >= (3, 14) else gave_up)


# ── told to stop ──────────────────────────────────────────────────────────────


async def test_a_cancelled_job_ends_with_the_heartbeat_that_says_so(hasty: Shop) -> None:
    hasty.hand(await hasty.dispatched("job-1", LONG))
    await hasty.until("job-1", "code")

    await hasty.write("job-1", "cancel_requested", by="ann")

    await hasty.until("job-1", "cancelled")
    cancelled = hasty.datas("job-1")[-1]
    assert isinstance(cancelled, JobCancelled)
    assert cancelled.by == "ann"


async def test_a_hint_is_as_good_as_a_heartbeat(spawner: Spawner, tmp_path: Path) -> None:
    async with a_shop(spawner, tmp_path, policy=NO_HEARTBEATS) as shop:
        job = await shop.dispatched("job-1", LONG)
        shop.hand(job)
        await shop.until("job-1", "code")

        shop.running(job).look_soon()  # it may be told before the log has it
        await shop.write("job-1", "cancel_requested")

        await shop.until("job-1", "cancelled")


async def test_a_cancel_that_comes_between_two_stages_stands_in_the_place_of_the_next(shop: Shop, door: Door) -> None:
    await waiting(shop, door)

    await shop.write("job-1", "cancel_requested")
    door.open()

    await shop.until("job-1", "cancelled")
    assert shop.story("job-1").endswith("code cancel_requested cancelled")


@pytest.mark.parametrize(("event", "end"), [("stage", "ready"), ("cancelled", "cancelled")])
async def test_what_a_stage_asked_of_models_is_told_by_the_event_after_it(
    shop: Shop, door: Door, event: str, end: str
) -> None:
    job = await shop.dispatched("job-1", {"do": "calls_a_model", "for": str(door.path)}, pipeline="misbehaving")
    shop.hand(job)
    await shop.until("job-1", "code")

    if end == "cancelled":
        await shop.write("job-1", "cancel_requested")
    door.open()
    await shop.until("job-1", end)

    said = [data for data in shop.datas("job-1") if isinstance(data, AttemptData) and data.usage]
    [usage] = said[0].usage
    assert [each.EVENT.value for each in said] == [event]
    assert (usage.provider, usage.model) == ("other", "m-1")
    assert (usage.calls, usage.input_tokens, usage.took_ms) == (2, 20, 3000)
    assert [(each.stage, each.calls) for each in shop.job("job-1").model_usage] == [("code", 2)]


async def test_a_stage_that_hears_no_sigterm_is_killed_with_all_that_it_started(hasty: Shop) -> None:
    hasty.hand(await hasty.dispatched("job-1", {"do": "is_stubborn"}, pipeline="misbehaving"))
    line = await eventually(lambda: hasty.lines.lines and hasty.lines.lines[0].line)
    pids = [int(pid) for pid in str(line).removeprefix("pids=").split(",")]

    await hasty.write("job-1", "cancel_requested")

    await hasty.until("job-1", "cancelled")
    assert [_lives(pid) for pid in pids] == [False, False]


async def test_a_stage_that_is_ended_may_clear_up(hasty: Shop) -> None:
    hasty.hand(await hasty.dispatched("job-1", {"do": "clears_up"}, pipeline="misbehaving"))
    await eventually(lambda: hasty.lines.lines)  # it is in the middle of it

    await hasty.write("job-1", "cancel_requested")

    await hasty.until("job-1", "cancelled")
    assert hasty.lines.lines[-1].line == "cleared up, cancelling is True"


async def test_a_run_ends_at_its_deadline_whatever_the_clocks_of_the_machines_say(shop: Shop) -> None:
    job = await shop.dispatched("job-1", LONG)
    assert job.deadline is None
    name = input_name("job-2", job.submission.input_digest)
    await shop.inputs.put(name, b"{}")
    await shop.write("job-2", "queued", submission=job.submission)
    in_two_seconds = STARTED_AT + timedelta(seconds=2 + 2)  # the dispatch is from second 2 of that year
    await shop.inputs.put(name, b'{"stages": {"scaffold": 600}}')

    shop.hand(await shop.write("job-2", "dispatched", deadline=in_two_seconds))

    await shop.until("job-2", "failed")
    failed = shop.datas("job-2")[-1]
    assert isinstance(failed, JobFailed)
    assert (failed.fault, failed.summary) == ("timeout", "The stage scaffold was ended at the deadline of its run.")


async def test_a_drained_worker_hands_over_what_is_finished(spawner: Spawner, tmp_path: Path) -> None:
    async with a_shop(spawner, tmp_path, drain_grace_s=0.4) as shop:
        shop.hand(await shop.dispatched("job-1", {"stages": {"scaffold": 0, "code": 0, "deps": 600}}))
        await shop.until("job-1", "deps")

        await shop.attempts.stop()

        handed = shop.datas("job-1")[-1]
        assert isinstance(handed, JobGivenBack)
        assert (handed.reason, handed.finished_stages) == ("drained", ("scaffold", "code"))


async def test_a_claim_that_comes_through_when_the_grace_is_over_is_handed_over_at_once(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_shop(spawner, tmp_path, drain_grace_s=0) as shop:
        job = await shop.dispatched("job-1", LONG)
        append, asked, go_on = shop.log.append, asyncio.Event(), asyncio.Event()

        async def slowly(*words: Any, **how: Any) -> Any:
            asked.set()
            await go_on.wait()
            return await append(*words, **how)

        monkeypatch.setattr(shop.log, "append", slowly)
        shop.hand(job)
        await asked.wait()

        stopping = asyncio.create_task(shop.attempts.stop())
        await eventually(lambda: shop.attempts._over)
        go_on.set()
        await stopping

        assert shop.story("job-1") == "queued dispatched started given_back"


async def test_late_in_the_grace_a_job_is_handed_over_between_two_stages(
    spawner: Spawner, tmp_path: Path, door: Door
) -> None:
    async with a_shop(spawner, tmp_path, drain_grace_s=60) as shop:
        await waiting(shop, door)
        stopping = asyncio.create_task(shop.attempts.stop())
        await eventually(lambda: shop.attempts.draining)
        assert shop.attempts._draining_since_ms is not None
        shop.attempts._draining_since_ms -= 30_000  # half of the grace

        door.open()
        await stopping

        assert shop.story("job-1").endswith(
            "code deps given_back"
        )  # that deps began is how the log knows of code's end
        assert shop.job("job-1").finished_stages == ("scaffold", "code")


async def test_early_in_the_grace_a_short_job_ends_by_itself(spawner: Spawner, tmp_path: Path, door: Door) -> None:
    async with a_shop(spawner, tmp_path, drain_grace_s=600) as shop:
        await waiting(shop, door)

        stopping = asyncio.create_task(shop.attempts.stop())
        await eventually(lambda: shop.attempts.draining)
        door.open()
        await stopping

        assert shop.job("job-1").status == "ready"


async def test_a_worker_that_drains_claims_nothing(shop: Shop) -> None:
    job = await shop.dispatched("job-1", {"stages": QUICK})
    await shop.attempts.stop()

    dispatch = shop.hand(job)

    await eventually(lambda: dispatch.naked)
    assert shop.story("job-1") == "queued dispatched"


# ── not ours any more ─────────────────────────────────────────────────────────


async def test_an_attempt_whose_lease_has_ended_writes_nothing_and_has_no_process(hasty: Shop) -> None:
    hasty.hand(await hasty.dispatched("job-1", {"do": "is_stubborn"}, pipeline="misbehaving"))
    line = await eventually(lambda: hasty.lines.lines and hasty.lines.lines[0].line)
    pids = [int(pid) for pid in str(line).removeprefix("pids=").split(",")]

    hasty.scheduler.away = Unheard.SILENT

    await eventually(lambda: not list(hasty.attempts))
    assert [_lives(pid) for pid in pids] == [False, False]
    assert hasty.story("job-1").endswith("scaffold code")


async def test_an_attempt_goes_on_while_nobody_could_give_it_away(hasty: Shop) -> None:
    hasty.hand(await hasty.dispatched("job-1", {"stages": {**QUICK, "code": 5}}))
    await hasty.until("job-1", "code")

    hasty.scheduler.away = Unheard.NOBODY  # for more than two leases

    await hasty.until("job-1", "ready")


async def test_a_zombie_writes_nothing_into_a_job_that_was_given_away(
    shop: Shop, door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    await waiting(shop, door)

    await shop.write("job-1", "given_back:lost")
    door.open()

    await eventually(lambda: not list(shop.attempts))
    assert shop.story("job-1").endswith("code given_back")
    assert "is not ours any more" in caplog.text


async def test_a_claim_that_another_has_made_is_dropped(shop: Shop) -> None:
    job = await shop.dispatched("job-1", {"stages": QUICK})
    await shop.write("job-1", "started", worker="worker-2")
    late = shop.hand(job)
    late.record = shop.records("job-1")[1]

    await eventually(lambda: late.acked)

    assert shop.story("job-1") == "queued dispatched started"


async def test_a_job_whose_end_was_asked_for_before_its_claim_is_cancelled_without_a_start(shop: Shop) -> None:
    await shop.dispatched("job-1", {"stages": QUICK})
    await shop.write("job-1", "cancel_requested")
    job = shop.job("job-1")
    dispatch = shop.hand(job)
    dispatch.record = shop.records("job-1")[1]

    await eventually(lambda: dispatch.acked)

    assert shop.story("job-1") == "queued dispatched cancel_requested cancelled"


async def test_a_stage_that_ends_while_the_log_is_away_is_written_when_it_is_back(
    shop: Shop, door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    await waiting(shop, door)

    shop.log.wire.connected = False
    door.open()
    await eventually(lambda: "stage waits to be written" in caplog.text)
    meanwhile = shop.story("job-1")
    shop.log.wire.connected = True

    await shop.until("job-1", "ready")
    assert meanwhile.endswith("code")


# ── slots inside a job ────────────────────────────────────────────────────────


async def test_a_provider_is_held_during_code_and_named_in_heartbeats(hasty: Shop) -> None:
    job = await hasty.dispatched("job-1", {"stages": {**QUICK, "code": 1.5}, "provider": "ollama"})
    hasty.hand(job)

    lease = (await eventually(lambda: hasty.running_leases(job)))[0]
    await hasty.until("job-1", "ready")

    assert (lease.lease, lease.holder, lease.groups) == ("job-1-1-1", "job-1:1", ("llm:ollama", "llm:global"))
    assert any(lease in beat.leases for beat in hasty.scheduler.beats)
    assert hasty.scheduler.held == {}


async def test_a_stage_waits_for_its_slots_and_holds_none_of_them_meanwhile(hasty: Shop) -> None:
    hasty.scheduler.limits = {"group:project-1:db": 1}
    hasty.scheduler.held["another"] = ("group:project-1:db",)
    job = await hasty.dispatched("job-1", {"do": "waits_for_a_slot"}, pipeline="misbehaving")
    hasty.hand(job)
    await eventually(lambda: len(hasty.scheduler.asked) >= 2)  # it asks again, as a grant may be lost
    waiting = dict(hasty.scheduler.held)

    del hasty.scheduler.held["another"]

    await hasty.until("job-1", "ready")
    assert waiting == {"another": ("group:project-1:db",)}
    asked = hasty.scheduler.asked[0]
    assert (asked.groups, asked.ttl_ms) == (("llm:ollama", "llm:global", "group:project-1:db"), 7000)


async def test_a_stage_that_will_not_wait_is_told_that_there_is_no_slot(shop: Shop) -> None:
    shop.scheduler.limits = {"group:project-1:db": 0}

    shop.hand(await shop.dispatched("job-1", {"do": "tries_a_slot"}, pipeline="misbehaving"))

    await shop.until("job-1", "ready")
    assert shop.lines.lines[0].line == "none: no slot of db within 0 s"


async def test_an_attempt_whose_slot_was_forced_free_is_ended_and_said_to_be_until_it_is_back(
    shop: Shop,
) -> None:
    job = await shop.dispatched("job-1", {"stages": {"scaffold": 0, "code": 60}})
    shop.hand(job)
    await shop.until("job-1", "code")

    shop.running(job).interrupt(Interruption.FORCED)

    await eventually(lambda: shop.scheduler.beats[-1].stopped)
    said = shop.scheduler.beats[-1]
    assert (said.stopped, said.holders, shop.story("job-1").split()[-1]) == (("job-1:1",), (), "code")
    await shop.write("job-1", "given_back:forced")
    await eventually(lambda: not shop.attempts.stopped)


async def test_a_slot_that_was_taken_away_breaks_off_what_needed_it(hasty: Shop) -> None:
    hasty.hand(await hasty.dispatched("job-1", {"do": "loses_a_slot"}, pipeline="misbehaving"))
    await eventually(lambda: hasty.lines.lines)

    hasty.scheduler.lost.append("job-1-1-1")

    await hasty.until("job-1", "ready")
    assert hasty.lines.lines[-1].line == "lost: the slot of db was taken away"


# ── strangers' code ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("deed", "summary"),
    [
        ("exits", "The stage code ended its own process."),
        ("raises", "The stage code ended with ZeroDivisionError."),
        ("talks_nonsense", "The stage code gave an answer that makes no sense."),
        ("never_ends_its_line", "The stage code gave an answer that makes no sense."),
        ("links_its_result", "The result cannot be read."),
        ("cancels_itself", "The stage code cancelled itself."),
        ("says_what_is_no_text", "named ?"),
    ],
)
async def test_what_a_stage_does_to_itself_fails_its_job_and_tells_no_secret(
    shop: Shop, deed: str, summary: str
) -> None:
    shop.hand(await shop.dispatched("job-1", {"do": deed}, pipeline="misbehaving"))

    await shop.until("job-1", "failed")

    failed = shop.datas("job-1")[-1]
    assert isinstance(failed, JobFailed)
    assert (failed.summary, failed.fault) == (summary, "job")
    assert "/" not in failed.detail


@pytest.mark.parametrize(
    ("deed", "why"),
    [
        ("is_killed", "its process was killed, as where memory runs out"),
        ("finds_the_disk_full", "No space left on device"),
        ("is_in_the_way_of_its_checkpoint", "No space left on device"),
    ],
)
async def test_where_the_machine_gives_out_the_attempt_is_left_to_its_lease_and_its_user_is_told(
    shop: Shop, deed: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = await shop.dispatched("job-1", {"do": deed}, pipeline="misbehaving")
    shop.hand(job)

    await eventually(lambda: "this machine gave out under job-1-1" in caplog.text)
    await eventually(lambda: not list(shop.attempts))

    assert shop.story("job-1").endswith("scaffold code")
    (line,) = await eventually(lambda: [line.line for line in shop.lines.lines])
    assert line == f"… [the worker's machine gave out: {why}. This attempt ends here]"
    assert list(shop.workspaces.iterdir()) == []
    assert 'stage_seconds_count{outcome="gave_out",pipeline="misbehaving",stage="code"} 1.0' in shop.metrics()
    await shop.write("job-1", "given_back:lost")  # as the schedulers do when the lease has ended
    assert (shop.job("job-1").status, shop.job("job-1").lost) == ("queued", 1)


async def test_a_result_that_this_machine_cannot_keep_is_not_the_jobs_fault(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"do": "stands_in_the_way_of_its_result"}, pipeline="misbehaving"))

    await shop.until("job-1", "failed")

    failed = shop.datas("job-1")[-1]
    assert isinstance(failed, JobFailed)
    assert (failed.summary, failed.fault) == ("The result cannot be kept.", "system")
    assert "/" not in failed.detail


async def test_a_stage_sees_neither_credentials_nor_the_workers_files(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"do": "shows_its_environment"}, pipeline="misbehaving"))

    await shop.until("job-1", "ready")

    said = [line.line for line in shop.lines.lines]
    names = {line.partition("=")[0] for line in said} - {"cwd", "descriptors"}
    assert names <= {*PASSED_ON, "PYTHONPATH", "PYTHONUNBUFFERED", "HOME", "TMPDIR"}
    home = shop.workspaces / "job-1-1"
    workspace = home / "kept" / "workspace"  # commands of the job write there
    assert {f"HOME={home}", f"TMPDIR={home}", f"cwd={workspace}"} <= set(said)
    assert "hush" not in " ".join(said)


@pytest.mark.parametrize("secret", ["sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t", "the words that this worker was given"])
async def test_a_secret_comes_through_neither_in_the_log_nor_in_what_the_user_reads(
    spawner: Spawner, tmp_path: Path, secret: str
) -> None:
    given = {"openai": ProviderEndpoint(url="http://x", model="m", key="the words that this worker was given")}
    async with a_shop(spawner, tmp_path, providers=given) as shop:
        shop.hand(await shop.dispatched("job-1", {"do": "tells_all", "secret": secret}, pipeline="misbehaving"))

        await shop.until("job-1", "failed")

        failed, said = shop.datas("job-1")[-1], [line.line for line in shop.lines.lines]
        assert isinstance(failed, JobFailed)
        assert failed.summary == "refused: [masked]"
        assert failed.detail == "token=[masked] at [path] on [address], see src/app.py:3"
        assert said == ["calling with [masked]", "[masked]", "[masked]", "[masked]", "last line"]


async def test_a_command_of_a_stage_says_its_lines_into_the_log_and_knows_nothing_of_ours(contained: Shop) -> None:
    contained.hand(await contained.dispatched("job-1", {"do": "runs_a_command"}, pipeline="misbehaving"))

    await contained.until("job-1", "ready")

    said = [line.line for line in contained.lines.lines]
    assert said[-1] == "3 itself True", said
    assert "HEADGATE" not in said[0]


async def test_the_end_of_a_job_ends_its_commands(contained: Shop) -> None:
    words = uuid4().hex
    contained.hand(await contained.dispatched("job-1", {"do": "runs_for_ever", "words": words}, pipeline="misbehaving"))
    lines = contained.lines.lines
    await eventually(lambda: len(lines) > 1 and any(_says(pid, words) for pid in _pids()))

    await contained.write("job-1", "cancel_requested")

    await contained.until("job-1", "cancelled")
    assert not any(_says(pid, words) for pid in _pids())


async def test_a_long_line_and_a_long_log_are_cut_and_say_so(spawner: Spawner, tmp_path: Path) -> None:
    policy = Policy.model_validate({"runs": {"log_lines": 10}})
    async with a_shop(spawner, tmp_path, policy=policy) as shop:
        shop.hand(await shop.dispatched("job-1", {"do": "shouts"}, pipeline="misbehaving"))

        await shop.until("job-1", "ready")

        lines = [line.line for line in shop.lines.lines]
        assert len(lines[0]) == 8192
        assert lines[0].endswith("… [cut: the line has 20000 characters]")
        assert len(lines) == 11
        assert lines[-1] == "… [cut: the log of an attempt has at most 10 lines]"


# ── what is seen of it ────────────────────────────────────────────────────────


async def test_each_stage_is_a_span_of_the_jobs_own_trace(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"stages": QUICK, "failing_cycles": 1}))
    await shop.until("job-1", "ready")

    spans = shop.spans.get_finished_spans()

    [attempt] = [span for span in spans if span.name == "attempt"]
    stages = [span for span in spans if span.name.startswith("stage ")]
    assert "process headgate.jobs.v1.{job}.{user}.{project}.dispatched.{pool}" in {span.name for span in spans}
    assert [span.name for span in stages] == [f"stage {name}" for name in (*QUICK, *QUICK)]
    root = job_trace(shop.job("job-1")).root
    assert {span.context.trace_id for span in (attempt, *stages) if span.context} == {root.trace_id}
    parents = [span.parent.span_id for span in (attempt, *stages) if span.parent]
    own = attempt.context.span_id if attempt.context else None
    assert parents == [root.span_id, *[own] * len(stages)]
    outcomes = [(span.attributes or {}).get("headgate.outcome") for span in stages]
    assert outcomes == ["finished"] * 3 + ["checks_failed"] + ["finished"] * 4
    assert [span.status.description for span in stages if not span.status.is_unset] == [
        "Told to fail by its input: failing_cycles is 1."
    ]


async def test_metrics_tell_stages_by_outcome_and_attempts_by_their_end(shop: Shop) -> None:
    shop.hand(await shop.dispatched("job-1", {"stages": QUICK, "fail_at": "code"}))
    await shop.until("job-1", "failed")

    text = shop.metrics()

    assert 'headgate_worker_jobs_running{pool="default"} 0.0' in text
    assert 'headgate_worker_attempts_total{event="failed",pool="default"} 1.0' in text
    assert 'headgate_worker_stage_seconds_count{outcome="finished",pipeline="rehearsal",stage="scaffold"} 1.0' in text
    assert 'headgate_worker_stage_seconds_count{outcome="failed",pipeline="rehearsal",stage="code"} 1.0' in text


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _says(pid: int, words: str) -> bool:
    try:
        return words in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _lives(pid: int) -> bool:
    """Whether it runs; one that has ended and that nobody has asked about yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
    except FileNotFoundError:
        return False
    return state != "Z"

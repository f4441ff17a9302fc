"""The client against a system that really runs, by both drivers: the quick start, kills under a stream, operators."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from headgate import (
    Conflict,
    End,
    Headgate,
    Invalid,
    Job,
    LogLine,
    NotAllowed,
    NotFound,
    NotSignedIn,
    Snapshot,
    StatusChanged,
    SyncHeadgate,
    order,
    phase,
)
from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.fixtures.installation import Installation, installed
from tests.fixtures.wheels import ALONE, CLIENT, QUICK_START, built, installed_alone

pytestmark = pytest.mark.up

QUICK = {"stages": dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.02), "log_lines": 2}
SLOW = {"stages": {"scaffold": 0.1, "code": 4.0, "deps": 0.1, "checks": 0.1}, "log_lines": 40}
LONG = {"stages": {"code": 600}}


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installed(tmp_path_factory.mktemp("client"), workers=1, slots=4) as there:
        async with Headgate(there.up.url, there.up.operator_token) as boss:

            async def heard() -> bool:
                return bool(await boss.ops.workers())

            await eventually(heard)
        yield there


@pytest_asyncio.fixture
async def hg(there: Installation) -> AsyncIterator[Headgate]:
    async with Headgate(there.up.url, there.token("ann", Tier.CTO_SCALE)) as hg:
        yield hg


@pytest_asyncio.fixture
async def boss(there: Installation) -> AsyncIterator[Headgate]:
    async with Headgate(there.up.url, there.token("boss", Tier.CTO_SCALE, scope="jobs:read jobs:write ops")) as boss:
        yield boss


async def rehearsed(hg: Headgate, work: dict[str, Any], **more: Any) -> Job:
    return await hg.submit(work, project="shop", pipeline="rehearsal", **more)


async def until(job: Job, *statuses: str) -> None:
    async def reached() -> bool:
        return (await job.refreshed()).status in statuses

    await eventually(reached, every_s=0.1)


async def test_a_job_is_submitted_followed_and_its_result_unpacked(hg: Headgate, tmp_path: Path) -> None:
    job = await hg.submit("a URL shortener", project="shop")
    events = [event async for event in job.events()]
    result = await job.result()
    files = await result.extract(tmp_path / "out")
    saved = await result.save(tmp_path / "result.tar.gz")

    statuses = [event.status for event in events if isinstance(event, StatusChanged)]
    assert statuses[-5:] == ["scaffold", "code", "deps", "checks", "ready"]
    assert isinstance(events[-1], End)
    assert (tmp_path / "out").joinpath(next(f for f in files if f.name == "pyproject.toml")).is_file()
    assert saved.stat().st_size == result.size == len(await result.content())
    assert (await job.refreshed()).has_ended


async def test_without_a_loop_it_is_the_same(there: Installation, tmp_path: Path) -> None:
    def used() -> None:
        with SyncHeadgate(there.up.url, there.token("bob", Tier.CTO_SCALE)) as hg:
            job = hg.submit(QUICK, project="shop", pipeline="rehearsal")
            assert isinstance(list(job.events())[-1], End)
            assert job.wait(timeout_s=60).status == "ready"
            assert job.result().extract(tmp_path)
            assert job.result().save(tmp_path / "r.tar.gz").stat().st_size == job.result().size
            assert "line 2 of 2" in job.log()
            assert [line.line for line in job.lines()][-1].startswith("line 2 of 2")
            assert [each.event for each in job.history()][-1] == "ready"
            assert [each.id for each in hg.jobs(limit=1)] == [job.id]
            with pytest.raises(Conflict):
                job.cancel()
            with pytest.raises(NotAllowed):
                hg.ops.pause("all")

    await asyncio.to_thread(used)


async def test_a_key_makes_a_repetition_the_same_job(hg: Headgate) -> None:
    first, second = [await rehearsed(hg, QUICK, key="order-4711") for _ in range(2)]
    other = await rehearsed(hg, QUICK)

    assert first.id == second.id != other.id
    with pytest.raises(Invalid, match="another request"):
        await rehearsed(hg, LONG, key="order-4711")


async def test_a_stream_goes_on_when_every_service_behind_it_is_killed(there: Installation, hg: Headgate) -> None:
    job = await rehearsed(hg, SLOW)
    events: list[Any] = []
    killed = ["notifier", "admission"]
    async for event in job.events():
        events.append(event)
        if killed and isinstance(event, LogLine):
            await there.kill(killed.pop())
    history = [event.id for event in events if event.id and not isinstance(event, Snapshot)]
    lines = [event.line for event in events if isinstance(event, LogLine)]

    assert not killed
    assert isinstance(events[-1], End)
    assert history == list(dict.fromkeys(history))
    assert lines == [event.line async for event in job.lines()]


async def test_waiting_gives_the_job_as_it_ended(hg: Headgate) -> None:
    failed = await (await rehearsed(hg, QUICK | {"fail_at": "deps"})).wait(timeout_s=60)
    again = await (await failed.retry()).wait()

    assert (failed.status, again.status) == ("failed", "failed")
    assert failed.state.error is not None
    assert again.id != failed.id


async def test_waiting_is_given_up_and_the_job_goes_on(hg: Headgate) -> None:
    job = await rehearsed(hg, LONG)

    with pytest.raises(TimeoutError):
        await job.wait(timeout_s=0.01)

    cancelled = await job.cancel(reason="enough")
    assert (await cancelled.wait(timeout_s=60)).status == "cancelled"


async def test_a_question_is_answered_once(hg: Headgate) -> None:
    job = await rehearsed(hg, QUICK | {"failing_cycles": 6})
    with pytest.raises(Conflict):
        await job.confirm()
    await until(job, "awaiting_confirmation")

    await job.confirm()

    assert (await job.wait()).status in {"ready", "failed"}


async def test_many_are_asked_for_at_once_and_each_has_its_outcome(hg: Headgate) -> None:
    good = order(LONG, project="shop", pipeline="rehearsal", labels={"batch": "one"})
    wrong = order(LONG, project="shop", pipeline="rehearsal", priority="soon")

    taken, refused = await hg.batch([good, wrong])
    cancelled = await hg.cancel_all(label="batch=one")

    assert isinstance(taken, Job)
    assert isinstance(refused, Invalid)
    assert "priority" in refused.fields
    assert [each.id for each in cancelled if isinstance(each, Job)] == [taken.id]


async def test_a_workflow_is_submitted_shown_and_cancelled(hg: Headgate) -> None:
    phases = [phase(LONG, pipeline="rehearsal"), phase(LONG, pipeline="rehearsal")]

    workflow = await hg.submit_workflow(phases, project="shop")
    shown = await hg.workflow(workflow.id)
    await hg.cancel_workflow(workflow.id, reason="enough")

    assert [each.id for each in shown.phases] == [each.id for each in workflow.phases]
    assert [job.id async for job in hg.jobs(workflow=workflow.id)] == [each.id for each in reversed(shown.phases)]


async def test_a_dry_run_and_what_is_used_of_a_day(hg: Headgate) -> None:
    before = await hg.usage()

    tried = await hg.dry_run("a URL shortener", project="shop")

    assert tried.queue is not None
    assert await hg.usage() == before


async def test_operators_look_and_act(hg: Headgate, boss: Headgate) -> None:
    paused = await boss.ops.pause("user:ann", reason="a test")
    job = await rehearsed(hg, QUICK)
    explained = await job.explain()
    queue = await boss.queue()
    await job.reprioritize("low")
    resumed = await boss.ops.resume("user:ann")
    limited = await boss.ops.set_limit("workflows", 7, reason="a test")
    await boss.ops.unset_limit("workflows")
    audit = [record.act async for record in boss.ops.audit()]

    assert (paused.changed, resumed.changed, limited.limit) == (True, True, 7)
    assert "paused" in {each.reason for each in explained.waiting_on}
    assert job.id in {line.job_id for line in queue.jobs or ()}
    assert {"paused", "resumed", "limit_set", "limit_unset"} <= set(audit)
    assert {"workflows", "pool:default"} <= {group.group for group in await boss.ops.groups()}
    assert (await boss.ops.group("pool:default")).limit == 4
    assert (await boss.ops.analytics()).waits is not None
    assert (await job.wait()).status == "ready"


async def test_what_is_refused_has_its_class(there: Installation, hg: Headgate) -> None:
    with pytest.raises(NotFound, match="no job nobodys"):
        await hg.job("nobodys")
    with pytest.raises(NotFound):
        _ = [event async for event in hg.events("nobodys")]
    with pytest.raises(Invalid) as wrong:
        await hg.submit("x", project="shop", priority="soon")
    async with Headgate(there.up.url, "no-token") as stranger:
        with pytest.raises(NotSignedIn):
            await stranger.usage()
    job = await rehearsed(hg, LONG)
    with pytest.raises(Conflict, match="once it is ready"):
        await job.result()
    await job.cancel()

    assert set(wrong.value.fields) == {"priority"}


async def test_the_quick_start_runs_with_the_wheel_and_nothing_else_of_ours(
    there: Installation, tmp_path: Path
) -> None:
    alone = installed_alone(built(CLIENT, tmp_path / "wheels"), "headgate", tmp_path / "alone")
    environ = {"HEADGATE_URL": there.up.url, "HEADGATE_TOKEN": there.token("eve", Tier.CTO_SCALE)}
    words = (*ALONE, f"import sys; sys.path[:0] = [{str(alone)!r}]\n{QUICK_START}")

    ran = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, env=environ, stdout=PIPE, stderr=PIPE)
    said, complained = await ran.communicate()

    assert ran.returncode == 0, complained.decode()
    assert said.decode().splitlines()[-2:] == ["ready", "end"]
    assert list((tmp_path / "out").rglob("pyproject.toml"))

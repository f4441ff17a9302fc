"""A Headgate in memory, as an application's own tests have it: real rules, real streams, virtual time."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from headgate import (
    Asked,
    Conflict,
    End,
    Headgate,
    Invalid,
    NoSlot,
    NotFound,
    OverShare,
    SlotLost,
    StatusChanged,
    SyncHeadgate,
    new_lease,
)
from headgate.testing import NOW, NothingHappens
from headgate_pipeline import Context, Pipeline, StageFailed, TryAgain, input_as, stage
from libs.runtime.eventually import PATIENCE_S, eventually
from libs.twins import Exchange, TwinFailed, TwinRequest

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


async def test_the_examples_of_its_page_hold() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## In your own tests")[2]
    [example] = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], flags=re.DOTALL)
    names: dict[str, Any] = {}

    exec(compile(example, PAGE, "exec"), names)  # noqa: S102 - our own page

    tests = [each for name, each in names.items() if name.startswith("test_")]
    assert len(tests) == 4
    for test in tests:
        await test()


async def test_a_build_is_done_once_nothing_is_left_to_do(tmp_path: Path) -> None:
    async with Headgate.testing() as hg:
        job = await hg.submit("a URL shortener", project="shop")
        assert job.status == "queued"

        await hg.testing.run()

        assert (await job.wait()).status == "ready"
        assert await (await job.result()).extract(tmp_path) == (tmp_path / "README.md",)
        assert (tmp_path / "README.md").read_text() == "a URL shortener\n"


async def test_who_waits_for_a_job_lets_its_time_pass() -> None:
    async with Headgate.testing() as hg:
        hg.testing.lasts(600)
        before = hg.testing.now

        job = await (await hg.submit("a URL shortener", project="shop")).wait()

        assert (job.status, (hg.testing.now - before).total_seconds() >= 2400) == ("ready", True)


async def test_its_events_come_as_from_any_other() -> None:
    async with Headgate.testing() as hg:
        job = await hg.submit("a URL shortener", project="shop")

        events = [event async for event in job.events()]

        statuses = [event.data["status"] for event in events if isinstance(event, StatusChanged)]
        assert [each for each in statuses if each in ("scaffold", "code", "deps", "checks", "ready")] == [
            *("scaffold", "code", "deps", "checks", "ready")
        ]
        assert isinstance(events[-1], End)


async def test_a_job_fails_as_the_test_has_said() -> None:
    async with Headgate.testing() as hg:
        failing = await hg.submit("one that fails", project="shop")
        other = await hg.submit("another", project="shop")
        hg.testing.fails("No model answers.", detail="Three were asked.", stage="code", job=failing)

        failing = await failing.wait()

        assert (failing.status, failing.state.stage) == ("failed", "code")
        assert failing.state.error is not None
        assert (failing.state.error.summary, failing.state.error.detail) == ("No model answers.", "Three were asked.")
        assert (await other.wait()).status == "ready"


async def test_what_passes_is_tried_again() -> None:
    async with Headgate.testing() as hg:
        hg.testing.fails("The model was away.", stage="code", passes_after=2)

        job = await (await hg.submit("a URL shortener", project="shop")).wait()

        assert job.status == "ready"
        assert [each.event for each in await job.history()].count("try_failed") == 2


async def test_a_question_waits_for_its_answer() -> None:
    async with Headgate.testing() as hg:
        job = await hg.submit("a URL shortener", project="shop")
        hg.testing.asks("Which licence?", choices=["MIT", "BSD"], job=job)
        await hg.testing.run()
        job = await job.refreshed()
        assert job.state.question is not None
        assert (job.status, job.state.question.text) == ("awaiting_confirmation", "Which licence?")

        with pytest.raises(Invalid):
            await job.answer("GPL")
        await job.answer("MIT")

        assert (await job.wait()).status == "ready"
        assert "Which licence? MIT" in await job.log()
        with pytest.raises(Conflict):
            await job.answer("BSD")


async def test_failed_checks_end_in_the_question_whether_to_continue() -> None:
    async with Headgate.testing() as hg:
        hg.testing.fails_checks(3)
        job = await hg.submit("a URL shortener", project="shop")

        async for event in job.events():
            if isinstance(event, Asked):
                break

        job = await job.refreshed()
        assert job.status == "awaiting_confirmation"

        await job.confirm()

        assert (await job.wait()).status == "ready"


async def test_others_share_the_queue_and_see_none_of_it() -> None:
    async with Headgate.testing() as hg, hg.testing.user("bob") as bob, hg.testing.operator() as operator:
        await operator.ops.pause("all", reason="a test")
        job = await hg.submit("a URL shortener", project="shop")
        with pytest.raises(NotFound):
            await bob.job(job.id)

        await hg.testing.run()
        assert (await job.refreshed()).status == "queued"
        await operator.ops.resume("all")

        assert (await job.wait()).status == "ready"


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"policy": {"queue": {"cap": -1}}}, ValueError, "queue.cap: -1 is not 1 or more"),
        ({"policy": "/no/such/policy.toml"}, OSError, "No such file"),
        ({"projects": "shop"}, TypeError, "name a list of them"),
        ({"scopes": "jobs:read"}, TypeError, "name a list of them"),
    ],
)
async def test_a_headgate_that_cannot_be_says_what_is_wrong(
    given: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        async with Headgate.testing(**given):
            pass


async def test_what_no_build_makes_and_no_time_does_is_refused_where_it_is_said() -> None:
    async with Headgate.testing() as hg:
        for name in ("../x", "/x", ""):
            with pytest.raises(ValueError, match="a result holds no"):
                hg.testing.makes({name: "x"})
        with pytest.raises(TypeError, match="a text or bytes, not int"):
            hg.testing.makes({"x": 5})  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match="passes forwards"):
            await hg.testing.advance(-5)


async def test_a_retry_after_is_waited_for_in_the_time_there() -> None:
    async with Headgate.testing(policy={"submissions": {"per_minute": 5}}) as hg:
        before = hg.testing.now

        jobs = [await hg.submit(f"job {n}", project="shop") for n in range(8)]

        assert len({job.id for job in jobs}) == 8
        assert (hg.testing.now - before).total_seconds() >= 36


class Wanted(BaseModel):
    name: str


@stage("greet", retries=2)
async def greet(ctx: Context) -> None:
    if ctx.tries < 1:
        raise TryAgain("Nobody listens.")
    ctx.progress(0.5, "half of it")
    (ctx.workspace / "greeting.txt").write_text(f"Hello {ctx.input.name}")


@stage("pack")
async def pack(ctx: Context) -> None:
    async with ctx.group("printer"):
        greeting = (ctx.workspace / "greeting.txt").read_text()
    if greeting.endswith("nobody"):
        raise StageFailed("There is nobody to greet.")
    ran = await ctx.run("echo", greeting)
    ctx.result.mkdir()
    (ctx.result / "greeting.txt").write_text(ran.output_tail)


GREETINGS = Pipeline("greetings", (greet, pack), input_as(Wanted))


async def test_a_pipeline_of_ones_own_is_run_as_it_is(tmp_path: Path) -> None:
    async with Headgate.testing(pipelines=[GREETINGS]) as hg:
        job = await (await hg.submit({"name": "Ann"}, project="shop", pipeline="greetings")).wait()
        nobody = await (await hg.submit({"name": "nobody"}, project="shop", pipeline="greetings")).wait()

        assert (job.status, [each.name for each in job.state.stages]) == ("ready", ["greet", "pack"])
        assert await (await job.result()).extract(tmp_path) == (tmp_path / "greeting.txt",)
        assert (tmp_path / "greeting.txt").read_text() == "Hello Ann\n"
        assert (nobody.status, nobody.state.error and nobody.state.error.summary) == (
            "failed",
            "There is nobody to greet.",
        )
        with pytest.raises(Invalid) as wrong:
            await hg.submit({"nom": "Ann"}, project="shop", pipeline="greetings")
        assert list(wrong.value.fields) == ["input.name"]


@stage("turn")
async def turn(_: Context) -> None:
    while True:  # noqa: ASYNC110 - that is what is wrong with it
        await asyncio.sleep(0)


@stage("leave")
async def leave(_: Context) -> None:
    sys.exit(1)


async def test_a_stage_that_lets_no_time_pass_is_a_fault_and_no_wait_without_end() -> None:
    async with Headgate.testing(pipelines=[Pipeline("turning", (turn,))]) as hg:
        with pytest.raises(TwinFailed, match="no time passes"):
            await asyncio.wait_for(hg.submit({}, project="shop", pipeline="turning"), PATIENCE_S)
        with pytest.raises(TwinFailed, match="no time passes"):
            await asyncio.wait_for(hg.testing.run(), PATIENCE_S)


async def test_a_stage_that_ends_its_own_process_fails_and_nothing_else_does() -> None:
    async with Headgate.testing(pipelines=[Pipeline("leaving", (leave,))]) as hg:
        job = await hg.submit({}, project="shop", pipeline="leaving")
        other = await hg.submit("a URL shortener", project="shop")

        await asyncio.wait_for(hg.testing.run(), PATIENCE_S)

        job = await job.refreshed()
        assert job.state.error is not None
        assert (job.status, job.state.error.summary) == ("failed", "The stage leave ended its own process.")
        assert (await other.refreshed()).status == "ready"


async def test_a_slot_is_held_by_one_at_a_time() -> None:
    entered: list[str] = []
    async with Headgate.testing() as hg:

        async def enter() -> None:
            async with hg.slot("staging-db", project="shop"):
                entered.append("second")

        async with hg.slot("staging-db", project="shop"):
            with pytest.raises(NoSlot):
                async with hg.slot("staging-db", project="shop", wait_s=5):
                    entered.append("in time")
            second = asyncio.create_task(enter())
        await second
    assert entered == ["second"]


async def test_a_slot_is_held_however_much_time_passes_and_one_waits() -> None:
    inside: list[str] = []
    async with Headgate.testing() as hg, hg.testing.operator() as operator:

        async def enter(name: str, wait_s: float | None) -> None:
            async with hg.slot("staging-db", project="shop", ttl_s=10, wait_s=wait_s):
                inside.append(name)

        async with hg.slot("staging-db", project="shop", ttl_s=10) as held:
            waiting = asyncio.create_task(enter("second", None))
            with pytest.raises(NoSlot):
                await enter("in vain", 40)
            await hg.testing.advance(40)
            [group] = [each for each in await operator.ops.groups() if each.group.endswith(":staging-db")]
            assert [each.lease for each in (await operator.ops.group(group.group)).holders] == [held.lease]
            assert not inside
        await waiting
    assert inside == ["second"]


async def test_a_slot_that_was_taken_by_hand_is_over_by_itself() -> None:
    async with Headgate.testing() as hg:
        await hg.take_slot("staging-db", new_lease(), project="shop", ttl_s=60)

        async with hg.slot("staging-db", project="shop"):
            assert (hg.testing.now - NOW).total_seconds() >= 60


async def test_who_waits_for_a_slot_that_nobody_gives_back_is_told() -> None:
    async with Headgate.testing(patience_s=0.05) as hg, hg.slot("staging-db", project="shop"):
        with pytest.raises(NothingHappens, match="waits for a slot"):
            async with hg.slot("staging-db", project="shop"):
                raise AssertionError("two hold it")


def test_without_a_loop_too() -> None:
    with SyncHeadgate.testing(patience_s=0.05) as hg, hg.slot("staging-db", project="shop"):
        second = hg.slot("staging-db", project="shop")
        with pytest.raises(NothingHappens, match="waits for a slot"):
            second.__enter__()


async def test_a_user_has_so_many_slots_and_is_told() -> None:
    policy = {"concurrency": {"leases_per_user": 1}}
    async with Headgate.testing(policy=policy) as hg, hg.slot("staging-db", project="shop"):
        with pytest.raises(OverShare, match="hold and wait for 1 slots"):
            await hg.take_slot("cache", new_lease(), project="shop")


def test_who_is_interrupted_waits_in_line_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with SyncHeadgate.testing() as hg, hg.testing.operator() as operator:
        twins = hg.testing.twins
        hung_up: list[Any] = []
        hang_up = twins.hang_up
        interrupted: Future[None] = Future()
        interrupted.set_exception(KeyboardInterrupt())

        with hg.slot("staging-db", project="shop"), monkeypatch.context() as meanwhile:
            meanwhile.setattr(twins, "head", lambda _: interrupted)
            meanwhile.setattr(twins, "hang_up", lambda exchange: hung_up.append(exchange) or hang_up(exchange))
            with pytest.raises(KeyboardInterrupt):
                hg.take_slot("staging-db", new_lease(), project="shop")
            meanwhile.undo()
            [group] = [each for each in operator.ops.groups() if each.group.endswith(":staging-db")]

        assert (len(hung_up), group.waiting) == (1, 0)


class LostSlots:
    """Bodies whose slot an operator frees. It is extended every second: a third of its three."""

    async def cancelled(self, hg: Headgate, operator: Headgate) -> None:
        async with hg.slot("staging-db", project="shop", ttl_s=3) as slot:
            await self._freed(operator, slot.lease)
            await asyncio.Event().wait()

    async def told(self, hg: Headgate, operator: Headgate) -> None:
        async with hg.slot("staging-db", project="shop", ttl_s=3, cancel=False) as slot:
            await self._freed(operator, slot.lease)
            await eventually(lambda: slot.lost)

    def told_between_two_steps(self, hg: SyncHeadgate, operator: SyncHeadgate) -> None:
        with hg.slot("staging-db", project="shop", ttl_s=3) as slot:
            slot.check()
            [group] = [each.group for each in operator.ops.groups() if each.group.endswith(":staging-db")]
            operator.ops.release(group, slot.lease, reason="a test")
            while True:
                slot.check()
                time.sleep(0.01)

    async def _freed(self, operator: Headgate, lease: str) -> None:
        [group] = [each.group for each in await operator.ops.groups() if each.group.endswith(":staging-db")]
        await operator.ops.release(group, lease, reason="a test")


@pytest.mark.parametrize("body", [LostSlots().cancelled, LostSlots().told], ids=["cancelled", "told"])
async def test_the_body_hears_that_its_slot_was_lost(body: Callable[[Headgate, Headgate], Awaitable[None]]) -> None:
    async with Headgate.testing() as hg, hg.testing.operator() as operator:
        with pytest.raises(SlotLost, match="staging-db"):
            await body(hg, operator)


def test_a_body_without_a_loop_hears_it_between_two_steps() -> None:
    with SyncHeadgate.testing() as hg, hg.testing.operator() as operator:
        body = LostSlots()
        with pytest.raises(SlotLost, match="staging-db"):
            body.told_between_two_steps(hg, operator)


async def test_a_wait_without_end_says_what_is_waited_for() -> None:
    async with Headgate.testing(patience_s=0.05) as hg:
        hg.testing.asks("Which licence?")
        job = await hg.submit("a URL shortener", project="shop")

        with pytest.raises(NothingHappens, match=r"asks: Which licence\?"):
            await job.wait()


async def test_a_reader_hears_what_another_task_brings_about() -> None:
    async with Headgate.testing() as hg:
        hg.testing.asks("Which licence?")
        job = await hg.submit("a URL shortener", project="shop")
        waiting = asyncio.create_task(job.wait())
        await hg.testing.run()

        await job.answer("MIT")

        assert (await waiting).status == "ready"


async def test_a_read_that_is_given_up_moves_time_no_further() -> None:
    """Something is always left to do there, and its stream says nothing."""
    scope: list[Any] = []

    async def silent(asked: Any, _: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        asked["state"]["connection"].hand_over(asyncio.Protocol())
        scope.append(asked)

    exchange = Exchange(silent, TwinRequest("GET", b"/v1/stream", (), b""))
    await exchange.begun()
    reading = asyncio.create_task(exchange.piece(lambda: False))
    await eventually(lambda: scope)

    await exchange.hang_up()

    assert await asyncio.wait_for(reading, PATIENCE_S) is None


class Unclosing:
    """A client whose connections do not end as they should."""

    async def close(self) -> None:
        raise OSError("it is broken")


class UnclosingWithoutLoop:
    def close(self) -> None:
        raise OSError("it is broken")


async def test_what_runs_in_memory_is_stopped_however_its_client_ends() -> None:
    opened = Headgate.testing()
    await opened.__aenter__()
    opened._hg = Unclosing()  # type: ignore[assignment]

    with pytest.raises(OSError, match="broken"):
        await opened.__aexit__()

    assert opened._twins._loop.is_closed()


def test_so_it_is_without_a_loop() -> None:
    opened = SyncHeadgate.testing()
    opened.__enter__()
    opened._hg = UnclosingWithoutLoop()  # type: ignore[assignment]

    with pytest.raises(OSError, match="broken"):
        opened.__exit__()

    assert opened._twins._loop.is_closed()


def test_without_a_loop_it_is_the_same() -> None:
    with SyncHeadgate.testing() as hg:
        job = hg.submit("a URL shortener", project="shop")
        hg.testing.makes({"app.py": "print('hello')\n"}, job=job)

        hg.testing.run()

        assert job.wait().status == "ready"
        assert job.file("app.py") == b"print('hello')\n"


def test_any_other_headgate_has_no_such_handle() -> None:
    with SyncHeadgate("http://127.0.0.1:1", "token") as hg, pytest.raises(TypeError, match="none of a test"):
        hg.testing.run()

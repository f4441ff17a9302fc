"""A pipeline that policy trusts has one process for several jobs; nothing of a job reaches the next, or outlives it."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from libs.policy import Policy
from libs.runtime.eventually import eventually
from services.worker import children
from services.worker.child.messages import Left
from services.worker.children import Child, Spawner
from tests.fixtures.worker_system import children_of
from tests.fixtures.workers import Shop, a_shop

REUSED = Policy.model_validate({"runs": {"reused_pipelines": ("misbehaving",)}})


@pytest_asyncio.fixture
async def spawner() -> AsyncIterator[Spawner]:
    spawner = Spawner(["services.worker.rehearsal", "tests.fixtures.misbehaving"], environ=os.environ)
    await spawner.start()
    yield spawner
    await spawner.stop()


@pytest_asyncio.fixture
async def shop(spawner: Spawner, tmp_path: Path) -> AsyncIterator[Shop]:
    async with a_shop(spawner, tmp_path, policy=REUSED) as shop:
        yield shop


async def done(shop: Shop, job: str, end: str = "ready", do: str = "tells_of_itself") -> dict[str, str]:
    """What it told of itself."""
    shop.hand(await shop.dispatched(job, {"do": do}, pipeline="misbehaving"))
    await shop.until(job, end)
    lines = [line.line for line in shop.lines.lines if line.job_id == job]
    return dict(line.split("=", 1) for line in lines if "=" in line)


def processes(spawner: Spawner) -> list[int]:
    assert spawner._process is not None
    return children_of(spawner._process.pid)


async def test_one_process_runs_job_after_job(shop: Shop, spawner: Spawner) -> None:
    told = [await done(shop, f"job-{number}") for number in range(3)]

    assert len({each["pid"] for each in told}) == 1
    assert processes(spawner) == [int(told[0]["pid"])]


async def test_each_job_has_a_folder_of_its_own_and_it_goes_with_the_job(shop: Shop) -> None:
    told = [await done(shop, f"job-{number}") for number in range(2)]

    for number, each in enumerate(told):
        home = shop.workspaces / f"job-{number}-1"
        assert each["cwd"] == str(home / "kept" / "workspace")
        assert Path(each["temporary"]).parent == home
        assert not home.exists()


async def test_what_a_job_has_left_running_says_nothing_to_the_next(shop: Shop) -> None:
    await done(shop, "job-0")
    await done(shop, "job-1")

    said = {line.line for line in shop.lines.lines if line.job_id == "job-1"}

    assert "left behind by job-0" not in said
    assert "left behind by job-1" in said


@pytest.mark.parametrize("do", ["raises", "exits", "talks_nonsense"])
async def test_a_job_that_ends_badly_has_its_process_ended(shop: Shop, spawner: Spawner, do: str) -> None:
    first = await done(shop, "job-0")

    await done(shop, "job-1", end="failed", do=do)
    await eventually(lambda: processes(spawner) == [])
    after = await done(shop, "job-2")

    assert after["pid"] != first["pid"]


async def test_a_pipeline_that_policy_does_not_name_has_a_process_a_job(spawner: Spawner, tmp_path: Path) -> None:
    async with a_shop(spawner, tmp_path) as shop:
        told = [await done(shop, f"job-{number}") for number in range(2)]

    assert len({each["pid"] for each in told}) == 2
    assert processes(spawner) == []


async def test_a_process_that_waits_for_long_ends(
    shop: Shop, spawner: Spawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "IDLE_MS", 50)
    first = await done(shop, "job-0")

    await eventually(lambda: processes(spawner) == [])
    after = await done(shop, "job-1")

    assert after["pid"] != first["pid"]


async def test_a_process_that_waited_while_the_worker_was_stopped_gets_no_other_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was ended meanwhile, and nobody has heard of that yet."""
    monkeypatch.setattr(children, "IDLE_MS", 0)
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    child = Child("job-1:1", Spawner([], environ={}), reader, writer, until_ms=0)
    with theirs:
        theirs.sendall(Left().encoded())

        assert await child.leaves()
        assert not child.takes_another(until_ms=2**60)


async def test_the_spawner_hears_no_word_between_jobs_that_follow_each_other(
    shop: Shop, spawner: Spawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "PROLONGED_BY_MS", 60_000)
    said: list[object] = []
    monkeypatch.setattr(
        spawner, "command", lambda word, *passed, say=spawner.command: said.append(word) or say(word, *passed)
    )

    for number in range(3):
        await done(shop, f"job-{number}")

    assert [type(word).__name__ for word in said] == ["Spawn"]


async def test_a_shorter_life_is_said_at_once_and_a_longer_one_where_it_matters(
    spawner: Spawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_ms, said = time.monotonic_ns() // 1_000_000 + 60_000, list[int]()
    child = await spawner.spawn("job-1:1", until_ms=begun_ms)

    with monkeypatch.context() as patched:
        patched.setattr(spawner, "command", lambda word: said.append(word.until_ms - begun_ms))
        for change_ms in (0, 499, 500, 999, 1000, 900, 1399, 1400):
            child.prolong(begun_ms + change_ms)
    await child.end()

    assert said == [500, 1000, 900, 1400]


async def test_a_process_has_no_more_than_its_share_of_jobs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MOST_ATTEMPTS", 2)

    pids = [(await done(shop, f"job-{number}"))["pid"] for number in range(4)]

    assert [pids[0] == pids[1], pids[1] == pids[2], pids[2] == pids[3]] == [True, False, True]


async def test_a_process_that_will_not_leave_its_job_is_ended(
    shop: Shop, spawner: Spawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "LEFT_WITHIN_S", 0.0)

    told = [await done(shop, f"job-{number}") for number in range(2)]

    assert len({each["pid"] for each in told}) == 2
    await eventually(lambda: processes(spawner) == [])

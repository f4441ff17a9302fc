"""The process that attempts are forked from: nothing it has forked outlives its worker, its lease or its own end."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from libs.runtime.eventually import eventually
from services.worker.child.messages import OutputLine, Progressed, RunStage, StageEnded, StoreReady
from services.worker.children import Child, Spawner, clean_environment
from services.worker.errors import PipelinesNotLoaded, SpawnerDied
from tests.fixtures.begins import begin_of
from tests.fixtures.worker_system import children_of, lives

MODULES = ["services.worker.rehearsal", "tests.fixtures.misbehaving"]
HOLDER = """
import asyncio, os, sys, time
from services.worker.children import Spawner

async def main():
    spawner = Spawner(["services.worker.rehearsal"], environ=os.environ)
    await spawner.start()
    for number in range(3):
        await spawner.spawn(f"job-{number}:1", until_ms=time.monotonic_ns() // 1_000_000 + 60_000)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest_asyncio.fixture
async def spawner() -> AsyncIterator[Spawner]:
    spawner = Spawner(MODULES, environ=os.environ)
    await spawner.start()
    yield spawner
    await spawner.stop()  # safe twice, and after its death


def send(spawner: Spawner, number: signal.Signals) -> None:
    assert spawner._process is not None
    os.kill(spawner._process.pid, number)


def in_ms(duration_ms: int) -> int:
    return time.monotonic_ns() // 1_000_000 + duration_ms


async def begun(spawner: Spawner, folder: Path, *, do: str, until_ms: int = 0) -> Child:
    """A process whose stage `code` does this."""
    child = await spawner.spawn("job-1:1", until_ms=until_ms or in_ms(60_000))
    await child.send(begin_of(folder, "job-1", "misbehaving", {"do": do}))
    await child.send(RunStage(stage="code", iteration=1))
    return child


async def pids_told(child: Child) -> list[int]:
    said = await child.receive()
    assert isinstance(said, OutputLine)
    return [int(pid) for pid in said.line.removeprefix("pids=").split(",")]


async def test_the_pipelines_are_loaded_once_and_named(spawner: Spawner) -> None:
    assert spawner.pipelines.keys() == {"rehearsal", "misbehaving"}
    assert [stage.title for stage in spawner.pipelines["rehearsal"].titles][1:3] == [
        "Writing code",
        "Installing dependencies",
    ]


async def test_a_process_lives_no_longer_than_it_was_given_though_it_hears_no_signal(
    spawner: Spawner, tmp_path: Path
) -> None:
    child = await begun(spawner, tmp_path, do="is_stubborn")
    pids = await pids_told(child)

    child.prolong(in_ms(200))
    code = await asyncio.wait_for(child.ended(), 30)
    await child.end()

    assert code == -signal.SIGKILL
    assert not any(map(lives, pids))


async def test_a_process_of_which_nobody_says_a_word_ends_when_its_time_is_over(spawner: Spawner) -> None:
    child = await spawner.spawn("job-1:1", until_ms=in_ms(300))

    assert await asyncio.wait_for(child.ended(), 30) == -signal.SIGKILL
    await child.end()


async def test_a_prolonged_process_lives_on(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="clears_up", until_ms=in_ms(2000))

    child.prolong(in_ms(600_000))
    await asyncio.sleep(2.5)

    assert child.code is None
    await child.end()


async def test_where_memory_runs_out_an_attempt_goes_before_its_worker(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="is_stubborn")
    attempt, _ = await pids_told(child)

    assert _adjustment(attempt) >= 500
    assert _adjustment(os.getpid()) <= _adjustment(attempt)
    await child.end()


def _adjustment(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii"))


async def test_a_process_that_is_ended_with_a_grace_ends_by_itself(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="clears_up")
    assert isinstance(await child.receive(), OutputLine)

    await child.end(grace_s=60)

    assert child.code == 128 + signal.SIGTERM


async def test_a_process_that_waits_for_an_order_ends_by_itself_too(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="says_little")
    assert isinstance(await child.receive(), OutputLine)
    assert isinstance(await child.receive(), StageEnded)

    await child.end(grace_s=60)

    assert child.code == 128 + signal.SIGTERM


async def test_of_what_a_stage_says_nothing_is_lost_where_nobody_listens_yet(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="says_much")
    await eventually((tmp_path / "kept" / "workspace" / "said").exists, within_s=30)

    lines: list[str] = []
    while isinstance(said := await child.receive(), OutputLine):
        lines.append(said.line)

    assert [int(line.split()[0]) for line in lines] == list(range(1000))
    assert isinstance(said, StoreReady)
    await child.end()


async def test_the_end_of_a_process_ends_what_it_started(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="is_stubborn")
    leader, started = await pids_told(child)

    os.kill(leader, signal.SIGKILL)
    await asyncio.wait_for(child.ended(), 30)
    await child.end()

    assert not lives(started)


async def test_what_hides_in_a_session_of_its_own_does_not_outlive_its_attempt(
    spawner: Spawner, tmp_path: Path
) -> None:
    child = await begun(spawner, tmp_path, do="hides_a_daemon")
    pids = await pids_told(child)

    await child.end()

    assert child.code == -signal.SIGKILL
    assert not any(map(lives, pids))


async def test_an_attempt_does_not_outlive_its_spawner_whatever_it_does(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="is_stubborn")
    stubborn, started = await pids_told(child)

    send(spawner, signal.SIGKILL)

    await eventually(lambda: not lives(stubborn))
    with pytest.raises(SpawnerDied):
        await spawner.ended()
    await child.end()
    os.kill(started, signal.SIGKILL)  # it would fall to the worker, which ends all that does; here to nobody


async def test_a_spawner_that_is_told_to_stop_leaves_nothing(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="hides_a_daemon")
    pids = await pids_told(child)

    await spawner.stop()
    await child.end()

    assert not any(map(lives, pids))


async def test_a_worker_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, env=clean_environment(os.environ), cwd=tmp_path
    )
    forked = await eventually(lambda: _of_three(worker.pid))
    spawner = children_of(worker.pid)

    worker.kill()
    await worker.wait()

    await eventually(lambda: not any(map(lives, [*forked, *spawner])))


def _of_three(pid: int) -> list[int]:
    forked = [grandchild for child in children_of(pid) for grandchild in children_of(child)]
    return forked if len(forked) == 3 else []


async def test_a_spawner_that_dies_is_noticed_and_whoever_waits_is_told_that_nobody_knows(
    spawner: Spawner, tmp_path: Path
) -> None:
    child = await begun(spawner, tmp_path, do="clears_up")

    send(spawner, signal.SIGKILL)

    with pytest.raises(SpawnerDied):
        await asyncio.wait_for(spawner.ended(), 30)
    assert await asyncio.wait_for(child.ended(), 30) is None
    await child.end()


async def test_an_attempt_that_comes_after_the_spawners_death_ends_at_once(spawner: Spawner) -> None:
    send(spawner, signal.SIGKILL)
    with pytest.raises(SpawnerDied):
        await asyncio.wait_for(spawner.ended(), 30)

    child = await spawner.spawn("job-1:1", until_ms=in_ms(60_000))

    assert await child.receive() is None
    await asyncio.wait_for(child.end(), 30)


async def test_a_spawner_that_hears_nothing_takes_no_heartbeat_down_and_is_as_good_as_dead(spawner: Spawner) -> None:
    child = await spawner.spawn("job-1:1", until_ms=in_ms(60_000))
    send(spawner, signal.SIGSTOP)

    for number in range(2000):
        child.prolong(in_ms(60_000 + 1000 * number))
    assert child.code is None
    ending = asyncio.create_task(child.end())

    with pytest.raises(SpawnerDied):
        await asyncio.wait_for(spawner.ended(), 30)
    await asyncio.wait_for(ending, 30)
    await asyncio.wait_for(spawner.stop(), 30)
    assert spawner._process is not None
    assert spawner._process.returncode == -signal.SIGKILL


async def test_a_spawner_that_is_stopped_has_not_died(spawner: Spawner) -> None:
    await spawner.stop()
    await spawner.stop()

    await asyncio.wait_for(spawner.ended(), 30)


def test_it_loads_before_there_is_a_loop_and_is_heard_in_one() -> None:
    spawner = Spawner(["services.worker.rehearsal"], environ=os.environ)
    spawner.launch()

    async def lived() -> None:
        await spawner.start()
        await spawner.stop()

    asyncio.run(lived())

    assert list(spawner.pipelines) == ["rehearsal"]
    assert spawner._process is not None
    assert spawner._process.returncode == 0


async def test_where_no_pipeline_can_be_loaded_each_is_said_by_name() -> None:
    spawner = Spawner(["services.worker.domain"], environ=os.environ)

    with pytest.raises(PipelinesNotLoaded, match=r"services\.worker\.domain is no pipeline"):
        await spawner.start()


async def test_fifty_attempts_at_once_each_get_their_own_answers(spawner: Spawner, tmp_path: Path) -> None:
    async def one(number: int) -> list[str]:
        home = tmp_path / str(number)
        home.mkdir()
        child = await spawner.spawn(f"job-{number}:1", until_ms=in_ms(60_000))
        await child.send(begin_of(home, f"job-{number}", "rehearsal", {"stages": {"code": 0}, "log_lines": 3}))
        await child.send(RunStage(stage="code", iteration=number + 1))
        said: list[str] = []
        while isinstance(word := await child.receive(), OutputLine | Progressed):
            said += [word.line] if isinstance(word, OutputLine) else []
        assert isinstance(word, StageEnded)
        await child.end()
        return said

    told = await asyncio.gather(*(one(number) for number in range(50)))

    assert told == [[f"line {line} of 3 of iteration {number + 1}" for line in (1, 2, 3)] for number in range(50)]

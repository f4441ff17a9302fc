"""Commands and attempts where no system adopts, watches or fences anything: as on macOS, at the level `trusted`.

What Linux alone has is taken from every process that is started here (`tests/fixtures/foreign.py`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from libs.policy import Policy
from libs.runtime.eventually import eventually
from services.worker.child.messages import OutputLine, RunStage
from services.worker.children import Child, Spawner
from services.worker.sandbox.command import CommandBounds, Level, Ran, SandboxCommand
from services.worker.sandbox.errors import SandboxMissing
from services.worker.sandbox.levels import find_level
from services.worker.sandbox.listing import LIST
from services.worker.sandbox.running import Sandbox
from tests.fixtures.begins import begin_of
from tests.fixtures.foreign import abroad
from tests.fixtures.worker_system import lives

BOUNDS: Final = CommandBounds.of(Policy().sandbox)
pytestmark = pytest.mark.skipif(not Path(LIST[0]).exists(), reason="a Linux without ps, which every other system has")
SLEEP: Final = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
IN_A_SESSION: Final = f"import os; os.setsid(); {SLEEP}"


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    with abroad(monkeypatch, tmp_path / "of linux alone"):
        yield


class Box:
    """A sandbox, and what its commands said."""

    def __init__(self, folder: Path) -> None:
        (folder / "workspace").mkdir()
        self.workspace = folder / "workspace"
        self.sandbox = Sandbox(Level("trusted"), bounds=BOUNDS, workspace=self.workspace, area=folder / "area")
        self.lines: list[str] = []

    async def run(self, *argv: str, timeout_s: float = 600.0, bounds: CommandBounds = BOUNDS, **how: Any) -> Ran:
        command = SandboxCommand(argv=argv, timeout_s=timeout_s)
        return await self.sandbox.run(command, on_line=self.lines.append, bounds=bounds, **how)

    async def pids(self, count: int) -> list[int]:
        await eventually(lambda: len(self.lines) >= count)
        return [int(line) for line in self.lines]


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def starting(*scripts: str, then: str) -> str:
    """Python that starts each of these as a child, then does the last."""
    starts = (f"subprocess.Popen([sys.executable, '-c', {script!r}])" for script in scripts)
    return "; ".join(("import subprocess, sys, time", *starts, then))


async def test_the_level_is_found_by_running_a_command_and_says_what_it_does_not(tmp_path: Path) -> None:
    level = await find_level("trusted", workspaces=tmp_path)

    assert level == Level("trusted")
    assert "NOTHING IS CONTAINED" in level.line


@pytest.mark.parametrize("wanted", ["auto", "plain", "bubblewrap"])
async def test_nobody_is_trusted_unasked(wanted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(SandboxMissing, match=r"darwin cannot; run the worker on Linux.*HEADGATE_SANDBOX=trusted"):
        await find_level(wanted)


async def test_a_command_has_a_session_an_environment_and_limits_of_its_own(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "of the worker's")
    script = (
        "import os, resource; print(os.getsid(0) == os.getpid(), 'A_SECRET' in os.environ,"
        " resource.getrlimit(resource.RLIMIT_FSIZE)[0])"
    )

    ran = await box.run(sys.executable, "-c", script)

    assert ran == Ran(0, "itself", f"True False {BOUNDS.file_bytes}\n")


async def test_children_that_stay_end_with_their_command(box: Box) -> None:
    await box.run(sys.executable, "-c", starting(SLEEP, then="time.sleep(0.5)"))

    assert not any(map(lives, await box.pids(1)))


async def test_a_session_of_ones_own_is_ended_where_its_parent_is_known(box: Box) -> None:
    ran = await box.run(sys.executable, "-c", starting(IN_A_SESSION, then="time.sleep(600)"), timeout_s=5)

    assert ran.ended_by == "time"
    assert not any(map(lives, await box.pids(1)))


async def test_a_cancelled_command_ends_with_all_that_it_has_started(box: Box) -> None:
    cancelled = asyncio.Event()
    running = asyncio.create_task(
        box.run(sys.executable, "-c", starting(SLEEP, IN_A_SESSION, then="time.sleep(600)"), cancelled=cancelled)
    )
    pids = await box.pids(2)

    cancelled.set()

    assert (await running).ended_by == "cancel"
    assert not any(map(lives, pids))


async def test_what_lets_go_of_everything_is_waited_for_by_nobody(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is lost to us, and it holds the command's output."""
    monkeypatch.setattr("services.worker.sandbox.running.LET_GO_S", 0.5)
    lets_go = f"import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', {IN_A_SESSION!r}])"

    ran = await box.run(sys.executable, "-c", starting(lets_go, then="time.sleep(2)"))

    assert ran.exit_code == 0
    for pid in await box.pids(1):
        os.kill(pid, signal.SIGKILL)


async def test_a_command_that_fills_the_disk_is_ended(box: Box) -> None:
    little = dataclasses.replace(BOUNDS, disk_bytes=100_000)
    script = "import time; open('large', 'wb').write(b'x' * 1_000_000); time.sleep(600)"

    assert (await box.run(sys.executable, "-c", script, bounds=little)).ended_by == "disk"


async def test_folders_that_were_closed_are_removed(box: Box, tmp_path: Path) -> None:
    await box.run("sh", "-c", "mkdir -p $HOME/a/b $TMPDIR/c; touch $HOME/a/b/file; chmod 0 $HOME/a/b $HOME/a $TMPDIR/c")

    assert list((tmp_path / "area").iterdir()) == []


@pytest_asyncio.fixture
async def spawner() -> AsyncIterator[Spawner]:
    spawner = Spawner(["services.worker.rehearsal", "tests.fixtures.misbehaving"], environ=os.environ)
    await spawner.start()
    yield spawner
    await spawner.stop()


async def begun(spawner: Spawner, folder: Path, *, do: str) -> Child:
    child = await spawner.spawn("job-1:1", until_ms=time.monotonic_ns() // 1_000_000 + 60_000)
    await child.send(begin_of(folder, "job-1", "misbehaving", {"do": do}, level=Level("trusted")))
    await child.send(RunStage(stage="code", iteration=1))
    return child


async def pid_said_by(child: Child) -> int:
    """Of the command, which is the last that is said."""
    while isinstance(said := await child.receive(), OutputLine):
        if said.line.startswith("pid="):
            return int(said.line.removeprefix("pid="))
    raise AssertionError(said)


async def test_an_attempt_is_gone_when_its_command_is(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="runs_for_ever")
    command = await pid_said_by(child)

    await child.end()

    assert child.code == -signal.SIGKILL
    assert not lives(command)


async def test_a_worker_that_hangs_up_leaves_no_command(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="runs_for_ever")
    command = await pid_said_by(child)

    await spawner.stop()
    await child.end()

    await eventually(lambda: not lives(command))


async def test_who_holds_an_attempts_tie_for_ever_is_not_waited_for(spawner: Spawner, tmp_path: Path) -> None:
    child = await begun(spawner, tmp_path, do="leaves_a_fork")
    said = await child.receive()
    assert isinstance(said, OutputLine)

    await child.end()

    with suppress(ProcessLookupError):  # it was seen in time, as what let go is looked for once a second
        os.kill(int(said.line.removeprefix("pid=")), signal.SIGKILL)

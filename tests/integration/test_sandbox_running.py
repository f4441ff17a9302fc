"""Harmless commands in the sandbox that this machine has: what they are given, what is told of them, how they end.

The dangerous ones are in tests/hostile.
"""

import asyncio
import dataclasses
import errno
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from libs.policy import Policy
from libs.runtime.eventually import PATIENCE_S, eventually
from services.worker.sandbox import running
from services.worker.sandbox.command import CommandBounds, Level, Ran, SandboxCommand
from services.worker.sandbox.errors import CommandNotRun, MachineGaveOut, SandboxMissing
from services.worker.sandbox.levels import find_level
from services.worker.sandbox.ownership import User
from services.worker.sandbox.running import Sandbox
from tests.fixtures.passage import passable
from tests.fixtures.worker_system import children_of

BOUNDS = CommandBounds.of(Policy().sandbox)


@pytest_asyncio.fixture(scope="session", params=["auto", "plain", "trusted"])
async def level(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Level:
    return await find_level(request.param, workspaces=passable(tmp_path_factory.mktemp("workspaces")))


class Box:
    """A sandbox, and what its last command said."""

    def __init__(self, level: Level, folder: Path) -> None:
        self.workspace, self.area = folder / "workspace", folder / "area"
        self.workspace.mkdir()
        self.sandbox = Sandbox(level, bounds=BOUNDS, workspace=self.workspace, area=self.area)
        self.lines: list[str] = []

    async def run(self, *argv: str, cancelled: asyncio.Event | None = None, **how: Any) -> Ran:
        how = {"timeout_s": 600} | how
        command = SandboxCommand(argv=argv, **how)
        return await self.sandbox.run(command, on_line=self.lines.append, cancelled=cancelled)

    async def shell(self, script: str, **how: Any) -> Ran:
        return await self.run("sh", "-c", script, **how)

    def left_behind(self) -> list[Path]:
        """Of what a command had for itself, or that is not ours again."""
        area = list(self.area.iterdir()) if self.area.exists() else []
        return area + [path for path in self.workspace.rglob("*") if path.lstat().st_uid != os.getuid()]

    async def said(self, line: str) -> None:
        await eventually(lambda: line in self.lines)


@pytest_asyncio.fixture
async def box(level: Level, tmp_path: Path) -> AsyncIterator[Box]:
    box = Box(level, passable(tmp_path))
    yield box
    box.sandbox.close()
    assert box.left_behind() == []
    await eventually(lambda: not [pid for pid in children_of(os.getpid()) if _is_keeper(pid)])


def _is_keeper(pid: int) -> bool:
    return b"sandbox.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_a_command_says_its_lines_and_how_it_ended(box: Box) -> None:
    ran = await box.shell("echo one; echo two >&2; exit 3")

    assert ran == Ran(exit_code=3, ended_by="itself", output_tail="one\ntwo\n")
    assert box.lines == ["one", "two"]


async def test_lines_come_as_they_are_said(box: Box) -> None:
    running = asyncio.create_task(box.shell("echo begun; until [ -e go ]; do sleep 0.05; done"))

    await box.said("begun")
    assert not running.done()
    (box.workspace / "go").touch()

    assert (await running).exit_code == 0


async def test_a_command_ended_by_a_signal_of_its_own_says_so_as_in_a_shell(box: Box) -> None:
    assert (await box.shell("kill -TERM $$")).exit_code == 128 + 15


async def test_a_program_that_is_not_there_is_said_as_in_a_shell(box: Box) -> None:
    ran = await box.run("no-such-program")

    assert ran == Ran(exit_code=127, ended_by="itself", output_tail="no-such-program: no such program\n")


async def test_a_file_that_is_no_program_is_said_as_in_a_shell(box: Box) -> None:
    (box.workspace / "text").write_text("text")

    assert (await box.run("./text")).exit_code == 126


async def test_a_command_stands_in_its_workspace_and_may_write_there(box: Box) -> None:
    (box.workspace / "project").mkdir()

    ran = await box.shell("pwd; echo made > made; mkdir below; echo more > below/more", cwd="project")

    assert ran.output_tail.strip() == str(box.workspace.resolve() / "project")
    assert (box.workspace / "project" / "below" / "more").read_text() == "more\n"


async def test_a_folder_that_is_not_there_is_a_fault_that_is_named(box: Box) -> None:
    with pytest.raises(CommandNotRun, match=r"No such file or directory.*nowhere"):
        await box.run("true", cwd="nowhere")


async def test_what_could_not_be_started_is_tried_again(box: Box) -> None:
    """Nothing of it has run. Here a folder is missing, until somebody hears so."""

    def heard(line: str) -> None:
        box.lines.append(line)
        (box.workspace / "late").mkdir(exist_ok=True)
        if box.sandbox._user is not None:
            os.chown(box.workspace / "late", box.sandbox._user.uid, -1)

    ran = await box.sandbox.run(SandboxCommand(argv=("pwd",), cwd="late", timeout_s=60), on_line=heard)

    assert (ran.exit_code, ran.output_tail.strip()) == (0, str(box.workspace.resolve() / "late"))
    assert [line for line in box.lines if line.endswith("It is tried again.")] == box.lines[:-1] != []


async def test_what_one_command_made_the_next_one_may_change(box: Box) -> None:
    await box.shell("echo one > file; chmod 600 file; mkdir -m 700 folder")

    ran = await box.shell("echo two >> file; touch folder/new; cat file")

    assert ran.output_tail == "one\ntwo\n"


async def test_two_commands_at_once_share_the_workspace_and_nothing_else(box: Box) -> None:
    wait = "touch $0; until [ -e a ] && [ -e b ]; do sleep 0.05; done; echo $HOME > home-$0"

    one, two = await asyncio.gather(box.run("sh", "-c", wait, "a"), box.run("sh", "-c", wait, "b"))

    assert (one.exit_code, two.exit_code) == (0, 0)
    assert (box.workspace / "home-a").read_text() != (box.workspace / "home-b").read_text()


async def test_every_command_has_an_empty_home(box: Box) -> None:
    await box.shell("touch $HOME/left $TMPDIR/left")

    assert (await box.shell("ls -A $HOME $TMPDIR | grep left")).exit_code == 1


async def test_the_workers_own_python_runs_inside(box: Box, level: Level) -> None:
    has_locks = level.own_processes or level.name == "trusted"  # else there is no shared memory, as the docs say
    lock = "multiprocessing.Lock()" if has_locks else "pass"
    script = f"import multiprocessing, ssl, sqlite3, threading; {lock}; print('all there')"

    assert (await box.run(sys.executable, "-I", "-c", script)).output_tail == "all there\n"


async def test_a_command_sees_the_system_and_its_own_folders(box: Box, level: Level) -> None:
    if not level.own_processes:
        pytest.skip("only where a command has files of its own")
    (box.workspace / "mine").touch()

    ran = await box.shell(
        "ls -d /usr /bin /etc /proc /run /srv /var; ls; echo > /tmp/x && echo > /dev/shm/x; echo > /x; echo > /dev/x"
    )

    assert {"/run", "/srv", "/var"}.isdisjoint(ran.output_tail.splitlines())
    assert {"/usr", "/bin", "/etc", "/proc", "mine"} <= set(ran.output_tail.splitlines())
    assert "cannot create /x" in ran.output_tail
    assert "cannot create /dev/x" in ran.output_tail


async def test_terminals_can_be_made(box: Box, level: Level) -> None:
    if not level.own_processes:
        pytest.skip("only where a command has files of its own")

    ran = await box.run(
        sys.executable, "-I", "-c", "import os; a, b = os.openpty(); os.write(b, b'x'); print(os.read(a, 1))"
    )

    assert ran.output_tail == "b'x'\n"


async def test_servers_can_be_talked_to_inside_without_a_network(box: Box, level: Level) -> None:
    if not level.own_processes:
        pytest.skip("only where a command has a network of its own")
    talk = (
        "import socket\nserver = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(server.getsockname())"
    )

    assert (await box.run(sys.executable, "-I", "-c", talk)).exit_code == 0


async def test_a_folder_may_be_read_when_it_is_named(box: Box, level: Level, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "one.whl").write_text("content\n")

    ran = await box.shell(f"cat {wheels}/one.whl; echo x > {wheels}/two.whl", reads=(wheels,))

    assert ran.output_tail.startswith("content\n")
    assert (wheels / "two.whl").exists() == (level.name == "trusted")


async def test_a_command_that_takes_too_long_is_asked_first(box: Box) -> None:
    began = time.monotonic()
    await box.run("true")
    enough_s = 1 + 5 * (time.monotonic() - began)  # to say a word, on this machine as it is now
    script = "trap 'echo asked; exit 0' TERM; echo begun; while :; do sleep 0.05; done"

    ran = await box.shell(script, timeout_s=enough_s)

    assert (ran.exit_code, ran.ended_by) == (None, "time")
    assert box.lines[0] == "begun"
    assert "asked" in box.lines


async def test_a_cancelled_command_is_ended_and_says_so(box: Box) -> None:
    cancelled = asyncio.Event()
    running = asyncio.create_task(box.shell("trap '' TERM; echo begun; sleep 600", cancelled=cancelled))

    await box.said("begun")
    cancelled.set()

    assert (await asyncio.wait_for(running, 30)).ended_by == "cancel"


async def test_a_cancelled_task_ends_its_command_before_it_ends(box: Box) -> None:
    running = asyncio.create_task(box.shell("echo $$ > pid; echo begun; sleep 600 & sleep 600"))

    await box.said("begun")
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 30)
    assert [pid for pid in children_of(os.getpid()) if _is_keeper(pid)] == []


async def test_a_task_cancelled_twice_still_leaves_nothing(box: Box) -> None:
    running = asyncio.create_task(box.shell("trap '' TERM; echo begun; sleep 600", grace_s=0.5))

    await box.said("begun")
    running.cancel()
    await asyncio.sleep(0.05)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 30)
    await eventually(lambda: not [pid for pid in children_of(os.getpid()) if _is_keeper(pid)])
    await eventually(lambda: list(box.area.iterdir()) == [])


async def test_a_keeper_that_is_killed_is_a_fault_of_the_machine(box: Box) -> None:
    running = asyncio.create_task(box.shell("echo begun; exec sleep 600"))

    await box.said("begun")
    (keeper,) = [pid for pid in children_of(os.getpid()) if _is_keeper(pid)]
    os.kill(keeper, 9)

    with pytest.raises(MachineGaveOut, match="keeper ended"):
        await asyncio.wait_for(running, 30)


async def test_a_keeper_that_is_killed_is_not_waited_for_by_its_output(level: Level, tmp_path: Path) -> None:
    box = Box(dataclasses.replace(level, name="plain", spaces="none", uids=None), tmp_path)
    running = asyncio.create_task(box.shell("(trap '' TERM; exec setsid sleep 600) & echo $!; exec sleep 600"))

    await eventually(lambda: box.lines)
    (keeper,) = [pid for pid in children_of(os.getpid()) if _is_keeper(pid)]
    os.kill(keeper, 9)

    with pytest.raises(MachineGaveOut, match="keeper ended"):
        await asyncio.wait_for(running, 30)
    os.kill(int(box.lines[0]), 9)  # it is the spawner's to end in a worker
    box.sandbox.close()


@pytest.mark.parametrize("call", ["subprocess.Popen", "tempfile.mkdtemp"])
async def test_what_the_machine_has_no_room_for_is_not_the_commands_fault(
    box: Box, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    await box.run("true")
    before = _open_files()
    monkeypatch.setattr(call, refuse)

    with pytest.raises(MachineGaveOut, match="temporarily unavailable"):
        await box.run("true")
    monkeypatch.undo()

    assert _open_files() == before


def _open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.parametrize(("script", "is_machines"), [("exit 1", True), ("exit 0", False)])
async def test_what_fails_on_a_full_disk_failed_because_of_it(
    box: Box, monkeypatch: pytest.MonkeyPatch, script: str, *, is_machines: bool
) -> None:
    monkeypatch.setattr(running, "is_full", lambda _: True)

    if is_machines:
        with pytest.raises(MachineGaveOut, match="the disk is full"):
            await box.shell(script)
    else:
        assert (await box.shell(script)).exit_code == 0


async def test_who_takes_no_lines_any_more_ends_the_command(box: Box) -> None:
    async def hung_up() -> None:
        raise ConnectionResetError

    command = SandboxCommand(argv=("sh", "-c", "echo one; exec sleep 600"), timeout_s=600)

    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(box.sandbox.run(command, on_line=box.lines.append, drained=hung_up), 30)


async def test_a_command_waits_out_no_time_of_ours(box: Box) -> None:
    async with asyncio.timeout(PATIENCE_S):  # 0.1 to 0.4 s on an idle machine
        assert (await box.run("true", grace_s=600)).exit_code == 0


async def test_bubblewrap_that_is_not_there_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(SandboxMissing, match="HEADGATE_SANDBOX=bubblewrap asks: bubblewrap is not installed: apt-get"):
        await find_level("bubblewrap")


async def test_bubblewrap_that_does_not_work_is_no_level(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create a new namespace' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(SandboxMissing, match="No permissions to create a new namespace"):
        await find_level("bubblewrap")
    level = await find_level("auto")

    assert level.name == "plain"
    assert "No permissions to create a new namespace" in level.line


async def test_a_cgroup_that_cannot_be_used_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SandboxMissing, match=r"HEADGATE_SANDBOX_CGROUP=.*delegated"):
        await find_level("plain", cgroup=tmp_path)


async def test_a_range_of_users_that_is_none_is_said(level: Level) -> None:
    if os.getuid() != 0:
        pytest.skip("users are a matter of root")
    with pytest.raises(SandboxMissing, match="HEADGATE_SANDBOX_UIDS: '7' is no range"):
        await find_level("plain", uids="7")


async def test_a_user_is_free_again_when_its_sandbox_is_closed(box: Box, level: Level) -> None:
    await box.run("true")
    user: User | None = box.sandbox._user

    box.sandbox.close()
    box.sandbox.close()

    assert (user is not None) == (level.uids is not None)
    assert user is None or str(user.uid) not in _locked()


def _locked() -> set[str]:
    """Of this process."""
    held = (os.path.realpath(path) for path in Path("/proc/self/fd").iterdir())
    return {Path(path).name for path in held if "headgate-users" in path}

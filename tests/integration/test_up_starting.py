"""Starts that fail: what never gets ready ends the start, is told with what it said last, and leaves only its log."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from libs.local import keeping, process, supervisor
from libs.local.errors import NotReady, ServerDidNotStart, ServerNotReady, StartFailed
from libs.local.provisions import Provisions
from libs.local.servers import NatsServer
from libs.local.settings import UpSettings
from libs.local.state import StateFolder
from libs.local.supervisor import Supervisor
from libs.local.up_file import UpFile, read_up_file
from libs.policy import Policy
from libs.runtime.eventually import eventually
from services.worker.sandbox import kernel
from tests.fixtures.worker_system import children_of, lives

pytestmark = pytest.mark.up

ROOT: Final = Path(__file__).parents[2]
SERVICES: Final = ("scheduler", "worker", "admission", "notifier")
STANDINS: Final[Mapping[str, str]] = dict.fromkeys(SERVICES, "tests.fixtures.standin")


@pytest.fixture(autouse=True)
def _find_standins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


async def test_a_service_that_ends_again_and_again_ends_the_start_with_what_it_said_last(tmp_path: Path) -> None:
    said: list[str] = []
    before = children_of(os.getpid())

    with pytest.raises(StartFailed) as failed:
        async with started(tmp_path, said, {**STANDINS, "worker": "tests.fixtures.no_such_module"}) as starting:
            await starting.ready()

    message, log = str(failed.value), tmp_path / "logs" / "worker.log"
    assert message.startswith("worker ended 3 times before it was ever ready, and said last: ")
    assert "No module named tests.fixtures.no_such_module" in message.splitlines()[0]
    assert str(log) in message
    assert log.read_text().count("No module named") == 3
    assert len([line for line in said if "worker ended with 1: started again" in line]) == 2
    assert children_of(os.getpid()) == before
    assert not (tmp_path / "up.json").exists()


async def test_a_service_that_ends_twice_and_then_gets_ready_is_no_failure(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "worker.ends-twice").touch()

    async with started(tmp_path, said) as starting:
        running = await starting.ready()

        assert read_up_file(tmp_path / "up.json") == running
    assert len([line for line in said if line.startswith("worker ended with 7: started again")]) == 2
    assert "It said last: worker begins: token=***" in said[0]


async def test_a_service_that_lives_and_never_gets_ready_is_waited_for_no_longer_than_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "worker.unready").touch()
    monkeypatch.setattr(supervisor, "SAY_AFTER_S", 0.2)
    monkeypatch.setattr(supervisor, "READY_WITHIN_S", 2.0)
    before = children_of(os.getpid())

    with pytest.raises(NotReady) as failed:
        async with started(tmp_path, said) as starting:
            await starting.ready()

    assert "\n    worker: " in str(failed.value)
    assert str(tmp_path / "logs") in str(failed.value)
    assert any("still waiting" in line and "worker: " in line for line in said)
    assert children_of(os.getpid()) == before


async def test_what_was_ready_once_is_started_again_for_ever_however_often_it_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(keeping, "FIRST_PAUSE_S", 0.01)

    async with started(tmp_path, said) as starting:
        pids = {pid_of(await starting.ready(), "worker")}
        for _ in range(keeping.STARTS + 3):
            os.kill(max(pids, key=lives), signal.SIGKILL)
            pids |= {await eventually(partial(another, tmp_path, "worker", frozenset(pids)))}

    told = [line for line in said if line.startswith("worker was ended by signal 9: started again")]
    assert len(told) == keeping.STARTS + 3
    assert all("It said last: " in line for line in told)


async def test_a_service_that_cannot_even_be_started_again_is_tried_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(keeping, "FIRST_PAUSE_S", 0.01)
    logs, away = tmp_path / "logs", tmp_path / "away"

    async with started(tmp_path, said) as starting:
        before = pid_of(await starting.ready(), "worker")
        logs.rename(away)
        logs.touch()  # in the way
        os.kill(before, signal.SIGKILL)
        await eventually(lambda: any("worker was ended by signal 9 and cannot be started" in line for line in said))
        logs.unlink()
        away.rename(logs)

        assert await eventually(lambda: another(tmp_path, "worker", {before}))


async def test_a_server_that_cannot_start_is_tried_a_few_times_and_leaves_nothing_but_its_log(tmp_path: Path) -> None:
    (tmp_path / "nats").mkdir(parents=True)
    (tmp_path / "nats" / "jetstream").write_text("in the way")

    with pytest.raises(StartFailed) as failed:
        async with started(tmp_path, []):
            pass

    log = tmp_path / "nats" / "nats.log"
    assert "nats ended 3 times before it was ever ready, and said last: " in str(failed.value)
    assert "[FTL]" in str(failed.value).splitlines()[0]
    assert str(log) in str(failed.value)
    assert log.read_text().count("[FTL]") == 3
    state = StateFolder(tmp_path)
    state.lock()
    state.unlock()


async def test_a_server_that_lives_and_does_not_serve_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "START_WITHIN_S", 0.2)
    monkeypatch.setattr(NatsServer, "ready_line", "what it never says")
    server = NatsServer(tmp_path)

    with pytest.raises(ServerNotReady, match=r"nats was not ready within 0\.2 s and was ended"):
        await server.start()

    assert not server.running
    assert issubclass(ServerNotReady, ServerDidNotStart)


def test_a_policy_that_is_not_asked_for_reaches_no_service(tmp_path: Path) -> None:
    given = Provisions.of(UpSettings(port=0, state=tmp_path, policy=None), StateFolder(tmp_path), Policy())
    inherited = {"HEADGATE_POLICY": "mine.toml", "TZ": "UTC"}

    told = given.environment(
        "worker", name="w", nats_url="nats://127.0.0.1:4222", redis_url="redis://127.0.0.1:6379/0", inherited=inherited
    )

    assert "HEADGATE_POLICY" not in told
    assert told["TZ"] == "UTC"


# ── as a command ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ({"HEADGATE_POLICY": "no.toml"}, 2, "no.toml: cannot be read (No such file or directory)"),
        ({"HEADGATE_POLICY": "wrong.toml"}, 2, "tiers.partner.concurrency"),
        ({"HEADGATE_PORT": "TAKEN"}, 1, "is in use. Set HEADGATE_PORT to another one"),
        ({"HEADGATE_STATE": "wrong.toml/state"}, 1, "wrong.toml/state cannot be used: Not a directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, Mapping) else "",
)
def test_a_start_that_cannot_be_says_why_and_ends(
    tmp_path: Path, told: Mapping[str, str], code: int, said: str
) -> None:
    (tmp_path / "wrong.toml").write_text("[tiers.partner]\nconcurrency = -1\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = headgate("up", tmp_path, {name: value.replace("TAKEN", port) for name, value in told.items()})

    assert (ran.returncode, "Traceback" in ran.stderr) == (code, False), ran.stdout + ran.stderr
    assert said in ran.stderr
    assert ran.stderr.count("headgate: ") == 1


def test_a_disk_without_room_is_said_and_ends_the_start(tmp_path: Path) -> None:
    state = tmp_path / "small"
    try:
        ran = headgate("up", tmp_path, {"HEADGATE_STATE": str(state)}, before=partial(mount_small_disk, state))
    except subprocess.SubprocessError:
        pytest.skip("this machine lets us make no disk")

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert f"{state} cannot be used: its disk has 7 MiB left. Put that right, or set HEADGATE_STATE" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_demo_that_fails_keeps_its_folder_and_names_it(tmp_path: Path) -> None:
    ran = headgate("demo", tmp_path, {"HEADGATE_SANDBOX": "wrong"})

    [folder] = tmp_path.glob("headgate-demo-*")
    assert ran.returncode == 1
    assert f"what this run has left is in {folder}" in ran.stderr
    assert "worker ended 3 times before it was ever ready, and said last: HEADGATE_SANDBOX: 'wrong' " in ran.stderr
    log = folder / "logs" / "worker.log"
    assert str(log) in ran.stderr
    assert "HEADGATE_SANDBOX" in log.read_text()


@asynccontextmanager
async def started(state: Path, said: list[str], modules: Mapping[str, str] = STANDINS) -> AsyncIterator[Supervisor]:
    starting = Supervisor(UpSettings(state=state, port=0, workers=1), say=said.append, modules=modules)
    try:
        await starting.start()
        yield starting
    finally:
        await starting.stop()


def pid_of(running: UpFile, name: str) -> int:
    return next(each.pid for each in running.services if each.name == name)


def another(state: Path, name: str, than: Collection[int]) -> int:
    """Zero until there is one."""
    told = read_up_file(state / "up.json")
    pid = pid_of(told, name) if told else 0
    return pid if pid not in than else 0


def headgate(
    verb: str, folder: Path, told: Mapping[str, str], *, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """To its end."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
    places = {"TMPDIR": str(folder), "HEADGATE_STATE": str(folder / "state"), "HEADGATE_PORT": "0"}
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "libs.cli", verb],
        cwd=folder,
        env=ours | places | {"PYTHONPATH": str(ROOT), **told},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=before,
    )


def mount_small_disk(folder: Path) -> None:
    """In a process of its own, and for it alone."""
    kernel.unshare(kernel.NEW_MOUNTS)
    kernel.mount("none", "/", None, flags=kernel.PRIVATE | kernel.RECURSIVE, data=None)
    folder.mkdir()
    kernel.mount("none", str(folder), "tmpfs", flags=0, data="size=8m")

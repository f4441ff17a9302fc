"""The fork server with real forks of a stand-in: a service that it has forked is one like any other."""

import json
import os
import signal
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from libs.local.forks import NOWHERE, ForkServer, can_fork
from libs.local.service import ServiceProcess
from libs.runtime.eventually import eventually
from tests.fixtures.worker_system import lives

pytestmark = pytest.mark.skipif(not can_fork(), reason="Linux alone ends what is forked with its parent")

ROOT = Path(__file__).parents[2]
STANDIN = "tests.fixtures.standin"
SECRET = "HEADGATE_NATS_URL"


@pytest.fixture
async def forks(tmp_path: Path) -> AsyncIterator[ForkServer]:
    told = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    server = ForkServer((STANDIN,), folder=tmp_path, environment=told)
    yield server
    await server.stop()


async def test_a_forked_service_has_its_own_environment_name_session_and_log(tmp_path: Path, forks: ForkServer) -> None:
    async with forked(tmp_path, forks, "one", told="mine") as one, forked(tmp_path, forks, "two") as two:
        seen = environment_of(one)

        assert (seen[SECRET], seen["HEADGATE_INSTANCE"]) == ("mine", "one")
        assert SECRET not in environment_of(two)
        assert told_of(one.pid, "cmdline").rstrip("\0").split("\0")[1:] == ["-m", STANDIN]
        assert os.getsid(one.pid) == one.pid
        assert one.words().startswith("one begins: ")
        assert "mine" not in told_of(forks.pid, "environ")


async def test_how_a_forked_service_has_ended_is_known(tmp_path: Path, forks: ForkServer) -> None:
    async with forked(tmp_path, forks, "one") as one:
        await one.stop()
        assert one.exit_code == 0

        await one.start()
        await eventually(one.ready)
        await one.kill()
        assert one.exit_code == -signal.SIGKILL
    async with forked(tmp_path, forks, "two", module="tests.fixtures.none_such", is_ready=False) as two:
        await eventually(lambda: not two.running)
        assert two.exit_code == 1
        assert "No module named tests.fixtures.none_such" in two.last_words()


async def test_services_end_with_the_fork_server_and_are_forked_from_the_next_one(
    tmp_path: Path, forks: ForkServer
) -> None:
    async with forked(tmp_path, forks, "one") as one:
        before, server = one.pid, forks.pid

        os.kill(server, signal.SIGKILL)
        await eventually(lambda: not one.running)
        await eventually(lambda: not lives(before))
        await one.start()

        assert await eventually(one.ready)
        assert forks.pid != server
    assert not one.running


async def test_a_service_is_forked_before_the_next_one_is_loaded(tmp_path: Path) -> None:
    os.mkfifo(gate := tmp_path / "gate")
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "__init__.py").write_text("")
    (tmp_path / "late" / "__main__.py").write_text(f"open({str(gate)!r}).read()")
    told = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    forks = ForkServer((STANDIN, "late"), folder=tmp_path, environment=told)

    async with forked(tmp_path, forks, "one") as one:
        assert one.running  # and the other one never is loaded, as nothing comes through the gate
        await forks.stop()


async def test_what_was_launched_without_a_folder_has_a_log_from_the_next_start_on(tmp_path: Path) -> None:
    told = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    forks = ForkServer((STANDIN,), folder=NOWHERE, environment=told)
    forks.launch()
    first = forks.pid

    forks.settle(tmp_path / "logs")
    async with forked(tmp_path, forks, "one") as one:
        logged = forks.log_path.exists()
        assert forks.pid == first
        await forks.kill()
        await eventually(lambda: not one.running)
        await one.start()

        assert await eventually(one.ready)
        assert (logged, forks.log_path.exists()) == (False, True)
    await forks.stop()


async def test_what_is_frozen_and_forked_is_thawed_to_be_stopped(tmp_path: Path, forks: ForkServer) -> None:
    async with forked(tmp_path, forks, "one") as one:
        one.pause()

        await one.stop()

        assert one.exit_code == 0


@asynccontextmanager
async def forked(
    folder: Path, forks: ForkServer, name: str, *, module: str = STANDIN, told: str = "", is_ready: bool = True
) -> AsyncIterator[ServiceProcess]:
    """It is ready, and ended afterwards."""
    environment = {"HEADGATE_INSTANCE": name} | ({SECRET: told} if told else {})
    service = ServiceProcess(module, name=name, folder=folder, environment=environment, forks=forks)
    try:
        await service.start()
        if is_ready:
            await eventually(service.ready)
        yield service
    finally:
        await service.stop()


def environment_of(service: ServiceProcess) -> dict[str, str]:
    with urllib.request.urlopen(f"{service.url}/environment", timeout=30) as answer:  # noqa: S310 - a stand-in's own
        return json.loads(answer.read())


def told_of(pid: int, what: str) -> str:
    """By the kernel."""
    return Path(f"/proc/{pid}/{what}").read_text(encoding="utf-8")

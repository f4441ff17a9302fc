"""The servers' own files, as compose and Kubernetes mount them, read by the real servers."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
import redis.asyncio
from redis.exceptions import AuthenticationError, NoPermissionError

from libs.deployment import accounts, generated
from libs.deployment.secrets import write_secrets
from libs.eventlog import LogSettings, LogUnavailable, connect, migrate, open_log
from libs.local.nats_config import TEAMS_FILE
from libs.local.permissions import NATS_USERS, VALKEY_USERS
from libs.local.programs import NATS_SERVER, VALKEY_SERVER, path_of
from libs.local.servers import NatsServer, ValkeyServer
from libs.local.state import StateFolder
from libs.local.teams import teams_in
from libs.runtime.eventually import eventually
from tests.fixtures import sources
from tests.fixtures.logs import new_epoch
from tests.fixtures.manifests import BASE, LOCAL, render

CONFIG = BASE / "config"


class DeployedNats(NatsServer):
    """With the files of the local overlay. Only the address and the folder are of this machine."""

    def __init__(self, folder: Path, *, told: Mapping[str, str]) -> None:
        super().__init__(folder)
        self.environment = {**os.environ, **told, "SERVER_NAME": "nats-0"}

    def prepare(self) -> list[str]:
        teams_in(self.folder.parent / "nats-teams" / TEAMS_FILE)
        for file in (LOCAL / "nats.conf", CONFIG / "accounts.conf", CONFIG / "tls.conf"):
            here = file.read_text().replace("/data", str(self.folder))
            (self.folder / file.name).write_text(here)
        options = ["-a", "127.0.0.1", "-p", str(self.port), "-m", "-1"]
        return [str(path_of(NATS_SERVER)), "-c", str(self.folder / "nats.conf"), *options]


class DeployedValkey(ValkeyServer):
    """By its start script. Only the address and the folders are of this machine."""

    def __init__(self, folder: Path, *, told: Mapping[str, str]) -> None:
        super().__init__(folder)
        binaries = str(path_of(VALKEY_SERVER).parent)
        self.environment = {**os.environ, **told, "PATH": f"{binaries}:{os.environ['PATH']}"}

    def prepare(self) -> list[str]:
        for name in ("valkey.sh", "valkey.conf", "valkey-users.conf", "tls.conf"):
            text = (CONFIG / name).read_text()
            here = re.sub(r"/etc/valkey|/tmp|/data", str(self.folder), text).replace("6379", str(self.port))
            (self.folder / name).write_text(here)
        return ["sh", str(self.folder / "valkey.sh")]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What each process finds in its environment."""
    folder = write_secrets(StateFolder(tmp_path_factory.mktemp("state")))
    return {
        file.stem: dict(line.split("=", 1) for line in file.read_text().splitlines()) for file in folder.glob("*.env")
    }


@pytest_asyncio.fixture
async def nats_at(tmp_path: Path, told: dict[str, dict[str, str]]) -> AsyncIterator[str]:
    server = DeployedNats(tmp_path / "nats", told=told["nats"])
    async with sources.running(server):
        yield f"127.0.0.1:{server.port}"


@pytest_asyncio.fixture
async def valkey_at(tmp_path: Path, told: dict[str, dict[str, str]]) -> AsyncIterator[str]:
    server = DeployedValkey(tmp_path / "valkey", told=told["valkey"])
    async with sources.running(server):
        yield f"127.0.0.1:{server.port}"


async def test_each_user_gets_into_nats_by_what_its_process_is_told(
    nats_at: str, told: dict[str, dict[str, str]]
) -> None:
    for user in NATS_USERS:
        url = told[user]["HEADGATE_NATS_URL"].replace("nats:4222", nats_at)
        client = await connect(url, name=user)
        await client.close()

        with pytest.raises(LogUnavailable):
            await connect(url.replace(":p", ":x"), name=user, within_s=0.5)


async def test_a_service_finds_nothing_to_refuse_about_the_log(nats_at: str, told: dict[str, dict[str, str]]) -> None:
    urls = {user: told[user]["HEADGATE_NATS_URL"].replace("nats:4222", nats_at) for user in ("operator", "scheduler")}
    operator, scheduler = [await connect(url, name=user) for user, url in urls.items()]

    try:
        await migrate(operator, LogSettings(), new_epoch=new_epoch())
        log = await open_log(scheduler, LogSettings())

        assert (await log.mark()).seq == 0
    finally:
        for client in (operator, scheduler):
            await client.close()


async def test_a_migration_that_comes_before_its_server_waits_for_it(
    tmp_path: Path, told: dict[str, dict[str, str]]
) -> None:
    server = DeployedNats(tmp_path / "nats", told=told["nats"])
    server.choose_ports()
    url = told["operator"]["HEADGATE_NATS_URL"].replace("nats:4222", f"127.0.0.1:{server.port}")
    words = [sys.executable, "-m", "libs.cli", "migrate", "--wait", "4m"]
    migrating = await asyncio.create_subprocess_exec(*words, env={**os.environ, "HEADGATE_NATS_URL": url})
    ended = asyncio.ensure_future(migrating.wait())

    assert not (await asyncio.wait([ended], timeout=12))[0]
    async with sources.running(server):
        assert await ended == 0


async def test_each_user_gets_into_valkey_and_the_default_user_does_not(
    valkey_at: str, told: dict[str, dict[str, str]]
) -> None:
    for user in VALKEY_USERS:
        password = told["valkey"][accounts.variable("valkey", user)]
        async with redis.asyncio.from_url(f"redis://{user}:{password}@{valkey_at}/0", retry=None) as client:
            assert await client.ping()

    async with redis.asyncio.from_url(f"redis://{valkey_at}/0", retry=None) as nobody:
        with pytest.raises(AuthenticationError):
            await nobody.ping()


async def test_a_service_may_not_empty_the_view(valkey_at: str, told: dict[str, dict[str, str]]) -> None:
    url = told["scheduler"]["HEADGATE_REDIS_URL"].replace("valkey:6379", valkey_at)

    async with redis.asyncio.from_url(url, retry=None) as client:
        with pytest.raises(NoPermissionError):
            await client.flushall()


@pytest.mark.parametrize("config", [CONFIG / "nats.conf", LOCAL / "nats.conf"], ids=["base", "local"])
def test_nats_takes_its_configuration(config: Path, tmp_path: Path, told: dict[str, dict[str, str]]) -> None:
    run = tried(config, tmp_path, environment={**told["nats"], "SERVER_NAME": "nats-0"})

    assert run.returncode == 0, run.stderr


async def test_a_server_that_is_to_stop_tells_its_clients_and_ends_by_itself(
    tmp_path: Path, told: dict[str, dict[str, str]]
) -> None:
    server = DeployedNats(tmp_path / "nats", told=told["nats"])
    async with sources.running(server):
        url = told["scheduler"]["HEADGATE_NATS_URL"].replace("nats:4222", f"127.0.0.1:{server.port}")
        client = await connect(url, name="scheduler")
        command = [str(path_of(NATS_SERVER)), "--signal", f"ldm={server.pid}"]
        signalled = await asyncio.create_subprocess_exec(*command)
        assert await signalled.wait() == 0

        await eventually(lambda: not client.is_connected, within_s=60, every_s=0.1)
        await eventually(lambda: not server.running, within_s=60, every_s=0.1)
        await client.close()


def tried(config: Path, folder: Path, *, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What nats-server says of this configuration, with the files beside it where compose and Kubernetes put them."""
    teams_in(folder / "nats-teams" / TEAMS_FILE)
    here = folder / "nats"
    here.mkdir()
    for file in (config, *(CONFIG / name for name in ("accounts.conf", "tls.conf", "tls-servers.conf"))):
        (here / file.name).write_text(file.read_text())
    command = [path_of(NATS_SERVER), "-t", "-c", here / "nats.conf"]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)  # noqa: S603 - ours


def test_without_its_passwords_nats_does_not_start(tmp_path: Path) -> None:
    run = tried(LOCAL / "nats.conf", tmp_path, environment={"SERVER_NAME": "nats-0"})

    assert "NATS_SYSTEM_PASSWORD" in run.stderr


def test_the_three_servers_look_for_each_other_where_kubernetes_puts_them() -> None:
    nats = render(BASE).named("StatefulSet", "nats")["spec"]
    pods = {f"nats-{number}.{nats['serviceName']}:6222" for number in range(nats["replicas"])}

    assert set(re.findall(r'"nats://([^"]+)"', (CONFIG / "nats.conf").read_text())) == pods


def test_a_server_of_another_user_reads_the_file_of_teams_whatever_the_mask(tmp_path: Path) -> None:
    state, before = StateFolder(tmp_path / "state"), os.umask(0o077)
    try:
        write_secrets(state)
    finally:
        os.umask(before)

    teams = state.deployed_teams
    assert (teams.parent.stat().st_mode & 0o777, teams.stat().st_mode & 0o777) == (0o755, 0o644)
    assert state.root.stat().st_mode & 0o077 == 0


def test_every_password_of_a_valkey_user_is_put_in() -> None:
    wanted = set(re.findall(r"\$\{(\w+)\}", (CONFIG / "valkey-users.conf").read_text()))

    assert wanted == {accounts.variable("valkey", user) for user in VALKEY_USERS}
    assert wanted == set(re.findall(r"\\\$\{(\w+)\}", (CONFIG / "valkey.sh").read_text()))


def test_what_was_made_once_is_made_again_the_same(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    first = {file.name: file.read_text() for file in write_secrets(state).rglob("*.*")}

    again = {file.name: file.read_text() for file in write_secrets(state).rglob("*.*")}

    assert again == first
    folder = state.root / "secrets"
    closed = (state.root, folder, *(file for file in folder.iterdir() if file.name != "teams"))
    assert all(file.stat().st_mode & 0o077 == 0 for file in closed)  # what is in `teams` a server of another user reads


def test_the_checked_in_files_are_those_that_follow_from_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert generated.main(["--check"]) == 0, capsys.readouterr().err

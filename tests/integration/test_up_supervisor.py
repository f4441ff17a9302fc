"""The supervisor with real servers and stand-ins for services: what it starts, keeps alive, tells and leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
import redis.asyncio
from nats.js.errors import NotFoundError

from headgate_contracts.tokens import foreign_token
from libs.eventlog.api import state_of
from libs.local.errors import AlreadyUp, GatewayPortTaken
from libs.local.ports import free_ports
from libs.local.service import ServiceProcess
from libs.local.settings import UpSettings
from libs.local.supervisor import Supervisor
from libs.local.up_file import UpFile, read_up_file
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client
from tests.fixtures.logs import connected

ROOT = Path(__file__).parents[2]
STANDINS: dict[str, str] = dict.fromkeys(("scheduler", "worker", "admission", "notifier"), "tests.fixtures.standin")


@pytest.fixture(autouse=True)
def _find_standins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


async def test_all_that_runs_is_in_up_json(tmp_path: Path) -> None:
    async with up(tmp_path, workers=2) as (running, _):
        told = read_up_file(tmp_path / "up.json")

        assert told == running
        assert [service.name for service in running.services] == [
            "scheduler",
            "worker",
            "worker-2",
            "admission",
            "notifier",
        ]
        assert [server.name for server in running.servers] == ["nats", "valkey", "caddy"]
        assert all(alive(process.pid) for process in (*running.services, *running.servers))
        assert oct((tmp_path / "up.json").stat().st_mode & 0o777) == "0o600"


async def test_the_tokens_are_for_a_user_and_for_an_operator(tmp_path: Path) -> None:
    async with up(tmp_path) as (running, _):
        keys = jwt.PyJWKSet.from_json((tmp_path / "keys" / "jwks.json").read_text())
        user, operator = (
            jwt.decode(token, keys.keys[0], algorithms=["EdDSA"], audience="headgate", issuer="headgate")
            for token in (running.user_token, running.operator_token)
        )

    assert (user["tier"], user["scope"]) == ("partner", "jobs:read jobs:write leases")
    assert operator["scope"].split() == ["jobs:read", "jobs:write", "leases", "ops"]
    assert user["sub"] == foreign_token(user["sub"])


async def test_each_service_gets_its_own_credentials_and_nobody_elses(tmp_path: Path) -> None:
    async with up(tmp_path) as (running, _):
        seen = {service.name: environment_of(service.url) for service in running.services}

    users = {name: told["HEADGATE_NATS_URL"].split("//")[1].split(":")[0] for name, told in seen.items()}
    assert users == {name: name for name in seen}
    passwords: dict[str, str] = json.loads((tmp_path / "passwords.json").read_text())
    for name, told in seen.items():
        others = {word for user, word in passwords.items() if not user.endswith(f"/{name}")}
        assert not [word for word in others for value in told.values() if word in value]


@pytest.mark.parametrize("name", ["scheduler", "worker", "admission", "notifier", "nats", "valkey", "caddy"])
async def test_whoever_is_killed_is_back_where_it_was(tmp_path: Path, name: str) -> None:
    async with up(tmp_path) as (running, said):
        before = process(running, name)
        os.kill(before, signal.SIGKILL)
        again = await eventually(lambda: changed(tmp_path, name, before))

        assert again
        assert alive(process(again, name))
        assert again.model_copy(update={"services": (), "servers": ()}) == running.model_copy(
            update={"services": (), "servers": ()}
        )
        assert [service.url for service in again.services] == [service.url for service in running.services]
        assert any(f"{name} was ended by signal 9: started again" in line for line in said)


async def test_the_read_only_user_reads_the_log_and_the_owner_commands_the_store(tmp_path: Path) -> None:
    async with up(tmp_path) as (running, _):
        async with nats_client(running.nats_url) as client:
            assert (await client.jetstream().stream_info("JOBS")).config.name == "JOBS"
        async with redis.asyncio.from_url(running.redis_url) as owner:
            assert await owner.flushall()


async def test_a_second_start_goes_on_with_the_same_log_and_the_same_passwords(tmp_path: Path) -> None:
    async with up(tmp_path) as (first, _):
        epoch = await epoch_of(first)

    async with up(tmp_path) as (second, _):
        assert await epoch_of(second) == epoch
    assert first.nats_url.rpartition(":")[0] == second.nats_url.rpartition(":")[0]


async def test_two_on_one_folder_are_one_too_many(tmp_path: Path) -> None:
    async with up(tmp_path) as (running, _):
        second = Supervisor(UpSettings(state=tmp_path, port=0), say=print, modules=STANDINS)
        with pytest.raises(AlreadyUp):
            await second.start()
        await second.stop()

        assert read_up_file(tmp_path / "up.json") == running
        assert all(alive(process.pid) for process in (*running.services, *running.servers))


async def test_a_stop_leaves_nothing_running_and_no_up_json(tmp_path: Path) -> None:
    async with up(tmp_path) as (running, _):
        pass

    assert not any(alive(process.pid) for process in (*running.services, *running.servers))
    assert not (tmp_path / "up.json").exists()


async def test_a_port_that_is_in_use_is_said_before_anything_is_started(tmp_path: Path) -> None:
    async with up(tmp_path / "first") as (running, _):
        port = int(running.url.rpartition(":")[2])
        second = Supervisor(UpSettings(state=tmp_path / "second", port=port), say=print, modules=STANDINS)
        with pytest.raises(GatewayPortTaken, match=str(port)):
            await second.start()
        await second.stop()

    assert not (tmp_path / "second" / "nats").exists()


async def test_the_port_is_held_from_the_start_on_and_who_comes_early_waits(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    first, second = (
        Supervisor(UpSettings(state=tmp_path / name, port=port, workers=1), say=print, modules=STANDINS)
        for name in ("first", "second")
    )
    try:
        await first.start()
        with pytest.raises(GatewayPortTaken):
            await second.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /livez HTTP/1.0\r\n\r\n")
        await first.ready()
        assert (await reader.readline()).split()[1] == b"200"
        writer.close()
    finally:
        await second.stop()
        await first.stop()


async def test_an_old_up_json_is_gone_before_the_new_one_is_true(tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text("{}")
    starting = Supervisor(UpSettings(state=tmp_path, port=0, workers=1), say=print, modules=STANDINS)
    await starting.start()
    try:
        assert not (tmp_path / "up.json").exists()
    finally:
        await starting.stop()


async def test_a_service_that_ended_before_anybody_knew_its_port_takes_another(tmp_path: Path) -> None:
    service = ServiceProcess("no_such_module", name="s", folder=tmp_path, environment=dict(os.environ))
    first = service.port
    await service.start()
    await eventually(lambda: not service.running)

    await service.start()

    assert service.port != first
    await service.stop()


async def test_a_service_that_served_comes_back_on_its_port(tmp_path: Path) -> None:
    service = ServiceProcess("tests.fixtures.standin", name="s", folder=tmp_path, environment=dict(os.environ))
    await service.start()
    await eventually(service.ready)
    url = service.url

    await service.kill()
    await service.start()

    assert await eventually(service.ready)
    assert service.url == url
    await service.stop()


async def test_another_team_cannot_make_a_stream(tmp_path: Path) -> None:
    async with up(tmp_path) as (running, _), nats_client(running.nats_url) as client:
        with pytest.raises((TimeoutError, NotFoundError)):
            await client.jetstream(timeout=0.3).add_stream(name="THEIRS", subjects=["theirs.>"])


@asynccontextmanager
async def up(state: Path, *, workers: int = 1) -> AsyncIterator[tuple[UpFile, list[str]]]:
    said: list[str] = []
    running = Supervisor(
        UpSettings(state=state, port=free_ports(1)[0], workers=workers), say=said.append, modules=STANDINS
    )
    try:
        await running.start()
        yield await running.ready(), said
    finally:
        await running.stop()


def process(running: UpFile, name: str) -> int:
    return next(each.pid for each in (*running.services, *running.servers) if each.name == name)


def changed(state: Path, name: str, before: int) -> UpFile | None:
    told = read_up_file(state / "up.json")
    return told if told and process(told, name) != before else None


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"  # one that nobody has reaped


def environment_of(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/environment", timeout=30) as answer:  # noqa: S310 - a stand-in's own URL
        return json.loads(answer.read())


async def epoch_of(running: UpFile) -> str | None:
    async with connected(running.nats_url) as client:
        return (await state_of(client, "JOBS")).epoch

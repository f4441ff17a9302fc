"""The embedded servers live, die and come back as the tests and `headgate up` rely on."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import redis.asyncio
from nats.errors import NoServersError
from nats.js.api import StreamConfig
from redis.exceptions import AuthenticationError, NoPermissionError

from libs.eventlog.servers import SERVERS_SUBJECT
from libs.eventlog.streams import LogSettings, streams
from libs.local.errors import ServerDidNotStart, ServerNotRunning, ServerPortTaken, UnsafeCredential
from libs.local.nats_config import MOST_STORED_BYTES, NatsUser
from libs.local.process import ServerProcess
from libs.local.programs import NATS_SERVER, path_of
from libs.local.servers import NatsServer, ValkeyServer, ValkeyUser
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client, servers_seen, settled
from tests.fixtures.foreign import prelude


async def test_what_nats_acknowledged_is_there_after_kill_and_restart(nats_server: NatsServer) -> None:
    port = nats_server.port
    async with nats_client(nats_server.url) as client:
        await client.jetstream().add_stream(StreamConfig(name="KEPT", subjects=["kept"]))
        for number in range(50):
            await client.jetstream().publish("kept", str(number).encode())

    await nats_server.kill()
    await nats_server.start()

    assert nats_server.port == port
    async with nats_client(nats_server.url) as client:
        assert (await client.jetstream().stream_info("KEPT")).state.messages == 50


async def test_a_client_finds_the_restarted_server_where_it_was(nats_server: NatsServer) -> None:
    async with nats_client(nats_server.url) as client:
        await nats_server.restart()

        await eventually(lambda: client.is_connected)
        assert (await client.jetstream().account_info()).streams == 0


async def test_what_valkey_acknowledged_is_there_after_kill_and_restart(valkey_server: ValkeyServer) -> None:
    url = valkey_server.url
    async with redis.asyncio.from_url(url) as client:
        await client.set("kept", "yes")

    await valkey_server.kill()
    await valkey_server.start()

    async with redis.asyncio.from_url(valkey_server.url) as client:
        assert (valkey_server.url, await client.get("kept")) == (url, b"yes")


async def test_a_valkey_that_keeps_nothing_comes_back_empty(tmp_path: Path) -> None:
    async with ValkeyServer(tmp_path) as server:
        async with redis.asyncio.from_url(server.url) as client:
            await client.set("gone", "yes")

        await server.restart()

        async with redis.asyncio.from_url(server.url) as client:
            assert await client.dbsize() == 0


async def test_a_paused_server_answers_when_it_is_resumed_and_not_before(valkey_server: ValkeyServer) -> None:
    async with redis.asyncio.from_url(valkey_server.url) as client:
        await client.ping()

        valkey_server.pause()
        answer = asyncio.ensure_future(client.ping())
        done, _ = await asyncio.wait([answer], timeout=0.2)
        valkey_server.resume()

        assert not done
        assert await answer


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
async def test_start_and_stop_may_be_called_twice(kind: type[NatsServer | ValkeyServer], tmp_path: Path) -> None:
    server = kind(tmp_path)

    await server.start()
    first = server.pid
    await server.start()
    assert server.pid == first

    await server.stop()
    await server.stop()
    assert not server.running


async def test_a_paused_server_can_be_stopped(nats_server: NatsServer) -> None:
    nats_server.pause()

    await nats_server.stop()

    assert not nats_server.running


async def test_a_server_that_does_not_run_cannot_be_paused(tmp_path: Path) -> None:
    with pytest.raises(ServerNotRunning, match="nats does not run, so it cannot be paused"):
        NatsServer(tmp_path).pause()


async def test_a_server_whose_port_was_taken_before_its_first_start_takes_another(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    taken = server.port

    with socket.create_server(("127.0.0.1", taken)):
        async with server, nats_client(server.url) as client:
            assert client.is_connected
            assert server.port != taken


async def test_a_server_waits_for_the_port_that_its_clients_know(nats_server: NatsServer) -> None:
    port = nats_server.port
    await nats_server.kill()
    with socket.create_server(("127.0.0.1", port)):
        starting = asyncio.ensure_future(nats_server.start())
        await eventually(lambda: "address already in use" in nats_server.log_path.read_text())
        assert not starting.done()

    await starting

    assert nats_server.port == port


async def test_a_server_that_cannot_start_says_what_it_said(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path, users=(ValkeyUser("worker", "secret", rules="+@nonsense"),))

    with pytest.raises(ServerDidNotStart, match="nonsense") as failure:
        await server.start()

    assert not isinstance(failure.value, ServerPortTaken)


@pytest.mark.parametrize("system", ["Linux", "another system"])
async def test_a_server_ends_with_the_process_that_started_it(tmp_path: Path, system: str) -> None:
    report = tmp_path / "of linux alone"
    program = (prelude(report) if system != "Linux" else "") + (
        "import asyncio, pathlib, signal, sys; from libs.local.servers import ValkeyServer;"
        "server = ValkeyServer(pathlib.Path(sys.argv[1])); asyncio.run(server.start());"
        "print(server.pid, flush=True); signal.pause()"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(tmp_path), stdout=subprocess.PIPE)
    assert parent.stdout
    server_pid = int(await parent.stdout.readline())

    parent.kill()
    await parent.wait()

    await eventually(lambda: not _alive(server_pid))
    assert not report.exists(), report.read_text()


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_a_service_learns_the_sync_setting_with_the_right_to_one_subject_alone(tmp_path: Path) -> None:
    service = NatsUser("service", "secret", publish=(SERVERS_SUBJECT,), subscribe=("_INBOX.>",))

    async with NatsServer(tmp_path, users=(service,)) as server, nats_client(server.url) as client:
        [answer] = await servers_seen(client, expected=1)

    assert answer["server"]["ver"] in await _version_of(path_of(NATS_SERVER))
    assert answer["data"]["jetstream"]["config"]["sync_always"] is True


async def _version_of(binary: Path) -> str:
    run = await asyncio.create_subprocess_exec(str(binary), "--version", stdout=subprocess.PIPE)
    said, _ = await run.communicate()
    return said.decode()


async def test_a_server_that_syncs_now_and_then_says_so(tmp_path: Path) -> None:
    async with NatsServer(tmp_path, sync_interval="2m") as server, nats_client(server.url) as client:
        [answer] = await servers_seen(client, expected=1)

    settings = answer["data"]["jetstream"]["config"]
    assert (settings.get("sync_always", False), settings["sync_interval"]) == (False, 120 * 10**9)


async def test_a_small_disk_is_no_reason_to_make_no_stream(nats_server: NatsServer) -> None:
    async with nats_client(nats_server.url) as client:
        [answer] = await servers_seen(client, expected=1)

    assert answer["data"]["jetstream"]["config"]["max_storage"] == MOST_STORED_BYTES
    assert 4 * sum(stream.settings["max_bytes"] for stream in streams(LogSettings())) < MOST_STORED_BYTES


@pytest.mark.parametrize(
    ("publish", "arrived", "refused"),
    [(("jobs.>",), ["jobs.a"], ["other"]), ((), [], ["jobs.a", "other"]), (None, ["jobs.a", "other"], [])],
    ids=["a list", "nothing", "everything"],
)
async def test_a_user_publishes_what_its_list_allows(
    publish: tuple[str, ...] | None, arrived: list[str], refused: list[str], tmp_path: Path
) -> None:
    observer, writer = NatsUser("observer", "secret"), NatsUser("writer", "secret", publish=publish)
    complaints: list[str] = []

    async def complain(error: Exception) -> None:
        complaints.append(str(error).split('"')[1])  # permissions violation for publish to "other"

    async with (
        NatsServer(tmp_path, users=(observer, writer)) as server,
        nats_client(server.url) as watching,
        nats_client(server.url_for(writer), error_cb=complain) as writing,
    ):
        seen = await watching.subscribe(">")
        await settled(watching)
        for subject in ("jobs.a", "other"):
            await writing.publish(subject, b"")

        assert [(await seen.next_msg(timeout=30)).subject for _ in arrived] == arrived
        await eventually(lambda: complaints == refused)


@pytest.mark.parametrize(
    ("subscribe", "heard"),
    [(("jobs.>",), ["jobs"]), ((), []), (None, ["jobs", "others"])],
    ids=["a list", "nothing", "everything"],
)
async def test_a_user_hears_what_its_list_allows(
    subscribe: tuple[str, ...] | None, heard: list[str], tmp_path: Path
) -> None:
    listener = NatsUser("listener", "secret", subscribe=subscribe)

    async with NatsServer(tmp_path, users=(listener,)) as server, nats_client(server.url) as client:
        subscriptions = {subject: await client.subscribe(f"{subject}.>") for subject in ("jobs", "others")}
        for subject in subscriptions:
            await client.publish(f"{subject}.a", b"")
        for subject in heard:
            await subscriptions[subject].next_msg(timeout=30)
        await settled(client)

        assert all(subscription.pending_msgs == 0 for subscription in subscriptions.values())


async def test_a_wrong_password_is_refused(nats_server: NatsServer) -> None:
    wrong = nats_server.url_for(NatsUser("headgate", "wrong"))

    with pytest.raises(NoServersError):
        async with nats_client(wrong, max_reconnect_attempts=1):
            pass


async def test_a_valkey_user_may_do_what_its_rules_allow(tmp_path: Path) -> None:
    reader = ValkeyUser("reader", "secret", rules="~hg:* -@all +get")
    async with (
        ValkeyServer(tmp_path, users=(ValkeyUser("owner", "secret"), reader)) as server,
        redis.asyncio.from_url(server.url) as owner,
        redis.asyncio.from_url(server.url_for(reader)) as client,
        redis.asyncio.from_url(f"redis://127.0.0.1:{server.port}") as nobody,
    ):
        await owner.set("hg:a", "1")

        assert await client.get("hg:a") == b"1"
        with pytest.raises(NoPermissionError):
            await client.set("hg:a", "2")
        with pytest.raises(NoPermissionError):
            await client.get("other")
        with pytest.raises(AuthenticationError):
            await nobody.ping()


@pytest.mark.parametrize("credential", ["", "a b", "p@ss", "a:b", "x" * 129])
def test_a_credential_that_a_url_would_garble_is_refused(credential: str) -> None:
    with pytest.raises(UnsafeCredential):
        NatsUser("user", credential)
    with pytest.raises(UnsafeCredential):
        ValkeyUser(credential, "password")


def test_configurations_are_for_their_owners_eyes(tmp_path: Path) -> None:
    servers: list[ServerProcess] = [NatsServer(tmp_path), ValkeyServer(tmp_path, users=(ValkeyUser("u", "secret"),))]

    for server in servers:
        server.prepare()

    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("nats.conf", "valkey.conf", "valkey.acl"), "0o600")


async def test_ctrl_c_in_the_terminal_does_not_reach_a_server(valkey_server: ValkeyServer) -> None:
    assert os.getpgid(valkey_server.pid) != os.getpgid(0)  # the terminal signals the whole group of the one in front

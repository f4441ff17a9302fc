"""TLS to real servers, by an authority of one test: who is believed, and that nothing falls back to plain text.

nats-server has the component's own file. The wheel of Valkey has no TLS in it, so a door of ours speaks TLS in front of
it; the official image has.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as Unconnected

from libs.capacity.store_client import open_client
from libs.eventlog import LogUnavailable, connect
from libs.foundation.live import live_broker
from libs.local.programs import NATS_SERVER, path_of
from libs.local.servers import NatsServer, ValkeyServer
from libs.runtime.errors import SettingsWrong
from libs.runtime.tls import authorities_in, trusting
from tests.fixtures import sources
from tests.fixtures.authority import Authority
from tests.fixtures.manifests import COMPONENTS, render_with

HERE = "127.0.0.1"
BRIEFLY_S = 2.0


class SecuredNats(NatsServer):
    """With the file that the component brings. Only the folder of its certificate is of this machine."""

    authority: Authority

    def prepare(self) -> list[str]:
        words = super().prepare()
        text = (COMPONENTS / "tls" / "nats.conf").read_text()
        path = Path(words[-1])
        path.write_text(path.read_text() + "\n" + text.replace("/etc/headgate/tls", str(self.authority.folder)))
        return words


@asynccontextmanager
async def secured(folder: Path, *, name: str) -> AsyncIterator[SecuredNats]:
    server = SecuredNats(folder / "nats")
    server.authority = Authority.of(folder / "authority")
    server.authority.issue(name)
    async with sources.running(server):
        yield server


async def test_who_knows_the_authority_speaks_to_nats_and_nobody_else(tmp_path: Path) -> None:
    async with secured(tmp_path, name=HERE) as server:
        tls = trusting(server.authority.file)
        client = await connect(server.url, name="one", tls=tls)
        broker = live_broker(server.url, name="two", tls=tls)
        await broker.start()

        assert client.is_connected
        assert broker.connection.is_connected
        await broker.stop()
        await client.close()
        for believed in (trusting(Authority.of(tmp_path / "another").file), None):
            with pytest.raises(LogUnavailable):
                await connect(server.url, name="three", tls=believed, within_s=BRIEFLY_S)


async def test_a_nats_server_of_another_name_is_not_believed(tmp_path: Path) -> None:
    async with secured(tmp_path, name="somewhere.else") as server:
        with pytest.raises(LogUnavailable):
            await connect(server.url, name="one", tls=trusting(server.authority.file), within_s=BRIEFLY_S)


async def test_who_is_to_speak_tls_says_nothing_to_a_server_that_does_not(tmp_path: Path) -> None:
    heard = bytearray()

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"tls_required": false, "max_payload": 1048576, "version": "2.15.1"}\r\n')
        heard.extend(await reader.read(4096))
        writer.close()

    there = await asyncio.start_server(plain, HERE, 0)
    port = there.sockets[0].getsockname()[1]
    tls = trusting(Authority.of(tmp_path / "authority").file)
    with pytest.raises(LogUnavailable):
        await connect(f"nats://one:secret-word@{HERE}:{port}", name="one", tls=tls, within_s=BRIEFLY_S)
    there.close()

    assert heard.startswith(b"\x16\x03")  # a handshake
    assert b"secret-word" not in heard


async def test_who_knows_the_authority_speaks_to_the_view_and_nobody_else(tmp_path: Path) -> None:
    authority = Authority.of(tmp_path / "authority")
    authority.issue(HERE)
    server = ValkeyServer(tmp_path / "valkey")
    async with sources.running(server), _door(authority, server.port) as port:
        url = f"redis://{HERE}:{port}/0"
        async with open_client(url, authorities=authority.file) as client:
            assert await client.ping()
        for believed in (Authority.of(tmp_path / "another").file, None):
            async with open_client(url, authorities=believed, answer_s=BRIEFLY_S) as stranger:
                with pytest.raises(Unconnected):
                    await stranger.ping()


def test_a_file_that_is_no_authority_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()

    for file in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(SettingsWrong, match="HEADGATE_CA_FILE"):
            authorities_in({"HEADGATE_CA_FILE": str(file)})
    assert authorities_in({}) is None


def test_a_cluster_of_nats_takes_the_components_files(tmp_path: Path) -> None:
    authority = Authority.of(tmp_path / "authority")
    authority.issue("nats")
    for name in ("nats", "nats-servers"):
        text = (COMPONENTS / "tls" / f"{name}.conf").read_text()
        (tmp_path / f"{name}.conf").write_text(text.replace("/etc/headgate/tls", str(authority.folder)))
    whole = 'include "nats.conf"\ncluster { name: it, listen: "127.0.0.1:-1"\n include "nats-servers.conf"\n }\n'
    (tmp_path / "whole.conf").write_text(whole)

    run = subprocess.run(  # noqa: S603 - our own words
        [path_of(NATS_SERVER), "-t", "-c", tmp_path / "whole.conf"], check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_with_the_component_everybody_is_told_the_authority_and_nobody_gets_a_key() -> None:
    pods = render_with("tls").pods()

    for name in ("admission", "scheduler", "worker", "notifier"):
        for container in (*pods[name].get("initContainers", []), *pods[name]["containers"]):
            told = {each["name"]: each["value"] for each in container["env"]}
            assert told["HEADGATE_CA_FILE"] == "/etc/headgate/authority/ca.crt", name
            assert "/etc/headgate/authority" in {each["mountPath"] for each in container["volumeMounts"]}, name
        [authority] = [each["secret"] for each in pods[name]["volumes"] if each["name"] == "authority"]
        assert [each["key"] for each in authority["items"]] == ["ca.crt"], name


@asynccontextmanager
async def _door(authority: Authority, port: int) -> AsyncIterator[int]:
    """Speaks TLS in front of a server that cannot."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.folder / "tls.crt", authority.folder / "tls.key")

    async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection(HERE, port)
        await asyncio.gather(_pumped(reader, to_writer), _pumped(to_reader, writer), return_exceptions=True)

    door = await asyncio.start_server(through, HERE, 0, ssl=context)
    try:
        yield door.sockets[0].getsockname()[1]
    finally:
        door.close()


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()

"""Whatever the backend, a test gets the same servers: empty, synced always, evicting nothing."""

from pathlib import Path

import pytest
import redis.asyncio
from nats.errors import NoServersError
from nats.js.api import StreamConfig

from tests.fixtures import sources
from tests.fixtures.backend import Backend
from tests.fixtures.clients import nats_client, servers_seen
from tests.fixtures.servers import delete_streams

OUR_OWN = [Backend.EMBEDDED, pytest.param(Backend.DOCKER, marks=pytest.mark.docker)]


@pytest.mark.parametrize("backend", OUR_OWN)
async def test_nats_syncs_always_and_has_both_accounts(backend: Backend, tmp_path: Path) -> None:
    async with sources.NATS[backend](tmp_path) as urls, nats_client(urls[0]) as client:
        [answer] = await servers_seen(client, expected=1)

        account = await client.jetstream().account_info()

    assert answer["data"]["jetstream"]["config"]["sync_always"] is True
    assert account.streams == 0


@pytest.mark.parametrize("backend", OUR_OWN)
async def test_valkey_keeps_nothing_on_disk_and_evicts_nothing(backend: Backend, tmp_path: Path) -> None:
    async with sources.VALKEY[backend](tmp_path) as url, redis.asyncio.from_url(url) as client:
        settings = await client.config_get("save", "appendonly", "maxmemory-policy")

    assert settings == {"save": "", "appendonly": "no", "maxmemory-policy": "noeviction"}


async def test_an_external_server_is_the_one_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEST_NATS_URL", "nats://a:4222")
    monkeypatch.setenv("TEST_REDIS_URL", "redis://b:6379/0")

    async with sources.external_nats(tmp_path) as nats_urls, sources.external_valkey(tmp_path) as redis_url:
        assert (nats_urls, redis_url) == (["nats://a:4222"], "redis://b:6379/0")


@pytest.mark.parametrize("source", [sources.external_nats, sources.external_valkey])
async def test_an_external_server_that_is_not_named_is_missing(
    source: sources.Source[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in ("CI", "TEST_NATS_URL", "TEST_REDIS_URL"):
        monkeypatch.delenv(variable, raising=False)

    with pytest.raises(pytest.skip.Exception, match="TEST_BACKEND=external needs TEST_"):
        async with source(tmp_path):
            pass


async def test_rooms_of_one_server_know_nothing_of_each_other(tmp_path: Path) -> None:
    stream = StreamConfig(name="SAME", subjects=["same"])
    async with sources.embedded_nats(tmp_path) as urls, nats_client(urls[0]) as one, nats_client(urls[1]) as other:
        await one.jetstream().add_stream(stream)
        await one.jetstream().publish("same", b"")

        assert await other.jetstream().streams_info() == []
        assert (await other.jetstream().add_stream(stream)).state.messages == 0
        assert len(await servers_seen(other, expected=1)) == 1


async def test_a_test_leaves_no_stream_behind_for_the_next(nats_url: str) -> None:
    async with nats_client(nats_url) as client:
        for name in ("ONE", "TWO"):
            await client.jetstream().add_stream(
                StreamConfig(name=name, subjects=[name], deny_delete=True, deny_purge=True)
            )

        await delete_streams([nats_url])

        assert await client.jetstream().streams_info() == []


async def test_a_view_that_is_flushed_leaves_the_other_workers_alone(redis_url: str, worker_redis_url: str) -> None:
    async with redis.asyncio.from_url(redis_url) as client:
        assert await client.dbsize() == 0

        await client.set("mine", "1")

        assert (redis_url, await client.dbsize()) == (worker_redis_url, 1)


async def test_the_shared_server_takes_the_users_it_was_given_and_nobody_else(nats_url: str) -> None:
    address = nats_url.rsplit("@", 1)[1]

    with pytest.raises(NoServersError):
        async with nats_client(f"nats://{address}", max_reconnect_attempts=1):
            pass

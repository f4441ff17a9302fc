"""Old generations of the view are removed, and nothing else is."""

from typing import Any

import pytest
from redis.asyncio import Redis

from libs.capacity.errors import ViewUnavailable
from libs.capacity.keys import lead_key, ticket_key, view_key
from libs.capacity.rows import StandingOrders
from libs.capacity.store import RedisView
from libs.capacity.store_cleaner import BATCH, GenerationCleaner
from libs.capacity.store_client import open_client
from libs.local.servers import ValkeyServer
from tests.conformance.view_scenario import ViewScenario, row
from tests.fixtures.observing import observe
from tests.fixtures.stores import EPOCH, SHARD


async def names(client: Redis) -> set[str]:
    return {name async for name in client.scan_iter(match="*", count=1000)}


async def test_beginning_a_generation_removes_the_older_ones(view: RedisView, client: Redis) -> None:
    world = ViewScenario(view)
    await world.open()
    for number in range(2 * BATCH):
        world.write(row(f"j{number}"))
    await world.open(seeds=world.seeds(), generation="g1")

    await world.open(generation="g2")
    await view.cleaner.wait()

    assert {name.split(":")[2] for name in await names(client)} == {"view", "g2"}


async def test_other_shards_and_other_keys_stay(view: RedisView, client: Redis) -> None:
    kept = {"{hg:other}:g0:queue", "{hg:mainland}:g0:queue", "hg:main", lead_key(SHARD), ticket_key(SHARD, "0" * 64)}
    for name in kept:
        await client.set(name, "x")
    await client.set("{hg:main}:g0:queue", "x")

    await ViewScenario(view).open(generation="g1")
    await view.cleaner.wait()

    assert await names(client) & {"{hg:main}:g0:queue", *kept} == kept


async def test_a_generation_begun_meanwhile_is_not_touched(view: RedisView, client: Redis) -> None:
    world = ViewScenario(view)
    await world.open(generation="g1")
    cleaner = GenerationCleaner(_BeginsWhenAsked(client, world), shard=SHARD)  # type: ignore[arg-type]

    cleaner.start()
    await cleaner.wait()

    assert (await observe(view)).mark.generation == "g2"
    assert await client.hgetall("{hg:main}:g2:defaults") == {k: str(v) for k, v in world.orders.defaults.items()}


class _BeginsWhenAsked:
    """A client between whose SCAN and next word another scheduler opens a generation."""

    def __init__(self, client: Redis, world: ViewScenario) -> None:
        self._client = client
        self._world = world

    def scan_iter(self, **options: Any) -> Any:
        return self._client.scan_iter(**options)

    async def hget(self, *args: str) -> Any:
        await self._world.open(generation="g2")
        return await self._client.hget(*args)

    async def unlink(self, *args: str) -> Any:
        return await self._client.unlink(*args)


async def test_a_view_that_is_lost_meanwhile_is_left_alone(view: RedisView, client: Redis) -> None:
    await client.set("{hg:main}:g1:queue", "x")

    view.cleaner.start()
    await view.cleaner.wait()

    assert await names(client) == {"{hg:main}:g1:queue"}


async def test_a_generation_begun_twice_is_begun_once(view: RedisView, client: Redis) -> None:
    world = ViewScenario(view)
    await world.open(generation="g1")
    await world.submit("a")

    await view.begin(EPOCH, generation="g1", applied=0, standing=StandingOrders())

    mark = await view.mark()
    assert mark is not None
    assert (mark.applied, mark.open) == (1, True)


async def test_cleaning_is_started_and_stopped_at_any_time(view: RedisView, client: Redis) -> None:
    await ViewScenario(view).open()
    for _ in range(50):
        view.cleaner.start()
        view.cleaner.start()
        await view.cleaner.stop()
        await view.cleaner.stop()

    view.cleaner.start()
    await view.cleaner.wait()
    assert (await view.mark()) is not None


async def test_a_server_that_is_gone_stops_the_cleaning_and_says_so(
    valkey_server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_client(valkey_server.url)
    view = RedisView(client, shard=SHARD, epoch=EPOCH)
    await ViewScenario(view).open()
    await valkey_server.kill()

    view.cleaner.start()
    await view.cleaner.wait()

    assert "are left until the next one begins" in caplog.text
    with pytest.raises(ViewUnavailable):
        await view.mark()
    await view.close()
    await client.aclose()


async def test_the_view_key_stands_alone(view: RedisView, client: Redis) -> None:
    await view.begin(EPOCH, generation="g1", applied=0, standing=StandingOrders())

    assert await names(client) == {view_key(SHARD)}

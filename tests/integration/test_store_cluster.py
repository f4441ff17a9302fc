"""On a server in cluster mode a script may only touch keys of the slot that it was sent for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from libs.local.servers import ValkeyServer
from libs.runtime.eventually import eventually
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import observe
from tests.fixtures.stores import EPOCH
from tests.integration.test_store import live

SLOTS = 16_384


class ClusterServer(ValkeyServer):
    """One node that has all slots."""

    def prepare(self) -> list[str]:
        return [*super().prepare(), "--cluster-enabled", "yes"]


@pytest_asyncio.fixture
async def view(tmp_path: Path) -> AsyncIterator[RedisView]:
    server = ClusterServer(tmp_path)
    await server.start()
    client = open_client(server.url)
    await client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)

    async def is_whole() -> bool:
        return "cluster_state:ok" in str(await client.execute_command("CLUSTER", "INFO"))

    await eventually(is_whole)
    view = RedisView(client, shard="main", epoch=EPOCH)
    yield view
    await view.close()
    await client.aclose()
    await server.kill()


async def test_a_view_lives_on_a_cluster(view: RedisView) -> None:
    world = await ViewScenario.opened(view)

    await live(world)
    world.later(3_600_000)
    await view.sweep(now_ms=world.now_ms)
    await world.open(seeds=world.seeds(), generation="g1", quarantine_ms=1)
    await view.cleaner.wait()

    seen = await observe(view, now_ms=world.now_ms)
    assert seen.mark.generation == "g1"
    assert {entry.job for entry in seen.queue} >= {"c", "d", "e", "passing"}

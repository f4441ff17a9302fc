"""Every store of the view that the conformance suite holds to the rules, and the world around each."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from libs.capacity.memory import MemoryStore, MemoryView
from libs.capacity.ports import View
from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from tests.conformance.view_beside import beside
from tests.conformance.view_log import NOW_MS
from tests.conformance.view_scenario import Views, ViewScenario
from tests.fixtures.stores import EPOCH


@pytest.fixture
def memory_views() -> Views:
    store = MemoryStore()
    return lambda epoch: MemoryView(epoch, clock=lambda: NOW_MS, store=store)


@pytest_asyncio.fixture
async def valkey_views(redis_url: str) -> AsyncIterator[Views]:
    client = open_client(redis_url)
    views: list[RedisView] = []

    def view_of(epoch: str) -> View:
        views.append(RedisView(client, shard="main", epoch=epoch))
        return views[-1]

    yield view_of
    for view in views:
        await view.close()
    await client.aclose()


@pytest.fixture(params=["memory", "valkey"])
def views(request: pytest.FixtureRequest) -> Views:
    """An empty store."""
    return request.getfixturevalue(f"{request.param}_views")


@pytest.fixture
def view(views: Views) -> View:
    """A store without a view in it."""
    return views(EPOCH)


@pytest_asyncio.fixture
async def world(view: View) -> ViewScenario:
    """An open view over an empty log, with a worker that has room for all, and an engine beside it."""
    world = beside(view)
    await world.open()
    await world.worker()
    return world

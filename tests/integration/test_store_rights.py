"""A service's user at the view's server may do what its verbs need, and nothing besides."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from libs.capacity.errors import ViewMisused
from libs.capacity.keys import lead_key
from libs.capacity.lead import RedisLead
from libs.capacity.lua_files import access_rules
from libs.capacity.scripts import ScriptRunner
from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from libs.local.servers import ValkeyServer, ValkeyUser
from tests.conformance.view_beside import beside
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import observe
from tests.fixtures.stores import EPOCH
from tests.integration.test_store import live

USERS = (
    ValkeyUser("operator", "operator"),
    ValkeyUser("service", "service", access_rules("main")),
)
Connect = Callable[[int], Redis]


@pytest_asyncio.fixture
async def connect(tmp_path: Path) -> AsyncIterator[Connect]:
    """A client for one of the users."""
    server = ValkeyServer(tmp_path, users=USERS)
    await server.start()
    clients: list[Redis] = []

    def connect(user: int) -> Redis:
        clients.append(open_client(server.url_for(USERS[user])))
        return clients[-1]

    yield connect
    for client in clients:
        await client.aclose()
    await server.kill()


async def read(view: RedisView) -> None:
    """All that readers ask."""
    await view.outlooks(["d", "later"])
    await view.groups()
    await view.workers()
    await view.pauses()
    await view.tiers_queued()
    await view.published("forecast")
    await view.refused()
    await view.due(10)
    await view.jobs_of("ann")
    await view.day_used("ann", 20_000)


async def test_a_service_may_do_all_that_a_view_needs(connect: Connect) -> None:
    client = connect(1)
    view = RedisView(client, shard="main", epoch=EPOCH)
    world = beside(view)
    await world.open()
    await world.worker()

    await live(world)
    await world.give_back("a")
    await world.resume("user:cleo")
    await world.finish("c")
    await world.forget("c")
    await view.prolong(1_000)
    await view.between("e", before="d")
    await read(view)
    await view.keep_ticket("0" * 64, "{}", user="ann", most=9, ttl_ms=1_000)
    await view.take_ticket("0" * 64)
    world.later(3_600_000)
    await view.sweep(now_ms=world.now_ms)
    await observe(view, now_ms=world.now_ms)
    await world.open(seeds=world.seeds(), generation="g2", quarantine_ms=1)
    await world.claim()
    await view.cleaner.wait()
    await RedisLead(ScriptRunner(client, view=lead_key("main"))).hold("one", ttl_ms=1_000)

    assert [name async for name in connect(0).scan_iter(match="*generation-0*")] == []
    await view.close()


async def test_a_service_may_not_touch_what_is_not_its_shards(connect: Connect) -> None:
    other = RedisView(connect(1), shard="other", epoch=EPOCH)

    with pytest.raises(ViewMisused, match="NoPermission"):
        await ViewScenario(other).open()
    with pytest.raises(ViewMisused, match="NoPermission"):
        await other.mark()


@pytest.mark.parametrize(
    "command",
    ["FLUSHALL", "CONFIG GET *", "KEYS *", "GET {hg:other}:view", "EVAL x 0", "ACL LIST", "SCRIPT FLUSH"],
)
async def test_a_service_may_not_do_what_no_verb_does(connect: Connect, command: str) -> None:
    with pytest.raises(NoPermissionError):
        await connect(1).execute_command(*command.split())

"""The lead, on Redis and as the twin in memory: the same questions, the same answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest
import pytest_asyncio

from libs.capacity.errors import ViewUnavailable
from libs.capacity.keys import lead_key
from libs.capacity.lead import Lead, MemoryLead, RedisLead
from libs.capacity.scripts import ScriptRunner
from libs.capacity.store_client import open_client
from libs.local.servers import ValkeyServer
from libs.runtime.clock import ManualClock


@dataclass(frozen=True)
class Led:
    """A lead, and how time passes for it."""

    lead: Lead
    pass_ms: Callable[[int], Awaitable[None]]


@pytest_asyncio.fixture(params=["memory", "redis"])
async def led(request: pytest.FixtureRequest, redis_url: str) -> AsyncIterator[Led]:
    if request.param == "memory":
        clock = ManualClock()
        yield Led(MemoryLead(clock.now_ms), clock.advance_ms)
        return
    client = open_client(redis_url)
    yield Led(RedisLead(ScriptRunner(client, view=lead_key("main"))), _really)
    await client.aclose()


async def _really(duration_ms: int) -> None:
    await asyncio.sleep(duration_ms / 1000)


async def test_who_asks_first_leads(led: Led) -> None:
    first, second = await led.lead.hold("a", ttl_ms=5000), await led.lead.hold("b", ttl_ms=5000)

    assert (first.by, second.by) == ("a", "a")


async def test_a_lead_that_is_held_again_stays(led: Led) -> None:
    for _ in range(3):
        await led.lead.hold("a", ttl_ms=200)
        await led.pass_ms(120)

    assert (await led.lead.hold("b", ttl_ms=200)).by == "a"


async def test_a_lead_that_is_not_held_again_goes_to_who_asks_next(led: Led) -> None:
    await led.lead.hold("a", ttl_ms=50)
    await led.pass_ms(60)

    assert (await led.lead.hold("b", ttl_ms=50)).by == "b"
    assert (await led.lead.hold("a", ttl_ms=50)).by == "b"


async def test_who_stops_lets_another_lead_at_once(led: Led) -> None:
    await led.lead.hold("a", ttl_ms=5000)

    await led.lead.drop("a")

    assert (await led.lead.hold("b", ttl_ms=5000)).by == "b"


async def test_nobody_drops_what_another_holds(led: Led) -> None:
    await led.lead.hold("a", ttl_ms=5000)

    await led.lead.drop("b")

    assert (await led.lead.hold("b", ttl_ms=5000)).by == "a"


async def test_each_answer_tells_the_stores_time(led: Led) -> None:
    before = await led.lead.hold("a", ttl_ms=5000)
    await led.pass_ms(50)
    after = await led.lead.hold("b", ttl_ms=5000)

    assert 40 <= after.now_ms - before.now_ms < 5000


async def test_a_hundred_who_ask_at_once_find_one_leader(led: Led) -> None:
    answers = await asyncio.gather(*(led.lead.hold(f"r{number}", ttl_ms=5000) for number in range(100)))

    assert len({answer.by for answer in answers}) == 1


async def test_the_time_is_the_servers(redis_url: str) -> None:
    client = open_client(redis_url)
    lead = RedisLead(ScriptRunner(client, view=lead_key("main")))

    led = await lead.hold("a", ttl_ms=5000)

    assert abs(led.now_ms - time.time() * 1000) < 2000
    await client.aclose()


async def test_a_store_that_is_away_is_said_to_be(valkey_server: ValkeyServer) -> None:
    client = open_client(valkey_server.url)
    lead = RedisLead(ScriptRunner(client, view=lead_key("main")))
    await valkey_server.kill()

    with pytest.raises(ViewUnavailable):
        await lead.hold("a", ttl_ms=5000)
    await client.aclose()


async def test_a_store_that_is_silent_is_waited_for_once(valkey_server: ValkeyServer) -> None:
    client = open_client(valkey_server.url, answer_s=0.5)
    lead = RedisLead(ScriptRunner(client, view=lead_key("main")))
    await lead.hold("a", ttl_ms=5000)

    valkey_server.pause()
    began = time.monotonic()
    with pytest.raises(ViewUnavailable):
        await lead.hold("a", ttl_ms=5000)
    waited_s = time.monotonic() - began
    valkey_server.resume()

    assert 0.4 <= waited_s < 1.5
    assert (await lead.hold("b", ttl_ms=5000)).by == "a"
    await client.aclose()

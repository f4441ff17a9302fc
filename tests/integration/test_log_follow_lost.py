"""Reading on where what the server has sent never arrives: nothing but the reader can notice."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from nats.aio.client import Client

from libs.eventlog import Page
from libs.eventlog.api import ask
from libs.eventlog.streams import JOBS
from libs.local.servers import NatsServer
from libs.runtime.eventually import eventually
from tests.fixtures.lives import queued
from tests.fixtures.logs import connected, opened
from tests.fixtures.ways import way_to

SOON_S = 10.0  # the server tells each half second how far it has come


async def test_a_record_lost_with_its_connection_is_read_though_none_comes_after_it(nats_server: NatsServer) -> None:
    async with (
        opened(nats_server.url) as log,
        way_to(nats_server.url) as way,
        connected(nats_server.url) as aside,
        connected(way.url) as client,
        contextlib.aclosing(type(log)(client, epoch=log.epoch).follow(after=0)) as follow,
    ):
        await anext(follow)
        reading = asyncio.create_task(_next(follow))
        await _asked(aside)
        way.deaf = True
        await log.append(queued("job-1"), after=None)
        await way.lost(b"job-1")
        way.cut()

        async with asyncio.timeout(SOON_S):
            page = await reading

    assert [record.seq for record in page.records] == [1]


async def _next(pages: AsyncGenerator[Page]) -> Page:
    return await anext(pages)


async def _asked(nc: Client) -> None:
    """Until the server knows that the reader waits."""

    async def waits() -> bool:
        names = (await ask(nc, "CONSUMER.NAMES", stream=JOBS, question={}))["consumers"] or []
        followers = [name for name in names if name.startswith("follow-")]
        seen = [await ask(nc, "CONSUMER.INFO", stream=f"{JOBS}.{name}", question={}) for name in followers]
        return any(each["num_waiting"] for each in seen)

    await eventually(waits)

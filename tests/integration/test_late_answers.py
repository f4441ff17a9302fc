"""What an answer that comes late must not do: make its connection deaf."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

from faststream.nats import NatsBroker

from headgate_contracts.commands import Beat, command_subject
from libs.eventlog import JetStreamLog, LogUnavailable, migrate
from libs.eventlog.dispatches import PoolDispatches
from libs.eventlog.values import Mark
from libs.foundation.live import live_broker
from libs.local.servers import NatsServer
from libs.runtime.clock import SystemClock
from libs.runtime.eventually import eventually
from services.scheduler.subscribers import NatsCommands
from tests.fixtures.logs import connected, new_epoch, opened, settings
from tests.fixtures.ways import way_to

SHARD = "main"
LATE_S = 2.5  # more than who asked waits for it
SOON_S = 5.0  # a connection that is deaf is given up after 15


async def test_a_scheduler_hears_workers_after_a_server_was_late_once(nats_server: NatsServer) -> None:
    """As on a machine that is busy for a moment."""
    heard = asyncio.Event()
    async with connected(nats_server.url) as worker, way_to(nats_server.url) as way:
        await migrate(worker, settings(), new_epoch=new_epoch())
        broker = live_broker(way.url, name="scheduler")

        @broker.subscriber(command_subject(SHARD, "beat"))
        async def _hear(_: Beat) -> None:
            heard.set()

        await broker.start()
        commands = NatsCommands(cast("NatsBroker", broker), shard=SHARD)
        way.late_s = LATE_S
        in_time = await commands.answers()
        way.late_s = 0.0
        await eventually(commands.answers)

        beat = Beat(worker="w", pool="default", slots=1, draining=False, holders=(), leases=(), stopped=())
        await worker.publish(command_subject(SHARD, "beat"), beat.model_dump_json().encode())
        async with asyncio.timeout(SOON_S):
            await heard.wait()
        await broker.stop()

    assert not in_time


async def test_a_worker_that_stops_hears_the_log_after_a_server_was_late_once(nats_server: NatsServer) -> None:
    """It takes no more dispatches, and has attempts to hand over still."""
    async with opened(nats_server.url) as log, way_to(nats_server.url) as way, connected(way.url) as nc:
        dispatches = PoolDispatches(nc, pool="default", clock=SystemClock())
        waiting = asyncio.create_task(dispatches.next())
        await eventually(lambda: nc.stats["out_msgs"] > 0)
        waiting.cancel()
        way.late_s = LATE_S
        await dispatches.stop()
        way.late_s = 0.0

        async with asyncio.timeout(LATE_S + SOON_S):
            mark = await _mark(type(log)(nc, epoch=log.epoch))

    assert mark.seq == 0


async def _mark(log: JetStreamLog) -> Mark:
    while True:
        with suppress(LogUnavailable):
            return await log.mark()

"""What the servers do without anything of ours around them: the floors beside what is measured."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from nats.js import JetStreamContext

from libs.eventlog import connect, migrate
from libs.local.servers import NatsServer
from tests.fixtures.lives import life_of
from tests.fixtures.logs import new_epoch, settings

IN_FLIGHT: Final = 64
LIVES: Final = 500  # of eight events


async def raw_appends(folder: Path) -> float:
    """Synced appends a second, of events of the size that they have."""
    async with NatsServer(folder) as server:
        nc = await connect(server.url, name="floor")
        await migrate(nc, settings(), new_epoch=new_epoch())
        js = JetStreamContext(nc)
        events = [event for number in range(LIVES) for event in life_of(f"floor-{number}")]
        left = iter(events)

        async def publish() -> None:
            for event in left:
                await js.publish(event.subject, event.encode(), headers={"Nats-Msg-Id": event.id})

        begun = time.perf_counter()
        await asyncio.gather(*(publish() for _ in range(IN_FLIGHT)))
        seconds = time.perf_counter() - begun
        await nc.close()
        return len(events) / seconds

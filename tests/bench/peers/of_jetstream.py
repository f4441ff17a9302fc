"""The floor: a message published to a stream that syncs it, and taken off it. Nothing of a queue is around it."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import sys

import nats
import told
from nats.js.errors import NoStreamResponseError


async def worker() -> None:
    js = (await nats.connect(told.URL)).jetstream()
    await js.add_stream(name="BENCH", subjects=["bench"])

    async def taken(message: object) -> None:
        told.started(int(message.data))  # type: ignore[attr-defined]

    await js.subscribe("bench", ordered_consumer=True, cb=taken)
    await asyncio.Event().wait()


async def client() -> None:
    nc = await nats.connect(told.URL)
    js = nc.jetstream()

    async def submit(number: int) -> None:
        try:
            await js.publish("bench", str(number).encode())
        except NoStreamResponseError:
            return  # the worker has not made it yet

    await told.serve_async(submit)


if __name__ == "__main__":
    asyncio.run(worker() if "worker" in sys.argv else client())

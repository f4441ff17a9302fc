"""arq: `arq of_arq.Worker`, and the client as a script."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio

import told
from arq import create_pool
from arq.connections import RedisSettings

REDIS = RedisSettings.from_dsn(told.URL)


async def nothing(ctx: object, number: int) -> None:
    told.started(number)


class Worker:
    functions = (nothing,)
    redis_settings = REDIS
    max_jobs = 8


async def main() -> None:
    pool = await create_pool(REDIS)
    await told.serve_async(lambda number: pool.enqueue_job("nothing", number))


if __name__ == "__main__":
    asyncio.run(main())

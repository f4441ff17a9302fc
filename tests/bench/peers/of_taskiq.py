"""taskiq on Redis and on NATS: `taskiq worker of_taskiq:broker`, and the client as a script.

As it comes, its broker hands each job to a worker and forgets it; synced, it keeps each until it has ended.
"""

# pyright: reportMissingImports=false, reportFunctionMemberAccess=false
from __future__ import annotations

import asyncio

import told


def chosen():  # noqa: ANN201 - one of four types that are not here to be named
    if told.URL.startswith("redis"):
        from taskiq_redis import ListQueueBroker, RedisStreamBroker

        return RedisStreamBroker(told.URL) if told.SYNCED else ListQueueBroker(told.URL)
    from taskiq_nats import NatsBroker, PullBasedJetStreamBroker

    return PullBasedJetStreamBroker(told.URL) if told.SYNCED else NatsBroker(told.URL, queue="bench")


broker = chosen()


@broker.task(task_name="nothing")
async def nothing(number: int) -> None:
    told.started(number)


async def main() -> None:
    await broker.startup()
    await told.serve_async(nothing.kiq)


if __name__ == "__main__":
    asyncio.run(main())

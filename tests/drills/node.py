"""`make drill-node`: a cluster in compose, and each of its nodes killed once under load.

A node is what one machine would run: its containers are killed at the same moment, are away for longer than a job's
lease, and are started again. Prints what each loss cost; ends with 1 where anything that was accepted is lost, done
twice or not told to who follows.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx

from libs.runtime.eventually import eventually
from tests.bench.machine import described
from tests.drills.losses import Cost, NodeLoss, cost_of, faults, table
from tests.drills.steady_clients import SteadyClients
from tests.fixtures.compose import Composition, done, run

SERVICES: Final = ("admission", "scheduler", "worker", "notifier")
NODES: Final[Mapping[str, Sequence[tuple[str, int]]]] = {
    "the first": (("nats", 1), *((service, 1) for service in SERVICES)),
    "the second": (("nats-1", 1), *((service, 2) for service in SERVICES)),
    "the third": (("nats-2", 1), ("valkey", 1)),
}
BEFORE_S: Final = 10.0
GONE_S: Final = 40.0  # a lease of 30 s, and some
AFTER_S: Final = 20.0


def main() -> int:
    with TemporaryDirectory(prefix="headgate-drill-") as folder:
        there = Composition.of(Path(folder), cluster=True)
        there.build()
        try:
            there.up()
            return asyncio.run(drill(there))
        finally:
            there.down()


async def drill(there: Composition) -> int:
    await eventually(lambda: _is_ready(there), within_s=120, every_s=0.5)
    async with SteadyClients.at(there.url, there.state) as clients:
        clients.begin()
        await asyncio.sleep(BEFORE_S)
        losses = [await lose(there, name) for name in NODES]
        await clients.stop()
        costs = {loss: cost_of(loss, clients.seen) for loss in losses}
        found = faults(clients.seen)
        _say(costs, accepted=len(clients.seen.submitted), found=found)
    return 1 if found else 0


async def lose(there: Composition, name: str) -> NodeLoss:
    ids = there.containers()
    gone = [ids[each] for each in NODES[name]]
    parts = ", ".join(service for service, _ in NODES[name])
    killed_at = time.time()
    await asyncio.to_thread(lambda: done(run(["docker", "kill", *gone])))
    await asyncio.sleep(GONE_S)
    back_at = time.time()
    await asyncio.to_thread(lambda: done(run(["docker", "start", *gone])))
    await asyncio.sleep(AFTER_S)
    return NodeLoss(name, parts, killed_at, back_at, time.time())


async def _is_ready(there: Composition) -> bool:
    async with httpx.AsyncClient(timeout=30) as client:
        try:
            return (await client.get(f"{there.url}/openapi.json")).status_code == 200
        except httpx.TransportError:
            return False


def _say(costs: Mapping[NodeLoss, Cost], *, accepted: int, found: Sequence[str]) -> None:
    lines = [
        f"{accepted} jobs were accepted while each node was away for {GONE_S:.0f} s. {described()}",
        "The longest of each, in seconds:",
        "",
        table(costs),
        "",
        *(found or ["Each of them was done once, and its end was told to who followed."]),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())

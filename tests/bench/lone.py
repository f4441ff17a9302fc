"""Whether a start may be one message instead of a batch of two: raced by two who believe to lead, on one server and on
three, with servers killed in the midst of it, elections and silence. `make bench ONLY=lone`; see ADR 0021.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Final

from nats.aio.client import Client

from libs.eventlog import JetStreamLog, Record
from libs.eventlog.api import state_of
from libs.eventlog.errors import LogUnavailable
from libs.eventlog.streams import JOBS
from libs.local.cluster import NatsCluster
from libs.local.servers import NatsServer
from libs.runtime.eventually import eventually
from tests.bench.asked import Asked, Told
from tests.bench.page import table
from tests.bench.rivals import Rival, Verdict, bring, judged, rival
from tests.fixtures.logs import caught_up, connected, new_epoch, opened

STRANGERS: Final = 2
PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Arena:
    """Where they race, and what goes wrong meanwhile."""

    rivals: tuple[Rival, Rival]
    client: Client
    random: Random

    @property
    def stored(self) -> int:
        return sum(sent.stored_at is not None for rival in self.rivals for sent in rival.sent)

    async def goes_on(self, more: int) -> None:
        target = self.stored + more
        await eventually(lambda: self.stored >= target, within_s=PATIENCE_S)

    async def in_midst(self) -> None:
        """A message has just been sent, and is not answered."""
        await self.random.choice(self.rivals).under_way.wait()
        await asyncio.sleep(self.random.uniform(0, 0.0008))


Fault = Callable[[Arena], Awaitable[None]]


async def lone(asked: Asked) -> Told:
    """Every row is a run of its own; each round makes it longer."""

    def times(a_round: int) -> int:
        return asked.rounds * asked.some(a_round)

    rows = [
        await _on_one("nothing", _undisturbed, times(100), asked),
        await _on_one("kill -9 in the midst of a message", _killed, times(40), asked),
        await _on_one("frozen until copies are sent again", _frozen_alone, times(5), asked),
        await _on_three("nothing", _undisturbed, times(100), asked),
        await _on_three("the leader killed in the midst of a message", _leader_killed, times(7), asked),
        await _on_three("elections: the leader steps down", _stepped_down, times(20), asked),
        await _on_three("the leader frozen for longer than an election", _leader_frozen, times(3), asked),
    ]
    head = (
        "servers",
        "what went wrong",
        "how often",
        "sent",
        "stored",
        "both wanted the place",
        "let through beside it",
    )
    return Told(table((*head, "lost · risen"), rows))


async def _on_one(what: str, fault: Callable[[NatsServer], Fault], times: int, asked: Asked) -> list[str]:
    asked.say(f"one server, {what}")
    async with NatsServer(asked.room()) as server:
        verdict = await _raced([server.url] * 3, fault(server), times)
    return _row("1", what, times, verdict, asked)


async def _on_three(what: str, fault: Callable[[NatsCluster], Fault], times: int, asked: Asked) -> list[str]:
    asked.say(f"three servers, {what}")
    cluster = NatsCluster(asked.room())
    await cluster.start()
    await eventually(lambda: _is_made(cluster), within_s=PATIENCE_S)
    try:
        verdict = await _raced(cluster.urls, fault(cluster), times, replicas=3)
    finally:
        await cluster.stop()
    return _row("3", what, times, verdict, asked)


async def _is_made(cluster: NatsCluster) -> bool:
    """The log: on a busy machine three servers are not done with all its streams in one go."""
    try:
        async with opened(cluster.urls, replicas=3):
            return True
    except LogUnavailable:
        return False


async def _raced(urls: list[str], fault: Fault, times: int, replicas: int = 1) -> Verdict:
    async with _arena(urls, replicas) as arena, opened(urls, replicas=replicas) as log:
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(each.follow()) for each in arena.rivals]
            writing = [tasks.create_task(each.start_jobs(over)) for each in arena.rivals]
            for number in range(STRANGERS):
                random = Random(f"stranger {number}")
                writing.append(tasks.create_task(bring(log, arena.rivals, over, name=f"s{number}", random=random)))
            for _ in range(times):
                await arena.goes_on(3)
                await fault(arena)
            await arena.goes_on(10)
            over.set()
            for each in arena.rivals:
                each.folded.set()
            await asyncio.gather(*writing)
            for each in following:
                each.cancel()
        return judged(await eventually(lambda: _all_of(log)), arena.rivals)


async def _all_of(log: JetStreamLog) -> list[Record]:
    """A copy that is behind takes its own end for the log's: the leader says where that is."""
    records: list[Record] = (await caught_up(log)).records
    assert records[-1].seq == (await log.mark()).seq
    return records


@asynccontextmanager
async def _arena(urls: list[str], replicas: int) -> AsyncIterator[Arena]:
    """Each on a connection of its own; of three servers each is asked by somebody."""
    async with AsyncExitStack() as stack:
        rivals: list[Rival] = []
        for number, name in enumerate(("a", "b")):
            turned = urls[number:] + urls[:number]
            log = await stack.enter_async_context(opened(turned, replicas=replicas))
            client = await stack.enter_async_context(connected(turned))
            rivals.append(rival(name, log, client, seed=replicas))
        client = await stack.enter_async_context(connected(urls))
        yield Arena((rivals[0], rivals[1]), client, Random(f"arena {new_epoch()}"))


def _undisturbed(_: object) -> Fault:
    async def fault(arena: Arena) -> None:
        await arena.goes_on(1)

    return fault


def _killed(server: NatsServer) -> Fault:
    async def fault(arena: Arena) -> None:
        await arena.in_midst()
        await server.kill()
        await server.start()

    return fault


def _frozen_alone(server: NatsServer) -> Fault:
    async def fault(arena: Arena) -> None:
        await arena.in_midst()
        server.pause()
        await asyncio.sleep(arena.random.uniform(1.2, 2.5))  # the first copies go unanswered, and are sent again
        server.resume()

    return fault


def _leader_killed(cluster: NatsCluster) -> Fault:
    async def fault(arena: Arena) -> None:
        leader = cluster.node(await _leader(arena.client))
        await arena.in_midst()
        await leader.kill()
        await arena.goes_on(5)
        await leader.start()
        await cluster.healthy()

    return fault


def _stepped_down(_: NatsCluster) -> Fault:
    async def fault(arena: Arena) -> None:
        await arena.in_midst()
        await arena.client.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{JOBS}", b"", timeout=5)

    return fault


def _leader_frozen(cluster: NatsCluster) -> Fault:
    async def fault(arena: Arena) -> None:
        leader = cluster.node(await _leader(arena.client))
        await arena.in_midst()
        leader.pause()
        await arena.goes_on(5)  # under another, while the frozen one still believes to lead
        leader.resume()
        await cluster.healthy()

    return fault


async def _leader(client: Client) -> str:
    async def led() -> str:
        try:
            return (await state_of(client, JOBS)).leader or ""
        except LogUnavailable:
            return ""

    return await eventually(led, within_s=PATIENCE_S)


def _row(servers: str, what: str, times: int, verdict: Verdict, asked: Asked) -> list[str]:
    for fault in verdict.faults:
        asked.say(f"{servers} server(s), {what}: {fault}")
    counts = (times, verdict.sent, verdict.stored, verdict.same_place, len(verdict.let_through))
    row = [servers, what, *(f"{count:,}" for count in counts), f"{len(verdict.lost)} · {len(verdict.risen)}"]
    asked.say(" | ".join(row))
    return row

"""The notifier as a process of a simulation, and how a request comes to its streams.

What reads the log's past and the lines of jobs are edges of their own here: a scan may come from a copy that lags.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from headgate_contracts import Tier
from headgate_contracts.commands import logs_subject
from libs.eventlog.errors import LogUnavailable
from libs.eventlog.history import MemoryScans
from libs.eventlog.lines import Line, LinePage
from libs.eventlog.values import Record, Wanted
from libs.runtime.auth import Principal
from libs.runtime.connect import wait_for
from libs.runtime.faults import Refused
from libs.runtime.gate import Gate, Gated
from libs.runtime.lifecycle import Health, Loop, Service
from libs.runtime.revocations import Revocations
from libs.twins.quiet import quiet_telemetry
from libs.twins.virtual import Process
from services.notifier.api import Edge
from services.notifier.composing import NotifierStores, assemble, drain_of
from services.notifier.domain import Known
from services.notifier.fanout import Fanout
from services.notifier.sending import Collecting
from services.notifier.subscribers import AskedPositions, WatchingPublisher, spread_lines, spread_log, subscribe
from services.notifier.watching import WatchTeller
from services.notifier.webhooks import Webhooks
from tests.simulation.connections import App
from tests.simulation.edges import READ_WITHIN_S, Broker
from tests.simulation.network import Link, Silent, Unconnected
from tests.simulation.plan import POLICY
from tests.simulation.pool import PoolEdge
from tests.simulation.world import EPOCH, SHARD, Machine, World

TAP_DEPTH: Final = 3  # a seed has hundreds of records and not thousands
LAGS: Final = 0.2  # of all looks at a copy
AWAY: Final = (LogUnavailable,)
T = TypeVar("T")


async def compose(world: World, service: Service, machine: Machine, process: Process) -> None:
    log, clock, health = world.log(machine, process), machine.clock, Health()
    fanout, gate = Fanout(beat_s=POLICY.stream.comment_s, depth=TAP_DEPTH), Gate()
    broker = Broker(world.link(process, "commands"), world.subscriptions)
    subscribe(cast("Any", broker), fanout, shard=SHARD)
    link = world.link(process, "log")
    lines = _Lines(world, link)
    seen = await wait_for("log", log.mark, away=AWAY, health=health, clock=clock)
    said = await wait_for("log", lines.end, away=AWAY, health=health, clock=clock)
    await service.start(Loop("follower", lambda _: spread_log(cast("Any", log), fanout, after=seen.seq, epoch=EPOCH)))
    await service.start(Loop("lines", lambda _: spread_lines(cast("Any", lines), fanout, after=said)))
    told = WatchingPublisher(cast("Any", broker), shard=SHARD)
    await service.start(Loop("watching", WatchTeller(fanout, told.tell, POLICY, clock).run))
    revocations = Revocations(clock=clock)
    stores = NotifierStores(
        log=cast("Any", log),
        scans=_Scans(world, link),
        lines=cast("Any", lines),
        titles=world.titles,
        progress=world.progress,
    )
    edge = assemble(
        stores,
        fanout,
        AskedPositions(cast("Any", broker), shard=SHARD),
        revocations=revocations,
        collecting=Collecting(openings=10**9, closings=10**9),  # one process is many here
        policy=POLICY,
        clock=clock,
        telemetry=quiet_telemetry(),
    )
    await service.start(drain_of(gate, edge))
    calls = PoolEdge(world.calls, link)
    webhooks = Webhooks(
        cast("Any", calls),
        cast("Any", log),
        cast("Any", world.hooks.caller(world.link(process, "hooks"))),
        POLICY,
        clock,
        world.hooks.receivers,
        edge.notifier.signals.webhook,
    )
    await service.start(Loop("webhooks", webhooks.run))
    machine.streams = Streams(edge, gate)
    await service.start(gate)


@dataclass(frozen=True, slots=True)
class Streams:
    """What a replica can be asked for."""

    edge: Edge
    gate: Gate

    def of_job(self, job_id: str, known: Known, user: str) -> App:
        return self._app(user, lambda who: self.edge.notifier.of_job(job_id, known, who))

    def of_user(self, user: str, last_event_id: str | None) -> App:
        return self._app(user, lambda who: self.edge.notifier.of_user(last_event_id, who))

    def _app(self, user: str, opened: Callable[[Principal], Any]) -> App:
        """What the routes do, and what is said in the place of a fault."""
        who = Principal(user, Tier.PARTNER, frozenset({"jobs:read"}))

        async def app(scope: Any, receive: Any, send: Any) -> None:
            try:
                await self.edge.answer(who, opened(who))(scope, receive, send)
            except Refused as refused:
                await refused.problem.response()(scope, receive, send)
            except (*AWAY, TimeoutError):
                await send({"type": "http.response.start", "status": 503})
                await send({"type": "http.response.body"})

        return cast("App", Gated(cast("Any", app), gate=self.gate))


class _Scans:
    """A copy of the log, which may not have come as far as its leader."""

    def __init__(self, world: World, link: Link) -> None:
        self._world = world
        self._link = link
        self._copy = MemoryScans(world.server)

    async def ends(self) -> tuple[int, int]:
        return await _read(self._link, lambda: (self._world.server.first_seq, self._world.server.last_seq))

    async def count(self, filters: Sequence[str], *, after: int) -> int:
        return await _read(self._link, lambda: len(self._world.server.records(filters, after=after)))

    async def pages(
        self, filters: Sequence[str], *, after: int = 0, since: datetime | None = None, most: int | None = None
    ) -> AsyncGenerator[list[Record]]:
        records = await _read(self._link, lambda: self._world.server.records(filters, after=after))
        reached = self._world.server.last_seq - self._lag()
        found = [record for record in records if record.seq <= reached][:most]
        if found:
            yield found

    def _lag(self) -> int:
        dice = self._world.dice
        return dice.whole("copy lags", 1, 4) if dice.chance("copy", LAGS) else 0


class _Lines:
    """The lines of jobs, as one process reads them."""

    def __init__(self, world: World, link: Link) -> None:
        self._world = world
        self._link = link

    async def end(self) -> int:
        return await _read(self._link, lambda: self._world.lines.end)

    async def last(self, job_id: str) -> int:
        return await _read(self._link, lambda: max((each.seq for each in self._of(job_id, 0)), default=0))

    async def of(self, job_id: str, *, after: int = 0) -> AsyncGenerator[LinePage]:
        lines = await _read(self._link, lambda: tuple(self._of(job_id, after)))
        if lines:
            yield LinePage(lines, lines[-1].seq)

    async def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[LinePage]:
        while True:
            grown = self._world.lines.grown
            fresh = tuple(self._world.lines.kept[after:])
            if not fresh:
                await grown.wait()
                continue
            await asyncio.sleep(self._link.delay_s())
            if self._link.connected:
                self._link.process.require_life()
                after = fresh[-1].seq
                read = (each for each in fresh if wanted is None or wanted(logs_subject(each.line.job_id)))
                yield LinePage(tuple(read), after)
            else:
                await asyncio.sleep(READ_WITHIN_S)

    def _of(self, job_id: str, after: int) -> list[Line]:
        return [line for line in self._world.lines.kept[after:] if line.line.job_id == job_id]


async def _read(link: Link, look: Callable[[], T]) -> T:
    try:
        return await link.ask(look, within_s=READ_WITHIN_S)
    except (Unconnected, Silent) as away:
        raise LogUnavailable(reason=type(away).__name__) from None

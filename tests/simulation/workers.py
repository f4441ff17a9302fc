"""The worker as a process of a simulation. The process of an attempt is played (`stages.py`)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from libs.runtime.lifecycle import Loop, Service
from libs.twins.quiet import quiet_telemetry
from libs.twins.virtual import LoopClock, Process
from services.worker.attempt.checkpoints import Shelf
from services.worker.attempt.job_log import LinePump
from services.worker.attempt.process import Limits
from services.worker.attempt.tools import Tools
from services.worker.attempts import Attempts
from services.worker.heartbeat import HeartbeatLoop, Watchdog
from services.worker.intake import Intake
from services.worker.sandbox.command import Level
from services.worker.signals import Signals
from services.worker.subscribers import NatsLines, NatsScheduler, subscribe
from tests.simulation.edges import Broker
from tests.simulation.plan import POLICY
from tests.simulation.pool import PoolEdge
from tests.simulation.reloads import following
from tests.simulation.stages import Play, Stages
from tests.simulation.world import SHARD, Machine, World


async def compose(world: World, service: Service, machine: Machine, process: Process) -> None:
    leases, clock = POLICY.leases, machine.clock
    instance = f"{machine.name}-{round(world.loop.time() * 1000)}"
    broker = Broker(world.link(process, "commands"), world.subscriptions)
    scheduler = NatsScheduler(cast("Any", broker), shard=SHARD, within_s=2.0)
    pump = LinePump(NatsLines(cast("Any", broker)) if world.has_readers else _Unread(), clock)
    stages = Stages(process, lambda name, own: _play(world, name, own, clock))
    log = cast("Any", world.log(machine, process))
    policy, _ = await following(world, service, machine, log)
    tools = Tools(
        worker=instance,
        policy=policy,
        limits=Limits(
            workspaces=world.folder / instance,
            end_grace_s=1.0,
            runs=POLICY.runs,
            commands=POLICY.sandbox,
            level=Level("plain"),
            providers={},
        ),
        log=log,
        inputs=world.bucket(process, world.inputs),
        results=world.bucket(process, world.results),
        shelf=Shelf(world.bucket(process, world.workspaces), clock),
        scheduler=scheduler,
        spawner=cast("Any", stages),
        pump=pump,
        progress=world.progress,
        signals=Signals(quiet_telemetry(), pool="default"),
        clock=clock,
        new_id=world.ids(machine),
    )
    soon = asyncio.Event()
    attempts = Attempts(tools, drain_grace_s=4.0, beat_soon=soon.set)
    subscribe(cast("Any", broker), attempts, shard=SHARD)
    heartbeat = HeartbeatLoop(
        attempts,
        scheduler,
        worker=instance,
        pool="default",
        slots=world.slots,
        every_ms=round(leases.heartbeat_s * 1000),
        clock=clock,
        soon=soon,
    )
    watchdog = Watchdog(attempts, heartbeat, cut_off_ms=round(leases.cut_off_s * 1000), clock=_Slower(clock))
    service.closing("the shelf", tools.shelf.stop)
    await service.start(Loop("lines", pump.run))
    service.closing("the last heartbeat", heartbeat.beat)
    await service.start(Loop("heartbeat", heartbeat.run))
    await service.start(Loop("watchdog", watchdog.run))
    await service.start(attempts)
    pool = PoolEdge(world.pool, world.link(process, "log"))
    await service.start(Intake(cast("Any", pool), attempts.serve, slots=world.slots, room=_room))


class _Slower:
    """A clock for who looks ten times a second at what seldom changes: four times a second do as well."""

    def __init__(self, clock: LoopClock) -> None:
        self.now_ms, self.monotonic_ms = clock.now_ms, clock.monotonic_ms

    async def sleep_ms(self, duration_ms: int) -> None:
        await asyncio.sleep(max(duration_ms, 250) / 1000)


class _Unread:
    """Where nobody reads lines, they are kept in no time."""

    async def put(self, line: object, *, line_id: str) -> bool:
        return True


def _play(world: World, name: str, process: Process, clock: LoopClock) -> Play:
    up_ms = clock.monotonic_ms() - int(world.loop.time() * 1000 + 1e-6)
    return Play(name, process, loop=world.loop, dice=world.dice, deeds=world.deeds, up_ms=up_ms)


async def _room() -> None:
    """There is room on the disk."""

"""The scheduler as a process of a simulation."""

from __future__ import annotations

from typing import Any, cast

from libs.capacity.errors import ViewUnavailable
from libs.eventlog.errors import LogError
from libs.runtime.lifecycle import Health, Loop, Service
from libs.twins.quiet import quiet_telemetry
from libs.twins.virtual import Process
from services.scheduler.__main__ import _let_go as let_go
from services.scheduler.ports import Adapters
from services.scheduler.replica import Replica, assemble
from services.scheduler.snapshots import newest_fold
from services.scheduler.subscribers import NatsCommands, subscribe
from tests.simulation.edges import Broker, Port
from tests.simulation.habits import habits
from tests.simulation.plan import POLICY
from tests.simulation.world import EPOCH, SHARD, Machine, World


async def compose(world: World, service: Service, machine: Machine, process: Process) -> None:
    broker = Broker(world.link(process, "commands"), world.subscriptions)
    commands = NatsCommands(cast("Any", broker), shard=SHARD)
    adapters = Adapters(
        log=cast("Any", world.log(machine, process)),
        view=world.view(process),
        lead=cast("Any", Port(world.link(process, "view"), _Lead(world, machine.name), away=_silent_store)),
        commands=commands,
        snapshots=world.bucket(process, world.snapshots),
        telemetry=quiet_telemetry(),
        health=Health(),
        clock=machine.clock,
        new_id=world.ids(machine),
    )
    replica = await _replica(machine, adapters)

    service.closing("the lead", lambda: let_go(replica))
    await service.start(Loop("lead", replica.leader.run))
    await service.start(Loop("inbox", replica.inbox.run))
    await service.start(Loop("cycle", replica.cycle.run, patience_s=3.0))
    await replica.cycle.folded.wait()
    announcer = subscribe(cast("Any", broker), replica, adapters, show=commands.show, shard=SHARD)
    if world.has_readers:
        await service.start(Loop("positions", announcer.run))
    await service.start(Loop("snapshots", replica.keeper.run))
    for loop in habits(world, process, replica, adapters) if world.has_habits else ():
        await service.start(loop)


async def _replica(machine: Machine, adapters: Adapters) -> Replica:
    while True:
        try:
            ledger = await newest_fold(adapters.snapshots, adapters.log, epoch=EPOCH, policy=POLICY)
            break
        except LogError:
            await machine.clock.sleep_ms(500)
    patience_s = POLICY.leases.heartbeat_s
    return assemble(
        ledger, name=machine.name, shard=SHARD, epoch=EPOCH, outage_patience_s=patience_s, adapters=adapters
    )


class _Lead:
    """The lead as one replica finds it."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    async def hold(self, name: str, *, ttl_ms: int) -> Any:
        return await self._world.lead_of(self._name).hold(name, ttl_ms=ttl_ms)

    async def drop(self, name: str) -> None:
        await self._world.lead_of(self._name).drop(name)


def _silent_store() -> Exception:
    return ViewUnavailable("no answer")

"""The scheduler, composed: settings, clients, fold, loops, subscribers. Run with `python -m services.scheduler`.

    ground ─► view ─► newest snapshot ─► lead, inbox, cycle ─► (the log is folded) ─► commands, positions ─► ready

It stops in reverse: no more commands, the last turn, the lead let go, the fold kept, the connections closed.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import Final

from libs.capacity.errors import ViewError
from libs.capacity.keys import lead_key
from libs.capacity.lead import RedisLead
from libs.capacity.scripts import ScriptRunner
from libs.capacity.store_client import open_client
from libs.eventlog import JetStreamSnapshots, LogUnavailable
from libs.eventlog.buckets import JetStreamObjects
from libs.eventlog.streams import WORKSPACES
from libs.foundation import Ground, lay
from libs.foundation.ground import LOG, NATS, VIEW
from libs.foundation.live import live_broker
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.settings import read_settings
from services.scheduler.cycle import FOLD
from services.scheduler.forecasting import Forecaster
from services.scheduler.janitor import Janitor
from services.scheduler.ports import Adapters
from services.scheduler.positions import Announcer
from services.scheduler.replica import Replica, assemble
from services.scheduler.settings import SchedulerSettings, require_patience
from services.scheduler.snapshots import newest_fold
from services.scheduler.subscribers import NatsCommands, Subscribers

READ_WITHIN_S: Final = 60.0  # a snapshot of some hundred megabytes
LAST_TURN_S: Final = 3.0  # for a commit under way; what becomes of one that takes longer, the log tells the next leader


async def compose(service: Service) -> None:
    """Everything that runs in this process, in the order in which it starts."""
    ground = await lay(service, read_settings(SchedulerSettings), needs=(NATS, LOG, VIEW, FOLD))
    settings, clock = ground.settings, ground.clock
    require_patience(settings, ground.policy)
    view = await ground.view(service)
    broker = live_broker(settings.nats_url.get_secret_value(), name="scheduler commands")
    commands = NatsCommands(broker, shard=settings.shard)
    adapters = Adapters(
        log=ground.log,
        view=view,
        lead=_lead(service, ground),
        commands=commands,
        snapshots=JetStreamSnapshots(ground.nc),
        telemetry=ground.telemetry,
        health=ground.health,
        clock=clock,
        new_id=ground.new_id,
    )
    replica = await _replica(ground, adapters)
    announcer = Announcer(replica.ledger, view, ground.policy, clock, replica.leader, commands.show)
    Subscribers(
        broker,
        replica,
        view=view,
        shard=settings.shard,
        telemetry=ground.telemetry,
        clock=clock,
        stir=announcer.stir,
    ).subscribe()
    forecaster = Forecaster(replica.ledger, view, clock=clock, leader=replica.leader, meter=ground.telemetry.meter)
    workspaces = JetStreamObjects(ground.nc, WORKSPACES)
    janitor = Janitor(workspaces, ground.log, ledger=replica.ledger, leader=replica.leader, clock=clock)

    service.closing("the lead", lambda: _let_go(replica))
    await service.start(Loop("lead", replica.leader.run))
    await service.start(Loop("inbox", replica.inbox.run))
    await service.start(Loop("cycle", replica.cycle.run, patience_s=LAST_TURN_S))
    await replica.cycle.folded.wait()
    await ground.live(service, broker)
    await service.start(Loop("snapshots", replica.keeper.run))
    await service.start(Loop("gauges", replica.gauges.run))
    await service.start(Loop("positions", announcer.run))
    await service.start(Loop("forecast", forecaster.run))
    await service.start(Loop("workspaces", janitor.run))
    await service.start(ground.gate)


def _lead(service: Service, ground: Ground[SchedulerSettings]) -> RedisLead:
    """On a connection of its own, so that nobody who asks much can keep it from being held."""
    client = open_client(ground.settings.redis_url.get_secret_value(), connections=2)
    service.closing("the lead's connection", client.aclose)
    return RedisLead(ScriptRunner(client, view=lead_key(ground.settings.shard)))


async def _replica(ground: Ground[SchedulerSettings], adapters: Adapters) -> Replica:
    settings, epoch = ground.settings, ground.log.epoch
    ledger = await wait_for(
        "a snapshot",
        lambda: newest_fold(adapters.snapshots, epoch=epoch, policy=ground.policy),
        away=(LogUnavailable,),
        health=ground.health,
        clock=ground.clock,
        attempt_s=READ_WITHIN_S,
    )
    return assemble(
        ledger,
        name=settings.instance,
        shard=settings.shard,
        epoch=epoch,
        outage_patience_s=settings.outage_patience_s,
        adapters=adapters,
    )


async def _let_go(replica: Replica) -> None:
    """Another may lead at once, and starts from what is kept here."""
    led = replica.leader.leads
    with suppress(ViewError):
        await replica.leader.resign()
    if led:
        await replica.keeper.keep()


def main() -> int:
    try:
        return asyncio.run(Service("scheduler").run(compose))
    except SettingsWrong as wrong:
        sys.stderr.write(f"scheduler: {wrong}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())

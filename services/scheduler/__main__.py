"""The scheduler, composed: settings, clients, fold, loops, subscribers. Run with `python -m services.scheduler`.

    ground ─► view ─► newest snapshot ─► lead, inbox, cycle ─► (the log is folded) ─► commands, positions ─► ready

It stops in reverse: no more commands, the last turn, the lead let go, the fold kept, the connections closed.
"""

import sys
from contextlib import suppress
from typing import Final

from libs.capacity.errors import ViewError
from libs.capacity.keys import lead_key
from libs.capacity.lead import RedisLead
from libs.capacity.ports import View
from libs.capacity.scripts import ScriptRunner
from libs.capacity.store_client import open_client
from libs.eventlog import JetStreamSnapshots, LogUnavailable
from libs.eventlog.buckets import JetStreamInputs, JetStreamObjects
from libs.eventlog.streams import WORKSPACES
from libs.foundation import Ground, bootstrap
from libs.foundation.ground import LOG, NATS, VIEW
from libs.foundation.live import live_broker
from libs.foundation.policing import require_policy
from libs.foundation.viewing import open_view
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.settings import read_settings
from libs.runtime.tls import trusting
from services.scheduler.cycle import FOLD
from services.scheduler.forecasting import Forecaster
from services.scheduler.janitor import Janitor, kept_inputs, kept_workspaces
from services.scheduler.ports import Adapters
from services.scheduler.replica import Replica, assemble
from services.scheduler.settings import SchedulerSettings, report, require_patience
from services.scheduler.snapshots import newest_fold
from services.scheduler.subscribers import NatsCommands, subscribe

READ_WITHIN_S: Final = 60.0  # a snapshot of some hundred megabytes
QUICK_S: Final = 0.3  # in which a store answers that is there, on a busy machine
LAST_TURN_S: Final = 3.0  # for a commit under way; what becomes of one that takes longer, the log tells the next leader


async def compose(service: Service) -> None:
    """Everything that runs in this process, in the order in which it starts."""
    ground = await bootstrap(service, read_settings(SchedulerSettings), needs=(NATS, LOG, VIEW, FOLD))
    await require_policy(ground)
    require_patience(ground.settings, ground.policy)
    report(ground.policy, ground.health)
    view = await open_view(ground, service, answer_s=ground.policy.leases.leader_s / 2)  # then it goes on without
    url, tls = ground.settings.nats_url.get_secret_value(), trusting(ground.settings.ca_file)
    broker = live_broker(url, name="scheduler commands", tls=tls)
    commands = NatsCommands(broker, shard=ground.settings.shard)
    adapters = _adapters(service, ground, view=view, commands=commands)
    replica = await _replica(ground, adapters)
    announcer = subscribe(broker, replica, adapters, show=commands.show, shard=ground.settings.shard)

    service.closing("the lead", lambda: _let_go(replica))
    await service.start(Loop("lead", replica.leader.run))
    await service.start(Loop("inbox", replica.inbox.run))
    await service.start(Loop("cycle", replica.cycle.run, patience_s=LAST_TURN_S))
    await replica.cycle.folded.wait()
    await ground.live(service, broker)
    await service.start(Loop("positions", announcer.run))
    for loop in _habits(ground, replica, view):
        await service.start(loop)
    await service.start(ground.gate)


def _habits(ground: Ground[SchedulerSettings], replica: Replica, view: View) -> tuple[Loop, ...]:
    """What is done now and then, and what is not waited for."""
    ledger, leader, clock = replica.ledger, replica.leader, ground.clock
    kept = ground.policy.retention
    remains = (
        kept_workspaces(JetStreamObjects(ground.nc, WORKSPACES), kept),
        kept_inputs(JetStreamInputs(ground.nc), kept),
    )
    janitors = [Janitor(each, ground.log, ledger=ledger, leader=leader, clock=clock) for each in remains]
    return (
        Loop("snapshots", replica.keeper.run),
        Loop("gauges", replica.gauges.run),
        Loop("forecast", Forecaster(ledger, view, clock=clock, leader=leader, meter=ground.telemetry.meter).run),
        *(Loop(each.what, janitor.run) for each, janitor in zip(remains, janitors, strict=True)),
    )


def _adapters(service: Service, ground: Ground[SchedulerSettings], *, view: View, commands: NatsCommands) -> Adapters:
    return Adapters(
        log=ground.log,
        view=view,
        lead=_lead(service, ground),
        commands=commands,
        snapshots=JetStreamSnapshots(ground.nc),
        telemetry=ground.telemetry,
        health=ground.health,
        clock=ground.clock,
        new_id=ground.new_id,
    )


def _lead(service: Service, ground: Ground[SchedulerSettings]) -> RedisLead:
    """On a connection of its own, so that no command, however often it comes, can keep it from being held."""
    answer_s = max(QUICK_S, ground.policy.leases.leader_heartbeat_s)
    settings = ground.settings
    url = settings.redis_url.get_secret_value()
    client = open_client(url, connections=2, answer_s=answer_s, authorities=settings.ca_file)
    service.closing("the lead's connection", client.aclose)
    return RedisLead(ScriptRunner(client, view=lead_key(ground.settings.shard)))


async def _replica(ground: Ground[SchedulerSettings], adapters: Adapters) -> Replica:
    settings, epoch = ground.settings, ground.log.epoch
    ledger = await wait_for(
        "a snapshot",
        lambda: newest_fold(adapters.snapshots, adapters.log, epoch=epoch, policy=ground.policy),
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
        return Service("scheduler").live(compose)
    except SettingsWrong as wrong:
        sys.stderr.write(f"scheduler: {wrong}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())

"""One replica, put together from its adapters: what `__main__` runs and what tests drive turn by turn.

Owns the wiring and nothing else. Its parts start and stop in the order in which they stand here.
"""

import asyncio
from dataclasses import dataclass

from libs.capacity.engine import Engine
from libs.capacity.folder import Folder
from libs.capacity.ledger import Ledger
from libs.capacity.projection import epoch_ms
from libs.runtime.clock import Clock
from services.scheduler.border import Border
from services.scheduler.chain import Chain
from services.scheduler.cycle import Cycle
from services.scheduler.folding import Folding
from services.scheduler.gauges import Gauges
from services.scheduler.handlers import Granting, Handlers
from services.scheduler.inbox import Inbox
from services.scheduler.labels import GroupLabels
from services.scheduler.leader import Leader
from services.scheduler.outages import SETTLING_BEATS, Absences, Outages
from services.scheduler.peaks import Peaks
from services.scheduler.planning import Planner
from services.scheduler.ports import Adapters
from services.scheduler.signals import Signals
from services.scheduler.snapshots import SnapshotKeeper


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """The parts of one scheduler replica, wired together."""

    ledger: Ledger
    planner: Planner
    outages: Outages
    leader: Leader
    inbox: Inbox
    handlers: Handlers
    cycle: Cycle
    woken: asyncio.Event
    keeper: SnapshotKeeper
    gauges: Gauges


def assemble(
    ledger: Ledger, *, name: str, shard: str, epoch: str, outage_patience_s: float, adapters: Adapters
) -> Replica:
    """A replica that goes on from this fold of the log."""
    policy, clock = ledger.policy, adapters.clock
    lease_ms, patience_ms = round(policy.leases.job_s * 1000), round(outage_patience_s * 1000)
    labels, woken = GroupLabels(policy), asyncio.Event()
    peaks = Peaks(adapters.telemetry.meter, ledger=ledger, labels=labels, clock=clock)
    signals = Signals(adapters.telemetry, labels, peaks)
    inbox = Inbox(adapters.log, after=ledger.applied, arrived=woken, clock=clock)
    outages = _outages(inbox, clock, patience_ms=patience_ms, lease_ms=lease_ms)
    leader = Leader(adapters, name=name, policy=policy, outages=outages, fit=lambda: inbox.keeps_up, begun=woken)
    folding = Folding()
    planner = _planner(ledger, leader, folding, shard=shard, patience_ms=patience_ms, adapters=adapters)
    handlers = _handlers(planner, leader, Granting(adapters.commands, signals, shard), adapters=adapters)
    folder = Folder(
        adapters.view, ledger, epoch=epoch, lease_ms=lease_ms, new_generation=adapters.new_id, engine=planner.engine
    )
    cycle = Cycle(
        adapters,
        folder=folder,
        inbox=inbox,
        leader=leader,
        planner=planner,
        chain=Chain(adapters, shard=shard, inbox=inbox, leader=leader, signals=signals),
        outages=outages,
        folding=folding,
        granting=handlers.granting,
        signals=signals,
        woken=woken,
    )
    return Replica(
        ledger=ledger,
        planner=planner,
        outages=outages,
        leader=leader,
        inbox=inbox,
        handlers=handlers,
        cycle=cycle,
        woken=woken,
        keeper=SnapshotKeeper(adapters.snapshots, ledger, epoch=epoch, leader=leader, clock=clock),
        gauges=Gauges(
            adapters.telemetry.meter,
            ledger=ledger,
            log=adapters.log,
            view=adapters.view,
            leader=leader,
            clock=clock,
            peaks=peaks,
        ),
    )


def _outages(inbox: Inbox, clock: Clock, *, patience_ms: int, lease_ms: int) -> Outages:
    return Outages(
        "log",
        "store",
        "commands",
        clock=clock,
        patience_ms=patience_ms,
        lease_ms=lease_ms,
        log_ends_at=lambda: inbox.ends_at or inbox.reached,
    )


def _planner(
    ledger: Ledger, leader: Leader, folding: Folding, *, shard: str, patience_ms: int, adapters: Adapters
) -> Planner:
    view, policy = adapters.view, ledger.policy
    engine = Engine.of(ledger, clock=lambda: epoch_ms(leader.now))
    return Planner(
        view,
        ledger,
        policy,
        shard,
        engine=engine,
        border=Border(view, engine, folding, policy=policy),
        folding=folding,
        absences=Absences(SETTLING_BEATS * patience_ms),
    )


def _handlers(planner: Planner, leader: Leader, granting: Granting, *, adapters: Adapters) -> Handlers:
    return Handlers(
        adapters.view,
        planner.ledger,
        adapters.log,
        granting,
        planner.engine,
        planner.stopped,
        now=lambda: leader.now,
    )

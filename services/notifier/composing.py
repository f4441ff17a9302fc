"""What a notifier is made of, once its clients are there: the same over NATS and over the twins."""

from dataclasses import dataclass
from functools import partial

from libs.eventlog.history import Scans
from libs.eventlog.ports import EventLog, Lines, ProgressBucket, Titles
from libs.policy import Policy
from libs.runtime.clock import Clock
from libs.runtime.gate import Gate
from libs.runtime.lifecycle import Loop
from libs.runtime.revocations import Revocations
from libs.runtime.telemetry import Telemetry
from services.notifier.api import Edge
from services.notifier.fanout import Fanout, OfToken
from services.notifier.handlers import Notifier
from services.notifier.histories import Histories
from services.notifier.limits import Openings
from services.notifier.ports import Positions
from services.notifier.sending import LAST_BYTES_S, Collecting, OpenStreams
from services.notifier.signals import Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifierStores:
    """What is kept elsewhere."""

    log: EventLog
    scans: Scans
    lines: Lines
    titles: Titles
    progress: ProgressBucket


def assemble(
    stores: NotifierStores,
    fanout: Fanout,
    positions: Positions,
    *,
    revocations: Revocations,
    collecting: Collecting,
    policy: Policy,
    clock: Clock,
    telemetry: Telemetry,
) -> Edge:
    """All that the routes share. A token that is taken back ends its streams."""
    signals, rules = Signals(telemetry, streams=lambda: fanout.connections), policy.stream
    revocations.watch(lambda token_id: fanout.end(OfToken(token_id)))
    notifier = Notifier(
        stores.log.epoch,
        Histories(stores.log, stores.scans, clock),
        stores.lines,
        fanout,
        positions,
        stores.titles,
        stores.progress,
        policy,
        clock,
        signals,
        revocations,
    )
    openings = Openings(per_user=rules.per_user, per_replica=rules.per_replica)
    return Edge(notifier, openings, OpenStreams(rules.slow_after_s, signals.cut_off), collecting)


def drain_of(gate: Gate, edge: Edge) -> Loop:
    """Ends the streams once the gate closes. To be started before the gate, which is then the first to stop."""
    return Loop("drain", partial(_close_when_draining, gate, edge), patience_s=2 * LAST_BYTES_S)


async def _close_when_draining(gate: Gate, edge: Edge, _: object) -> None:
    await gate.draining.wait()
    await edge.close()

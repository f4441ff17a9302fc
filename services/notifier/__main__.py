"""The notifier, composed: settings, clients, the fan-out, routes. Run with `python -m services.notifier`."""

import sys

from libs.eventlog import LogUnavailable
from libs.eventlog.dispatches import EventDispatches
from libs.eventlog.history import JetStreamScans
from libs.eventlog.lines import JetStreamLines
from libs.eventlog.progress import JetStreamProgress
from libs.eventlog.titles import JetStreamTitles
from libs.foundation import Ground
from libs.foundation.ground import LOG, NATS
from libs.foundation.live import live_broker
from libs.foundation.policing import follow_policy
from libs.foundation.public import bootstrap_public
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.settings import read_settings
from libs.runtime.spans import lent
from libs.runtime.tls import trusting
from services.notifier.api import streams
from services.notifier.composing import NotifierStores, assemble, drain_of
from services.notifier.fanout import Fanout
from services.notifier.pages import page
from services.notifier.receivers import receivers_in
from services.notifier.sending import Collecting
from services.notifier.settings import NotifierSettings
from services.notifier.signals import Signals
from services.notifier.subscribers import (
    AskedPositions,
    RedeemedTickets,
    WatchingPublisher,
    spread_lines,
    spread_log,
    subscribe,
)
from services.notifier.watching import WatchTeller


async def compose(service: Service) -> None:
    """Everything that runs in this process, in the order in which it starts."""
    ground, front = await bootstrap_public(service, read_settings(NotifierSettings), needs=(NATS, LOG))
    await follow_policy(service, ground)
    fanout = Fanout(beat_s=ground.policy.stream.comment_s)
    url, tls = ground.settings.nats_url.get_secret_value(), trusting(ground.settings.ca_file)
    broker = live_broker(url, name="notifier live", tls=tls)
    subscribe(broker, fanout, shard=ground.settings.shard)
    await ground.live(service, broker)
    lines = JetStreamLines(broker.connection, ground.clock)
    await _spread(service, ground, lines, fanout)
    told = WatchingPublisher(broker, shard=ground.settings.shard)
    await service.start(Loop("watching", WatchTeller(fanout, told.tell, ground.policy, ground.clock).run))
    front.app.state.tickets = RedeemedTickets(broker, shard=ground.settings.shard)
    edge = assemble(
        _stores(ground, lines),
        fanout,
        AskedPositions(broker, shard=ground.settings.shard),
        revocations=front.tokens.revocations,
        collecting=Collecting(),
        policy=ground.policy,
        clock=ground.clock,
        telemetry=ground.telemetry,
    )
    for router in (streams(edge), page()):
        front.app.include_router(router)
    await _start_webhooks(service, ground, edge.notifier.signals)
    await service.start(drain_of(ground.gate, edge))
    edge.collecting.put_aside()  # all that was imported and made here
    # Last, so first to stop: from then on the drain ends the streams, and is waited for.
    await service.start(ground.gate)


async def _spread(service: Service, ground: Ground[NotifierSettings], lines: JetStreamLines, fanout: Fanout) -> None:
    """What happens and what jobs say, from where each ends now."""
    seen = await wait_for(LOG, ground.log.mark, away=(LogUnavailable,), health=ground.health, clock=ground.clock)
    said = await wait_for(LOG, lines.end, away=(LogUnavailable,), health=ground.health, clock=ground.clock)
    await service.start(Loop("follower", lambda _: spread_log(ground.log, fanout, after=seen.seq, epoch=seen.epoch)))
    await service.start(Loop("lines", lambda _: spread_lines(lines, fanout, after=said)))


def _stores(ground: Ground[NotifierSettings], lines: JetStreamLines) -> NotifierStores:
    return NotifierStores(
        log=ground.log,
        scans=JetStreamScans(ground.nc),
        lines=lines,
        titles=JetStreamTitles(ground.nc),
        progress=JetStreamProgress(ground.nc),
    )


async def _start_webhooks(service: Service, ground: Ground[NotifierSettings], signals: Signals) -> None:
    """Where policy lists hosts that may be called; nobody is otherwise."""
    rules, receivers = ground.policy.webhooks, receivers_in(ground.settings.webhook_secrets.get_secret_value())
    if not rules.receivers:
        return
    from services.notifier.calling import Caller, client  # noqa: PLC0415 - an HTTP client, which few need
    from services.notifier.webhooks import CONSUMER, EVENTS, Webhooks  # noqa: PLC0415 - the same

    if lacking := receivers.without(rules.receivers):
        wrong = f"HEADGATE_WEBHOOK_SECRETS: has none for {', '.join(lacking)}, which policy lists in webhooks"
        raise SettingsWrong([f"{wrong}; write one there"])
    dispatches = EventDispatches(
        ground.nc,
        name=CONSUMER,
        events=EVENTS,
        within_s=2 * rules.timeout_s + 5,  # from the delivery to the ack
        max_tries=rules.tries,
        clock=ground.clock,
    )
    await wait_for(LOG, dispatches.start, away=(LogUnavailable,), health=ground.health, clock=ground.clock)
    service.closing("the webhooks' consumer", dispatches.stop)
    http = client(rules.timeout_s)
    service.closing("the webhooks' client", http.aclose)
    webhooks = Webhooks(
        dispatches, ground.log, Caller(http, rules), ground.policy, ground.clock, receivers, signals.webhook
    )
    with lent(ground.telemetry.tracer):
        await service.start(Loop("webhooks", webhooks.run))


def main() -> int:
    try:
        return Service("notifier").live(compose)
    except SettingsWrong as wrong:
        sys.stderr.write(f"notifier: {wrong}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())

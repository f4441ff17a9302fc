"""The notifier, composed: settings, clients, the fan-out, routes. Run with `python -m services.notifier`."""

from __future__ import annotations

import asyncio
import sys

from libs.eventlog import LogUnavailable
from libs.foundation import lay
from libs.foundation.ground import LOG, NATS
from libs.foundation.live import live_broker
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.settings import read_settings
from libs.runtime.telemetry import job_trace
from services.notifier.api import DASHBOARD, Assets, page, streams
from services.notifier.fanout import Fanout
from services.notifier.handlers import Notifier
from services.notifier.settings import NotifierSettings
from services.notifier.signals import Signals
from services.notifier.subscribers import AskedPositions, subscribe


async def compose(service: Service) -> None:
    """Everything that runs in this process, in the order in which it starts."""
    ground = await lay(service, read_settings(NotifierSettings), needs=(NATS, LOG))
    fanout = Fanout()
    broker = live_broker(ground.settings.nats_url.get_secret_value(), name="notifier live")
    subscribe(broker, fanout, shard=ground.settings.shard)
    await ground.live(service, broker)
    seen = await wait_for(LOG, ground.log.mark, away=(LogUnavailable,), health=ground.health, clock=ground.clock)
    await service.start(Loop("follower", lambda _: fanout.follow(ground.log, after=seen.seq)))
    notifier = Notifier(
        ground.log,
        fanout,
        AskedPositions(broker, shard=ground.settings.shard),
        ground.policy,
        ground.clock,
        lambda job_id: job_trace(job_id).debug_id,
        Signals(ground.telemetry, streams=lambda: fanout.connections),
    )
    for router in (streams(notifier), page()):
        ground.app.include_router(router)
    ground.app.mount("/assets", Assets(directory=DASHBOARD / "assets"))
    await service.start(Loop("drain", lambda _: _close_when_draining(ground.gate.draining, fanout)))
    await service.start(ground.gate)  # last, so first to stop: it waits for the streams, which the drain ends


async def _close_when_draining(draining: asyncio.Event, fanout: Fanout) -> None:
    await draining.wait()
    fanout.close()


def main() -> int:
    try:
        return asyncio.run(Service("notifier").run(compose))
    except SettingsWrong as wrong:
        sys.stderr.write(f"notifier: {wrong}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())

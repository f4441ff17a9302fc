"""A worker, composed: settings, clients, spawner, loops, slots. Run with `python -m services.worker`.

    ground ─► spawner ─► commands ─► the pool's consumer ─► lines ─► heartbeat, watchdog ─► attempts ─► intake

It stops in reverse: nothing is taken any more, attempts end or are handed over while the heartbeat goes on, a last
beat, the connections, the spawner.
"""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from typing import Final

from libs.eventlog import LogUnavailable
from libs.eventlog.buckets import JetStreamInputs, JetStreamObjects
from libs.eventlog.dispatches import PoolDispatches
from libs.eventlog.streams import RESULTS
from libs.foundation import Ground, lay
from libs.foundation.ground import LOG, NATS
from libs.foundation.live import live_broker
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.settings import read_settings
from services.worker.attempts import LAST_WORDS_S, Attempts
from services.worker.children import Spawner
from services.worker.commands import NatsLines, NatsScheduler
from services.worker.heartbeat import Heartbeat, Watchdog
from services.worker.intake import Intake
from services.worker.lines import LinePump
from services.worker.process import Limits
from services.worker.run import Tools
from services.worker.settings import WorkerSettings
from services.worker.signals import Signals
from services.worker.subscribers import subscribe

LONGEST_ANSWER_S: Final = 2.0
REST_S: Final = 1.0  # for the connections, after the last attempt
LAST_LINES_S: Final = 0.5


async def compose(service: Service, *, settings: WorkerSettings) -> None:
    """Everything that runs in this process, in the order in which it starts."""
    ground = await lay(service, settings, needs=(NATS, LOG))
    spawner = await service.start(Spawner(settings.pipelines, environ=os.environ))
    broker = live_broker(settings.nats_url.get_secret_value(), name="worker commands")
    pump = LinePump(NatsLines(broker), ground.clock)
    heartbeat_s = ground.policy.leases.heartbeat_s
    scheduler = NatsScheduler(broker, shard=settings.shard, within_s=min(LONGEST_ANSWER_S, heartbeat_s))
    tools, soon = _tools(ground, spawner, scheduler, pump), asyncio.Event()
    attempts = Attempts(tools, drain_grace_s=settings.drain_grace_s, beat_soon=soon.set)
    heartbeat = Heartbeat(
        attempts,
        scheduler,
        worker=settings.instance,
        pool=settings.pool,
        slots=settings.slots,
        every_ms=round(heartbeat_s * 1000),
        clock=ground.clock,
        soon=soon,
    )
    subscribe(broker, attempts, shard=settings.shard)
    await ground.live(service, broker)
    dispatches = PoolDispatches(ground.nc, pool=settings.pool, clock=ground.clock)
    service.closing("the dispatches", dispatches.stop)
    await wait_for(LOG, dispatches.start, away=(LogUnavailable,), health=ground.health, clock=ground.clock)

    await service.start(Loop("lines", pump.run))
    service.closing("the last lines", lambda: pump.sent(within_s=LAST_LINES_S))
    service.closing("the last heartbeat", heartbeat.beat)
    await service.start(Loop("heartbeat", heartbeat.run))
    await service.start(Loop("watchdog", Watchdog(attempts, heartbeat, clock=ground.clock).run))
    await service.start(attempts)
    await service.start(Intake(dispatches, attempts.serve, slots=settings.slots))
    await service.start(ground.gate)


def _tools(ground: Ground[WorkerSettings], spawner: Spawner, scheduler: NatsScheduler, pump: LinePump) -> Tools:
    settings = ground.settings
    return Tools(
        worker=settings.instance,
        policy=ground.policy,
        limits=Limits(
            workspaces=settings.workspaces / settings.instance,
            end_grace_s=settings.end_grace_s,
            max_lines=settings.max_log_lines,
            max_result_bytes=settings.max_result_bytes,
        ),
        log=ground.log,
        inputs=JetStreamInputs(ground.nc),
        results=JetStreamObjects(ground.nc, RESULTS),
        scheduler=scheduler,
        spawner=spawner,
        pump=pump,
        signals=Signals(ground.telemetry, pool=settings.pool),
        clock=ground.clock,
        new_id=ground.new_id,
    )


def main() -> int:
    try:
        settings = read_settings(WorkerSettings)
    except SettingsWrong as wrong:
        sys.stderr.write(f"worker: {wrong}\n")
        return 2
    grace_s = settings.drain_grace_s + settings.end_grace_s + LAST_WORDS_S + REST_S
    return asyncio.run(Service("worker", grace_s=grace_s).run(partial(compose, settings=settings)))


if __name__ == "__main__":
    sys.exit(main())

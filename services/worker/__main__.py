"""A worker, composed: settings, clients, spawner, loops, slots. Run with `python -m services.worker`.

    ground ─► spawner ─► commands ─► the pool's consumer ─► lines ─► heartbeat, watchdog ─► attempts ─► intake

It stops in reverse: nothing is taken any more, attempts end or are handed over while the heartbeat goes on, a last
beat, the connections, the spawner.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from libs.eventlog import LogMissing, LogUnavailable
from libs.eventlog.buckets import JetStreamInputs, JetStreamObjects
from libs.eventlog.dispatches import PoolDispatches
from libs.eventlog.pipelines import JetStreamPipelines
from libs.eventlog.progress import JetStreamProgress
from libs.eventlog.streams import RESULTS, WORKSPACES
from libs.foundation import Ground, bootstrap
from libs.foundation.ground import LOG, NATS
from libs.foundation.live import live_broker
from libs.foundation.policing import follow_policy
from libs.policy import Policy, PolicyError, load_policy
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.settings import read_settings
from libs.runtime.tls import trusting
from services.worker.announcing import Announcing
from services.worker.attempt.checkpoints import Shelf
from services.worker.attempt.job_log import LinePump
from services.worker.attempt.process import Limits
from services.worker.attempt.tools import Tools
from services.worker.attempts import LAST_WORDS_S, Attempts
from services.worker.child.messages import ProviderEndpoint
from services.worker.children import Spawner
from services.worker.endpoints import endpoints
from services.worker.equipment import installer, wheels
from services.worker.errors import PremisesUnusable
from services.worker.heartbeat import LifeTerms, show_life
from services.worker.intake import Intake
from services.worker.premises import Premises, settle
from services.worker.sandbox.command import Level
from services.worker.sandbox.errors import SandboxMissing
from services.worker.sandbox.kinship import adopt_orphans, adopts_orphans, keep_private
from services.worker.sandbox.levels import find_level
from services.worker.sandbox.tree import ProcessTree
from services.worker.settings import WorkerSettings
from services.worker.signals import Signals
from services.worker.subscribers import NatsLines, NatsScheduler, subscribe

logger = logging.getLogger(__name__)

LONGEST_ANSWER_S: Final = 2.0
REST_S: Final = 1.0  # for the connections, after the last attempt
LAST_LINES_S: Final = 0.5


async def compose(
    service: Service,
    *,
    settings: WorkerSettings,
    premises: Premises,
    level: Level,
    providers: Mapping[str, ProviderEndpoint],
    spawner: Spawner,
) -> None:
    """Everything that runs in this process, in the order in which it starts."""
    ground = await bootstrap(service, settings, needs=(NATS, LOG))
    await follow_policy(service, ground)
    _say_what_contains(ground, premises, level, by_a_model=bool(providers))
    await service.start(spawner)
    _say_what_is_refused(ground, spawner)
    url, tls = settings.nats_url.get_secret_value(), trusting(settings.ca_file)
    broker = live_broker(url, name="worker commands", tls=tls)
    pump = LinePump(NatsLines(broker), ground.clock)
    longest_s = min(LONGEST_ANSWER_S, ground.policy.leases.heartbeat_s)
    scheduler = NatsScheduler(broker, shard=settings.shard, within_s=longest_s)
    limits = _limits(ground, premises, level=level, providers=providers)
    tools, soon = _tools(ground, spawner, scheduler, pump, limits), asyncio.Event()
    attempts = Attempts(tools, drain_grace_s=settings.drain_grace_s, beat_soon=soon.set)
    subscribe(broker, attempts, shard=settings.shard)
    await ground.live(service, broker)
    dispatches = await _dispatches(service, ground)

    service.closing("the shelf", tools.shelf.stop)
    announcing = Announcing(JetStreamPipelines(ground.nc), spawner.pipelines, pool=settings.pool, clock=ground.clock)
    await announcing.tried()
    await service.start(Loop("announcement", announcing.run))
    await service.start(Loop("remains", premises.clear_remains))
    await service.start(Loop("lines", pump.run))
    service.closing("the last lines", lambda: pump.sent(within_s=LAST_LINES_S))
    terms = LifeTerms(settings.instance, settings.pool, settings.slots, ground.policy.leases)
    await show_life(service, attempts, scheduler, terms, clock=ground.clock, soon=soon)
    await service.start(attempts)
    await service.start(Intake(dispatches, attempts.serve, slots=settings.slots, room=premises.room))
    await service.start(ground.gate)


def _say_what_contains(ground: Ground[WorkerSettings], premises: Premises, level: Level, *, by_a_model: bool) -> None:
    """To the log, and to the probe that asks whether we are ready."""
    is_trusted = level.name == "trusted"
    said = f"{level.line}, code that a model writes too" if is_trusted and by_a_model else level.line
    logger.log(logging.WARNING if is_trusted else logging.INFO, "%s", said)
    ground.health.note("the sandbox", said)
    if premises.is_borrowed:
        logger.info("workspaces: in %s, as commands do not get to %s", premises.folder, ground.settings.workspaces)


def _say_what_is_refused(ground: Ground[WorkerSettings], spawner: Spawner) -> None:
    """Modules of pipelines, each with its reason, while the others run."""
    for reason in spawner.refused:
        logger.error("%s", reason)
    ground.health.note("modules", *spawner.refused)


async def _dispatches(service: Service, ground: Ground[WorkerSettings]) -> PoolDispatches:
    """What the pool is handed, once the log is there."""
    dispatches = PoolDispatches(ground.nc, pool=ground.settings.pool, clock=ground.clock)
    service.closing("the dispatches", dispatches.stop)
    away = (LogUnavailable, LogMissing)
    await wait_for(LOG, dispatches.start, away=away, health=ground.health, clock=ground.clock)
    return dispatches


def _limits(
    ground: Ground[WorkerSettings], premises: Premises, *, level: Level, providers: Mapping[str, ProviderEndpoint]
) -> Limits:
    return Limits(
        workspaces=premises.folder,
        end_grace_s=ground.settings.end_grace_s,
        runs=ground.policy.runs,
        commands=ground.policy.sandbox,
        level=level,
        providers=providers,
    )


def _tools(
    ground: Ground[WorkerSettings],
    spawner: Spawner,
    scheduler: NatsScheduler,
    pump: LinePump,
    limits: Limits,
) -> Tools:
    return Tools(
        worker=ground.settings.instance,
        policy=ground.policy,
        limits=limits,
        log=ground.log,
        inputs=JetStreamInputs(ground.nc),
        results=JetStreamObjects(ground.nc, RESULTS),
        shelf=Shelf(JetStreamObjects(ground.nc, WORKSPACES), ground.clock),
        scheduler=scheduler,
        spawner=spawner,
        pump=pump,
        progress=JetStreamProgress(ground.nc),
        signals=Signals(ground.telemetry, pool=ground.settings.pool),
        clock=ground.clock,
        new_id=ground.new_id,
    )


def require_pool(pool: str, policy: Policy) -> None:
    """No job could be sent there, and there is no consumer that it would be taken from."""
    if pool not in policy.pools.served:
        known = ", ".join(policy.pools.served)
        wrong = f"HEADGATE_POOL: {pool!r} is no pool that the policy names ({known}); set it to one of them,"
        raise SettingsWrong([f"{wrong} or add it to pools.names there, run `headgate migrate` and restart admission"])


def main() -> int:
    """All in one, and when it is over nothing is left of it: what the spawner leaves, if it dies, becomes ours."""
    keep_private()
    adopt_orphans()
    code = _main()
    if adopts_orphans():
        ProcessTree(0).kill()
    return code


def _main() -> int:
    try:
        settings = read_settings(WorkerSettings)
        require_pool(settings.pool, load_policy(settings.policy, environ=os.environ))
        providers = endpoints(settings.providers, os.environ)
        spawner = Spawner(settings.modules, environ=os.environ)
        spawner.launch()  # it loads the pipelines while we look what contains commands here, and for our servers
        settling = partial(_level, settings)
        premises, level = asyncio.run(settle(settings.workspaces, settings.instance, find=settling))
    except (SettingsWrong, PolicyError, PremisesUnusable, SandboxMissing) as wrong:
        sys.stderr.write(f"worker: {wrong}\n")
        return 2
    grace_s = settings.drain_grace_s + settings.end_grace_s + LAST_WORDS_S + REST_S
    composed = partial(compose, settings=settings, premises=premises, level=level, providers=providers, spawner=spawner)
    code = Service("worker", grace_s=grace_s).live(composed)
    premises.leave()
    return code


async def _level(settings: WorkerSettings, workspaces: Path) -> Level:
    """What contains commands here: found out by running one."""
    return await find_level(
        settings.sandbox,
        uids=settings.sandbox_uids,
        cgroup=settings.sandbox_cgroup,
        workspaces=workspaces,
        needs=(Path(installer()), wheels(os.environ)),
    )


if __name__ == "__main__":
    sys.exit(main())

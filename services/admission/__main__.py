"""Admission, composed: settings, clients, adapters, routes. Run with `python -m services.admission`."""

import os
import secrets
import sys
from dataclasses import dataclass
from functools import partial
from typing import Final

from headgate_contracts.openapi import openapi_document
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.store import RedisView
from libs.eventlog import LogUnavailable, Mark
from libs.eventlog.buckets import JetStreamInputs, JetStreamObjects
from libs.eventlog.history import History, JetStreamScans
from libs.eventlog.lines import JetStreamLines
from libs.eventlog.pipelines import JetStreamPipelines
from libs.eventlog.progress import JetStreamProgress
from libs.eventlog.streams import RESULTS, WORKSPACES
from libs.eventlog.titles import JetStreamTitles
from libs.foundation import Ground
from libs.foundation.ground import LOG, NATS, VIEW
from libs.foundation.live import live_broker
from libs.foundation.policing import PolicyFollower, follow_policy
from libs.foundation.public import Front, bootstrap_public
from libs.foundation.viewing import open_view
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.settings import read_settings
from services.admission.acts import Acts
from services.admission.api import Edge
from services.admission.composing import AdmissionStores, assemble
from services.admission.indexing import Indexing, index_file
from services.admission.leasing import Leasing, NamedGroups, WaitingHere
from services.admission.pipelines import Pipelines
from services.admission.reloading import Reloading
from services.admission.routes import ROUTES
from services.admission.schedulers import NatsSchedulers, subscribe_to_turns
from services.admission.settings import AdmissionSettings

OPENED: Final = "the view"
LOOK_EVERY_MS: Final = 50  # whether a scheduler has opened it: of a store that is there, and every start waits for it


@dataclass(frozen=True, slots=True)
class RandomIds:
    """Ids of events sort by time; those of jobs tell nothing."""

    ground: Ground[AdmissionSettings]

    def event_id(self) -> str:
        return self.ground.new_id()

    def job_id(self) -> str:
        return f"j{secrets.token_hex(12)}"

    def workflow_id(self) -> str:
        return f"w{secrets.token_hex(12)}"


async def compose(service: Service) -> None:
    """Everything that runs in this process, in the order in which it starts."""
    needs = (NATS, LOG, VIEW, OPENED)
    ground, front = await bootstrap_public(service, read_settings(AdmissionSettings), needs=needs)
    follower = await follow_policy(service, ground)
    view = await open_view(ground, service)
    path, release = index_file(ground.settings.index_folder, ground.health)
    index = Indexing(path, ground.log, JetStreamTitles(ground.nc), epoch=ground.log.epoch, clock=ground.clock)
    service.closing("the index's file", release)
    service.closing("the index", index.close)
    await service.start(Loop("index", index.run))
    await service.start(Loop("the index's age", lambda _: index.age(JetStreamScans(ground.nc))))
    turns, broker = WaitingHere(), live_broker(ground.settings.nats_url.get_secret_value(), name="admission live")
    subscribe_to_turns(broker, turns, shard=ground.settings.shard)
    await ground.live(service, broker)
    schedulers = NatsSchedulers(broker, shard=ground.settings.shard)
    pipelines = Pipelines(JetStreamPipelines(ground.nc), ground.clock)
    await service.start(Loop("pipelines", pipelines.follow))
    reloading = _reloading(ground, follower)
    await service.start(Loop("the policy's age", reloading.run))
    leasing = _leasing(ground, view, schedulers, turns)
    edge = _edge(ground, front, view, index, leasing=leasing, pipelines=pipelines, reloading=reloading)
    for routes in ROUTES:
        front.app.include_router(routes(edge))
    front.app.speaks_for = openapi_document  # the whole API, the notifier's part too
    waited = partial(wait_for, health=ground.health, clock=ground.clock)
    head = await waited(LOG, ground.log.mark, away=(LogUnavailable,))
    folded = partial(_require_folded, view, head)
    await waited(OPENED, folded, away=(ViewLost, ViewUnavailable), longest_pause_ms=LOOK_EVERY_MS)
    await service.start(ground.gate)


def _leasing(
    ground: Ground[AdmissionSettings], view: RedisView, schedulers: NatsSchedulers, turns: WaitingHere
) -> Leasing:
    groups = NamedGroups(view, Acts(ground.log, ground.clock, RandomIds(ground)), ground.clock)
    return Leasing(view, schedulers, groups, turns, ground.clock, ground.gate.draining)


def _reloading(ground: Ground[AdmissionSettings], follower: PolicyFollower) -> Reloading:
    acts = Acts(ground.log, ground.clock, RandomIds(ground))
    return Reloading(acts, ground.policy, follower, os.environ, ground.clock)


def _edge(
    ground: Ground[AdmissionSettings],
    front: Front,
    view: RedisView,
    index: Indexing,
    *,
    leasing: Leasing,
    pipelines: Pipelines,
    reloading: Reloading,
) -> Edge:
    return assemble(
        _stores(ground, view),
        index=index,
        pipelines=pipelines,
        leasing=leasing,
        revocations=front.tokens.revocations,
        reloading=reloading,
        policy=ground.policy,
        clock=ground.clock,
        ids=RandomIds(ground),
        telemetry=ground.telemetry,
    )


def _stores(ground: Ground[AdmissionSettings], view: RedisView) -> AdmissionStores:
    nc = ground.nc
    return AdmissionStores(
        log=ground.log,
        view=view,
        past=History(JetStreamScans(nc)),
        inputs=JetStreamInputs(nc),
        results=JetStreamObjects(nc, RESULTS),
        workspaces=JetStreamObjects(nc, WORKSPACES),
        titles=JetStreamTitles(nc),
        progress=JetStreamProgress(nc),
        lines=JetStreamLines(nc),
    )


async def _require_folded(view: RedisView, head: Mark) -> None:
    """Until a scheduler has folded all that the log held when this replica started, submissions would be refused: there
    is no view, or one from before that is about to be made anew."""
    mark = await view.mark()
    if mark is None or not mark.open or mark.epoch != head.epoch or mark.applied < head.seq:
        raise ViewLost


def main() -> int:
    try:
        return Service("admission").live(compose)
    except SettingsWrong as wrong:
        sys.stderr.write(f"admission: {wrong}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())

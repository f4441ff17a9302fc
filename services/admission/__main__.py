"""Admission, composed: settings, clients, adapters, routes. Run with `python -m services.admission`."""

from __future__ import annotations

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
from libs.foundation.public import Front, bootstrap_public
from libs.foundation.viewing import open_view
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.settings import read_settings
from services.admission.acts import Acts
from services.admission.answering import Answering
from services.admission.api import Edge
from services.admission.changing import Changing
from services.admission.charting import Charting
from services.admission.erasing import ContentStores, Erasing
from services.admission.forecasts import Forecasts
from services.admission.indexing import Indexing, index_file
from services.admission.keeping_up import has_folded
from services.admission.leasing import Leasing, NamedGroups, WaitingHere
from services.admission.listing import Listing
from services.admission.operating import Operating
from services.admission.overseeing import Overseeing
from services.admission.pipelines import Pipelines
from services.admission.reading import Reading
from services.admission.refusals import Refusals
from services.admission.retrying import Retrying
from services.admission.revoking import Revoking
from services.admission.routes import ROUTES
from services.admission.schedulers import NatsSchedulers, subscribe_to_turns
from services.admission.settings import AdmissionSettings
from services.admission.submitting import Submitting

OPENED: Final = "the view"
TOLD_WITHIN_MS: Final = 500  # a change is answered by then, though no scheduler has folded it


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
    view = await open_view(ground, service)
    path, release = index_file(ground.settings.index_folder)
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
    edge = _edge(ground, front, view, index, leasing=_leasing(ground, view, schedulers, turns), pipelines=pipelines)
    for routes in ROUTES:
        front.app.include_router(routes(edge))
    front.app.speaks_for = openapi_document()  # the whole API, the notifier's part too
    waited = partial(wait_for, health=ground.health, clock=ground.clock)
    head = await waited(LOG, ground.log.mark, away=(LogUnavailable,))
    await waited(OPENED, partial(_require_folded, view, head), away=(ViewLost, ViewUnavailable))
    await service.start(ground.gate)


def _leasing(
    ground: Ground[AdmissionSettings], view: RedisView, schedulers: NatsSchedulers, turns: WaitingHere
) -> Leasing:
    groups = NamedGroups(view, Acts(ground.log, ground.clock, RandomIds(ground)), ground.clock)
    return Leasing(view, schedulers, groups, turns, ground.clock, ground.gate.draining)


def _edge(
    ground: Ground[AdmissionSettings],
    front: Front,
    view: RedisView,
    index: Indexing,
    *,
    leasing: Leasing,
    pipelines: Pipelines,
) -> Edge:
    nc, log, policy, clock, ids = ground.nc, ground.log, ground.policy, ground.clock, RandomIds(ground)
    inputs, results, workspaces = JetStreamInputs(nc), JetStreamObjects(nc, RESULTS), JetStreamObjects(nc, WORKSPACES)
    titles, progress = JetStreamTitles(nc), JetStreamProgress(nc)
    past, lines, forecasts = History(JetStreamScans(nc)), JetStreamLines(nc), Forecasts(view, policy, clock)
    submitting = Submitting(view, log, inputs, titles, pipelines, forecasts, policy, clock, ids)
    changing = Changing(view, log, policy, clock, ids)
    reading = Reading(view, log, titles, progress, forecasts, policy, clock)
    listing = Listing(index, log)
    kept = ContentStores(inputs, titles, progress, (results, workspaces), lines)
    return Edge(
        submitting=submitting,
        retrying=Retrying(submitting, log, inputs, titles, workspaces),
        changing=changing,
        answering=Answering(changing, inputs, policy, ids),
        reading=reading,
        listing=listing,
        charting=Charting(listing, view, clock),
        overseeing=Overseeing(view, past, reading, policy),
        operating=Operating(view, log, clock, ids),
        erasing=Erasing(past, log, changing, kept, policy, clock, ids),
        leasing=leasing,
        revoking=Revoking(Acts(log, clock, ids), front.tokens.revocations, policy, clock),
        inputs=inputs,
        results=results,
        lines=lines,
        tickets=view,
        policy=policy,
        clock=clock,
        telemetry=ground.telemetry,
        refusals=Refusals(view, ground.telemetry.meter),
        ids=ids,
        folded=partial(has_folded, view, clock=clock, within_ms=TOLD_WITHIN_MS),
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

"""Admission, composed: settings, clients, adapters, routes. Run with `python -m services.admission`."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from fastapi import APIRouter

from headgate_contracts.openapi import openapi_document
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.store import RedisView
from libs.eventlog.buckets import JetStreamInputs, JetStreamObjects
from libs.eventlog.history import History, JetStreamScans
from libs.eventlog.lines import JetStreamLines
from libs.eventlog.streams import RESULTS, WORKSPACES
from libs.foundation import Ground, lay
from libs.foundation.ground import LOG, NATS, VIEW
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Service
from libs.runtime.settings import read_settings
from services.admission.api import Edge
from services.admission.api_bulk import bulk_routes
from services.admission.api_content import erasure_routes, log_routes, result_routes
from services.admission.api_jobs import change_routes, submit_routes
from services.admission.api_queue import group_routes, queue_routes
from services.admission.api_reading import reading_routes
from services.admission.api_tickets import ticket_routes
from services.admission.api_workflows import workflow_routes, workflow_submit_routes
from services.admission.changing import Changing
from services.admission.erasing import Erasing, Kept
from services.admission.forecasts import Forecasts
from services.admission.listing import Listing
from services.admission.operating import Operating
from services.admission.overseeing import Overseeing
from services.admission.reading import Reading
from services.admission.refusals import Refusals
from services.admission.retrying import Retrying
from services.admission.settings import AdmissionSettings
from services.admission.submitting import Submitting

OPENED: Final = "the view"
BODY_LIMIT_BYTES: Final = 7 * 1024 * 1024  # a batch of 100 submissions, each with an input of 64 KiB
ROUTES: Final = (submit_routes, bulk_routes, workflow_submit_routes, change_routes, workflow_routes)


@dataclass(frozen=True, slots=True)
class Ids:
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
    ground = await lay(service, read_settings(AdmissionSettings), needs=needs, body_limit_bytes=BODY_LIMIT_BYTES)
    view = await ground.view(service)
    edge = _edge(ground, view)
    for router in (*(routes(edge) for routes in ROUTES), *_told(ground, view, edge)):
        ground.app.include_router(router)
    ground.app.openapi_schema = openapi_document()  # the whole API, the notifier's part too
    opened = partial(_require_open, view)
    await wait_for(OPENED, opened, away=(ViewLost, ViewUnavailable), health=ground.health, clock=ground.clock)
    await service.start(ground.gate)


def _edge(ground: Ground[AdmissionSettings], view: RedisView) -> Edge:
    nc, log, policy, clock, ids = ground.nc, ground.log, ground.policy, ground.clock, Ids(ground)
    inputs, forecasts = JetStreamInputs(nc), Forecasts(view, policy, clock)
    submitting = Submitting(view, log, inputs, forecasts, policy, clock, ids)
    return Edge(
        submitting=submitting,
        retrying=Retrying(submitting, log, inputs, JetStreamObjects(nc, WORKSPACES)),
        changing=Changing(view, log, policy, clock, ids),
        reading=Reading(view, log, forecasts, policy, clock),
        policy=policy,
        clock=clock,
        telemetry=ground.telemetry,
        refusals=Refusals(view, ground.telemetry.meter),
        ids=ids,
    )


def _told(ground: Ground[AdmissionSettings], view: RedisView, edge: Edge) -> Iterator[APIRouter]:
    """The routes that tell what is and was, and those of operators."""
    nc, log, policy, clock = ground.nc, ground.log, ground.policy, ground.clock
    past, lines = History(JetStreamScans(nc)), JetStreamLines(nc)
    results, workspaces = JetStreamObjects(nc, RESULTS), JetStreamObjects(nc, WORKSPACES)
    overseeing = Overseeing(view, past, edge.reading, policy)
    operating = Operating(view, log, clock, edge.ids)
    kept = Kept(JetStreamInputs(nc), (results, workspaces), lines)
    yield reading_routes(edge, Listing(view, past, policy, clock))
    yield queue_routes(edge, overseeing, operating)
    yield group_routes(overseeing, operating)
    yield result_routes(edge, results)
    yield log_routes(edge, lines)
    yield ticket_routes(view, clock)
    yield erasure_routes(Erasing(past, log, edge.changing, kept, policy, clock, edge.ids))


async def _require_open(view: RedisView) -> None:
    """Until a scheduler has folded the log for the first time, every submission would be refused."""
    mark = await view.mark()
    if mark is None or not mark.open:
        raise ViewLost


def main() -> int:
    try:
        return asyncio.run(Service("admission").run(compose))
    except SettingsWrong as wrong:
        sys.stderr.write(f"admission: {wrong}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())

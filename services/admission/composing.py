"""Admission's use cases, put together from whatever reaches out of the process: the servers' clients, or their twins.

Owns the wiring and nothing else.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from libs.capacity.ports import View
from libs.eventlog.history import History
from libs.eventlog.ports import EventLog, Inputs, Lines, Objects, ProgressBucket, Titles
from libs.policy import Policy
from libs.runtime.clock import Clock
from libs.runtime.revocations import Revocations
from libs.runtime.telemetry import Telemetry
from services.admission.acts import Acts, Revoking
from services.admission.answering import Answering
from services.admission.api import Edge
from services.admission.changing import Changing
from services.admission.charting import Charting
from services.admission.erasing import ContentStores, Erasing
from services.admission.forecasts import Forecasts
from services.admission.indexing import Indexing
from services.admission.keeping_up import has_folded
from services.admission.leasing import Leasing
from services.admission.listing import Listing
from services.admission.operating import Operating
from services.admission.overseeing import Overseeing
from services.admission.pipelines import Pipelines
from services.admission.ports import Ids
from services.admission.reading import Reading
from services.admission.reloading import Reloading
from services.admission.retrying import Retrying
from services.admission.submission_counts import SubmissionCounts
from services.admission.submitting import Submitting
from services.admission.waiting import Waiting

TOLD_WITHIN_MS: Final = 500  # a change is answered by then, though no scheduler has folded it


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionStores:
    """What is kept elsewhere."""

    log: EventLog
    view: View
    past: History
    inputs: Inputs
    results: Objects
    workspaces: Objects
    titles: Titles
    progress: ProgressBucket
    lines: Lines


def assemble(
    stores: AdmissionStores,
    *,
    index: Indexing,
    pipelines: Pipelines,
    leasing: Leasing,
    revocations: Revocations,
    reloading: Reloading,
    policy: Policy,
    clock: Clock,
    ids: Ids,
    telemetry: Telemetry,
) -> Edge:
    """All that the routes share."""
    log, view, inputs, titles = stores.log, stores.view, stores.inputs, stores.titles
    forecasts = Forecasts(view, policy, clock)
    submitting = Submitting(view, log, inputs, titles, pipelines, forecasts, policy, clock, ids)
    changing = Changing(view, log, policy, clock, ids)
    reading = Reading(view, log, titles, stores.progress, forecasts, policy, clock)
    listing = Listing(index, log)
    kept = ContentStores(inputs, titles, stores.progress, (stores.results, stores.workspaces), stores.lines)
    return Edge(
        submitting=submitting,
        retrying=Retrying(submitting, log, inputs, titles, stores.workspaces),
        changing=changing,
        answering=Answering(changing, inputs, policy, ids),
        reading=reading,
        listing=listing,
        charting=Charting(listing, view, clock),
        waiting=Waiting(listing, clock),
        overseeing=Overseeing(view, stores.past, reading, policy),
        operating=Operating(view, log, clock, ids),
        erasing=Erasing(stores.past, log, changing, kept, policy, clock, ids),
        leasing=leasing,
        revoking=Revoking(Acts(log, clock, ids), revocations, policy, clock),
        reloading=reloading,
        inputs=inputs,
        results=stores.results,
        lines=stores.lines,
        tickets=view,
        policy=policy,
        clock=clock,
        telemetry=telemetry,
        counts=SubmissionCounts(view, telemetry.meter),
        ids=ids,
        folded=partial(has_folded, view, clock=clock, within_ms=TOLD_WITHIN_MS),
    )

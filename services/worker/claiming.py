"""What a dispatch is worth to a worker, and the claim of it.

    dispatch ─► started, right after it ─┬─ stored ──► the job is ours
        │                                └─ conflict: somebody has written since ─► read the job
        └─► its input is fetched meanwhile          ├─ to be had still ─► started, after what was read
                                                    ├─ the same, cancel asked for ─► cancelled
                                                    └─ anything else ──────────────► dropped

The claim is the event `started`: two workers with the same message race in the log, and one of them finds there that it
lost. Nothing is taken once the worker was told to stop: what comes then goes to another at once.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Final, cast

from opentelemetry.trace import SpanContext

from headgate_contracts import ContractError, Event, Job, advance
from headgate_contracts.assignment import assigned
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobCancelled, JobData, JobDispatched
from headgate_contracts.stages import Stages
from headgate_contracts.tokens import input_name
from libs.eventlog import Appended, LogUnavailable
from libs.eventlog.decoding import job_in
from libs.eventlog.ports import Dispatch
from libs.runtime.spans import step
from services.worker.attempt.chain import append_surely
from services.worker.attempt.patience import insist, insist_while
from services.worker.attempt.tools import Claimed, Tools
from services.worker.domain import (
    Claimable,
    Stale,
    ToCancel,
    cancel,
    claim,
    event_about,
    run_budget_s,
    worth_of,
)

logger = logging.getLogger(__name__)

NO_STAGES: Final = Stages()  # of a pipeline that this worker does not have


async def take(dispatch: Dispatch, tools: Tools, *, wanted: Callable[[], bool]) -> Claimed | None:
    """Claim what was dispatched, if it is still to be had. Null: the message is done with, or was handed back."""
    event = dispatch.record.event
    if not isinstance(event, Event) or not isinstance(event.data, JobDispatched):
        logger.error("record %s of the pool is no dispatch that can be read: dropped", dispatch.record.seq)
        await _done(dispatch)
        return None
    dispatched = cast("Event[JobDispatched]", event)
    name, claimed = input_name(dispatched.data.job_id, dispatched.data.input_digest), None
    content = asyncio.create_task(insist(lambda: tools.inputs.get(name), tools.clock, about=f"input {name}"))
    try:
        with tools.signals.processing(dispatch.record, dispatched.data) as span:
            job = await _claim(dispatch, dispatched, tools, wanted=wanted)
            if job is not None:
                claimed = _claimed(job, dispatched, dispatch.record.at, content, tools, cause=span.get_span_context())
            return claimed
    finally:
        if claimed is None:
            content.cancel()


async def _claim(
    dispatch: Dispatch, dispatched: Event[JobDispatched], tools: Tools, *, wanted: Callable[[], bool]
) -> Job | None:
    """The job once it is ours."""
    job = assigned(dispatched, seq=dispatch.record.seq, at=dispatch.record.at)
    while wanted():
        data = _claim_of(job, dispatched.data, tools)
        if job is None or data is None:
            await _done(dispatch)
            return None
        event = event_about(job, data, event_id=tools.new_id(), now=utc(tools.clock.now_ms()))
        with step("claim"):
            answer = await append_surely(tools.log, event, after=job, clock=tools.clock, ours=wanted)
        if isinstance(answer, Appended):
            await _done(dispatch)
            return None if isinstance(data, JobCancelled) else advance(job, event, seq=answer.records[0].seq)
        job = await _job_in_log(job.id, tools, wanted=wanted)
    with suppress(LogUnavailable):
        await dispatch.nak()
    return None


def _claim_of(job: Job | None, dispatched: JobDispatched, tools: Tools) -> JobData | None:
    match worth_of(job, dispatched):
        case Claimable() if job is not None:
            return claim(job, tools.worker, tools.spawner.pipelines.get(job.submission.pipeline, NO_STAGES))
        case ToCancel() if job is not None:
            return cancel(job)
        case Stale(why):
            logger.info("attempt %s of %s is not to be had: %s", dispatched.attempt, dispatched.job_id, why)
    return None


def _claimed(
    job: Job,
    dispatched: Event[JobDispatched],
    at: datetime,
    content: asyncio.Task[bytes | None],
    tools: Tools,
    *,
    cause: SpanContext,
) -> Claimed:
    return Claimed(
        job=job,
        at_ms=tools.clock.monotonic_ms(),
        at=at,
        budget_s=run_budget_s(job, dispatched_at=dispatched.time, policy=tools.policy),
        content=content,
        cause=cause,
    )


async def _job_in_log(job_id: str, tools: Tools, *, wanted: Callable[[], bool]) -> Job | None:
    """From the leader; asked again while it is away, for as long as it is wanted."""
    records = await insist_while(wanted, lambda: tools.log.read(job_id), tools.clock, said=f"{job_id} waits to be read")
    try:
        return None if records is None else job_in(records)
    except ContractError as unreadable:
        logger.error("%s cannot be claimed: %s", job_id, unreadable)  # noqa: TRY400 - it says it all
        return None


async def _done(dispatch: Dispatch) -> None:
    with suppress(LogUnavailable):  # then it comes again, and the log says that it is stale
        await dispatch.ack(sure=False)

"""How a worker comes by work: one open request to the pool for each free slot, and a claim for what comes.

    slot free ─► dispatch ─► read the job from the leader ─┬─ starting, this attempt, nobody's ─► started ─► ack ─► run
         ▲                                                 ├─ the same, cancel asked for ──────► cancelled ─► ack
         │                                                 └─ anything else ───────────────────► ack, dropped
         └─────────────────────────────────────────────────────────────────────────────────────────────────────────┘

The claim is the event `started`: two workers with the same message race in the log, and one of them reads that it lost.
Owns the slots. Nothing is taken once the worker was told to stop: what comes then goes to another at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

from headgate_contracts import ContractError, Event, Job, JobEvent, advance
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobCancelled, JobData, JobDispatched
from libs.eventlog import Appended, LogUnavailable, Record
from libs.eventlog.folding import job_in
from libs.runtime.clock import Clock
from services.worker.attempt.chain import AGAIN_AFTER_MS, append_surely
from services.worker.attempt.tools import Claimed, Tools
from services.worker.domain import (
    Claimable,
    Stale,
    ToCancel,
    cancel,
    claim,
    event_about,
    run_budget_s,
    worked_s,
    worth_of,
)
from services.worker.ports import Dispatch, Dispatches, Log

logger = logging.getLogger(__name__)


async def take(dispatch: Dispatch, tools: Tools, *, wanted: Callable[[], bool]) -> Claimed | None:
    """Claim what was dispatched, if it is still to be had. Null: the message is done with, or was handed back."""
    event = dispatch.record.event
    if not isinstance(event, Event) or not isinstance(event.data, JobDispatched):
        logger.error("record %s of the pool is no dispatch that can be read: dropped", dispatch.record.seq)
        await _done(dispatch)
        return None
    with tools.signals.processing(dispatch.record, event.data.job_id):
        return await _take(dispatch, event.data, tools, wanted=wanted)


async def _take(
    dispatch: Dispatch, dispatched: JobDispatched, tools: Tools, *, wanted: Callable[[], bool]
) -> Claimed | None:
    while wanted():
        records = await _records(tools.log, dispatched.job_id, tools.clock, wanted=wanted)
        if records is None:
            break
        try:
            job = job_in(records)
        except ContractError as unreadable:
            logger.error("%s cannot be claimed: %s", dispatched.job_id, unreadable)  # noqa: TRY400 - it says it all
            job = None
        data = _claim_of(job, dispatched, tools.worker)
        if job is None or data is None:
            await _done(dispatch)
            return None
        event = event_about(job, data, event_id=tools.new_id(), now=utc(tools.clock.now_ms()))
        answer = await append_surely(tools.log, event, after=job, clock=tools.clock, ours=wanted)
        if isinstance(answer, Appended):
            await _done(dispatch)
            job = advance(job, event, seq=answer.records[0].seq)
            return None if isinstance(data, JobCancelled) else _claimed(job, records, dispatch.record, tools)
    with suppress(LogUnavailable):
        await dispatch.nak()
    return None


def _claim_of(job: Job | None, dispatched: JobDispatched, worker: str) -> JobData | None:
    match worth_of(job, dispatched):
        case Claimable() if job is not None:
            return claim(job, worker)
        case ToCancel() if job is not None:
            return cancel(job)
        case Stale(why):
            logger.info("attempt %s of %s is not to be had: %s", dispatched.attempt, dispatched.job_id, why)
    return None


def _claimed(job: Job, records: list[Record], dispatched: Record, tools: Tools) -> Claimed:
    history = [(cast("JobEvent", each.event), each.at) for each in records if isinstance(each.event, Event)]
    said_at = dispatched.event.time if isinstance(dispatched.event, Event) else dispatched.at
    return Claimed(
        job=job,
        at_ms=tools.clock.monotonic_ms(),
        at=dispatched.at,
        worked_s=worked_s(history),
        budget_s=run_budget_s(job, dispatched_at=said_at, policy=tools.policy),
    )


async def _records(log: Log, job_id: str, clock: Clock, *, wanted: Callable[[], bool]) -> list[Record] | None:
    """From the leader; asked again while it is away, null once nobody wants it any more."""
    while wanted():
        try:
            return await log.read(job_id)
        except LogUnavailable:
            await clock.sleep_ms(AGAIN_AFTER_MS)
    return None


async def _done(dispatch: Dispatch) -> None:
    with suppress(LogUnavailable):  # then it comes again, and the log says that it is stale
        await dispatch.ack()


class Intake:
    """The slots of a worker. Each waits for room, for a dispatch, and then for the attempt that it became."""

    name = "intake"

    def __init__(
        self,
        dispatches: Dispatches,
        serve: Callable[[Dispatch], asyncio.Task[None]],
        *,
        slots: int,
        room: Callable[[], Awaitable[None]],
    ) -> None:
        self._dispatches = dispatches
        self._serve = serve
        self._room = room
        self._slots = slots
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._slot(), name=f"slot {number}") for number in range(self._slots)]

    async def stop(self) -> None:
        """Take nothing new. What was taken goes on: it is not the slot's."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def ended(self) -> None:
        """A slot ends by a fault alone, and raises it."""
        if not self._tasks:
            return
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            if not task.cancelled():
                task.result()

    async def _slot(self) -> None:
        while True:
            await self._room()
            dispatch = await self._dispatches.next()
            await asyncio.shield(self._serve(dispatch))

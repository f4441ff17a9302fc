"""One attempt, from its claim to the event that ends it, or to the moment in which it is not ours any more.

    claimed ─► process ─► earlier work ─► stage event ─► stage runs ─► its work is stored ─► the next event
                                                              │ told to stop
                                                              ├─ cancelled ─► process ends ─► cancelled
                                                              ├─ deadline ──► process ends ─► failed (timeout)
                                                              ├─ provider ──► process ends ─► given_back: the provider
                                                              ├─ drained ───► process ends ─► given_back: what is done
                                                              └─ lost ──────► process ends, and nothing is written

Owns the order of those steps for one job, and how long the attempt is ours. What follows what is `domain`, what gets
into the log is `chain`, what runs is `process`, what is kept between two stages is `checkpoints`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from headgate_contracts import Job, Stage
from headgate_contracts.events import JobData, JobStage
from headgate_contracts.tokens import input_name
from headgate_contracts.vocabulary import Fault
from libs.policy import Policy
from libs.runtime.clock import Clock
from libs.runtime.telemetry import job_trace
from services.worker.chain import Chain
from services.worker.checkpoints import Checkpoints, Shelf
from services.worker.children import Spawner
from services.worker.domain import (
    ChecksFailed,
    Failed,
    Finished,
    Interruption,
    Lease,
    StageOutcome,
    after_failed_checks,
    broken_off,
    fail,
    finish,
    give_back,
    naming,
    next_stage,
)
from services.worker.lines import JobLog, LinePump
from services.worker.patience import insist
from services.worker.ports import Inputs, Log, Results, Scheduler
from services.worker.process import AttemptProcess, Limits
from services.worker.signals import Signals
from services.worker.slots import StageSlots

logger = logging.getLogger(__name__)

LAST_LINES_S: Final = 1.0  # a job's end is not held up for longer by lines of its log
LOOKS_MS: Final = (0, 100, 400)  # a hint may be faster than what it hints at
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What all attempts of a worker share."""

    worker: str
    policy: Policy
    limits: Limits
    log: Log
    inputs: Inputs
    results: Results
    shelf: Shelf
    scheduler: Scheduler
    spawner: Spawner
    pump: LinePump
    signals: Signals
    clock: Clock
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """An attempt that is ours, as it was when it became ours."""

    job: Job
    at_ms: int  # by our own clock that only grows
    at: datetime  # by the log's
    worked_s: float  # in earlier attempts
    budget_s: float


class Attempt:
    """One attempt of a job, in this worker's hands."""

    def __init__(
        self, claimed: Claimed, tools: Tools, *, hands_over: Callable[[], bool], beat_soon: Callable[[], None]
    ) -> None:
        job, clock = claimed.job, tools.clock
        self.holder = f"{job.id}:{job.attempt}"
        self.lease = Lease(claimed.at_ms + round(tools.policy.leases.job_s * 1000))
        self._claimed = claimed
        self._tools = tools
        self._hands_over = hands_over
        self._debug_id = job_trace(job.id).debug_id
        self._chain = Chain(job, log=tools.log, clock=clock, new_id=tools.new_id, ours=self.is_ours)
        self._checkpoints = Checkpoints(job, tools.shelf)
        limits = tools.limits
        self._process = AttemptProcess(
            self.holder,
            spawner=tools.spawner,
            limits=limits,
            log=JobLog(job, tools.pump, clock=clock, runs=limits.runs, secrets=limits.secrets),
            checkpoints=self._checkpoints,
            beat_soon=beat_soon,
            vanished=lambda: self.interrupt(Interruption.LOST),
        )
        self.slots = StageSlots(
            job,
            scheduler=tools.scheduler,
            clock=clock,
            again_ms=round(tools.policy.leases.heartbeat_s * 1000),
            tell=self._process.tell_lease,
            providers=tools.policy.providers,
            pauses=self._wait_for,
        )
        self._provider: str | None = None
        self._why: Interruption | None = None
        self._told, self._lost = asyncio.Event(), asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    # ── what others tell it ───────────────────────────────────────────────────

    def is_ours(self) -> bool:
        return not self._lost.is_set() and not self.lease.ended(self._tools.clock.monotonic_ms())

    def hold_until(self, lease: Lease) -> None:
        """The lease is another now. The process lives no longer than that, whatever becomes of us."""
        if lease != self.lease:
            self.lease = lease
            self._process.prolong(lease.ends_ms)

    def interrupt(self, why: Interruption) -> None:
        """Break off what runs. Of two reasons the stronger one counts."""
        self._why = why if self._why is None else max(why, self._why)
        self._told.set()
        if why is Interruption.LOST:
            self._lost.set()

    def look_soon(self) -> None:
        """Somebody says that something became of the job: look what the log says."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name=f"look at {self.holder}")

    # ── its life ──────────────────────────────────────────────────────────────

    async def run(self) -> str | None:
        """Until it is over: the event that ended it, or null where it was lost."""
        living = asyncio.create_task(self._live(), name=f"attempt {self.holder}")
        lost, deadline = asyncio.create_task(self._lost.wait()), asyncio.create_task(self._time_out())
        ended: str | None = None
        try:
            await asyncio.wait([living, lost], return_when=asyncio.FIRST_COMPLETED)
            ended = living.result() if living.done() else None
        finally:
            await self._leave(living, lost, deadline)
        if ended is None:
            logger.warning("%s is not ours any more: its processes were ended, nothing more is written", self.holder)
        return ended

    async def _live(self) -> str | None:
        data = await self._first()
        while data is not None:
            if not isinstance(data, JobStage):
                self._process.close_log()
                await self._tools.pump.sent(within_s=LAST_LINES_S)
            written = await self._write(data)
            match written:
                case None:
                    return None
                case JobStage(restored=True):
                    data = next_stage(self._job)
                case JobStage():
                    data = await self._through(written)
                case _:
                    return written.EVENT.value
        return None

    async def _first(self) -> JobData | None:
        """What is to be written first, once all is there that the first stage needs."""
        match await self._or_interrupted(self._prepare()):
            case Interruption() as why:
                return await self._broken_off(why, Stage.SCAFFOLD)
            case Failed() as wrong:
                return self._failed(wrong)
            case None:
                return next_stage(self._job)

    async def _write(self, data: JobData) -> JobData | None:
        """What was stored meanwhile is named; what nothing names any more may go."""
        before = self._job.checkpoint
        written = await self._chain.write(naming(data, self._checkpoints.newest))
        if written is not None:
            self._checkpoints.written(self._job, before=before)
        return written

    async def _prepare(self) -> Failed | None:
        """Everything that the first stage needs, or what is wrong with it."""
        pipeline, known = self._job.submission.pipeline, self._tools.spawner.pipelines
        if pipeline not in known:
            there = f"There are: {', '.join(sorted(known))}."
            return Failed(f"There is no pipeline {pipeline} in the pool.", there, Fault.SYSTEM)
        name = input_name(self._job.id, self._job.submission.input_digest)
        content = await insist(lambda: self._tools.inputs.get(name), self._tools.clock, about=f"input {name}")
        if content is None:
            return Failed("The job's input is not there any more.", fault=Fault.SYSTEM)
        await self._process.begin(self._job, content=content, until_ms=self.lease.ends_ms, slots=self.slots)
        return None if self._job.checkpoint is None else await self._process.restore()

    async def _through(self, begun: JobStage) -> JobData | None:
        """Run the stage; what is to be written then, null where it is not ours to write."""
        if self._hands_over():
            return give_back(self._job)
        with self._tools.signals.stage(self._job, begun) as running:
            outcome = await self._or_interrupted(self._process.stage(begun))
            running.outcome = _name_of(outcome)
        match outcome:
            case Interruption():
                return await self._broken_off(outcome, begun.stage)
            case Failed():
                return self._failed(outcome)
            case ChecksFailed():
                policy, now = self._tools.policy, self._log_time()
                return after_failed_checks(self._job, outcome, policy=policy, now=now, debug_id=self._debug_id)
            case Finished():
                return next_stage(self._job) if begun.stage is not Stage.CHECKS else await self._passed()

    async def _passed(self) -> JobData | None:
        """The checks have passed: keep the result, then say so."""
        match await self._or_interrupted(self._keep_result()):
            case Interruption() as why:
                return await self._broken_off(why, Stage.CHECKS)
            case Failed() as failed:
                return self._failed(failed)
            case result:
                worked_s = (self._tools.clock.monotonic_ms() - self._claimed.at_ms) / 1000
                return finish(self._job, result=result, duration_s=round(self._claimed.worked_s + worked_s, 3))

    async def _keep_result(self) -> str | Failed | None:
        """The result's name once it is stored; null where the job made nothing to keep."""
        content = await self._process.result()
        if not isinstance(content, bytes):
            return content
        name = self.holder.replace(":", "-")
        await insist(lambda: self._tools.results.put(name, content), self._tools.clock, about=f"result {name}")
        return name

    async def _broken_off(self, why: Interruption, stage: Stage) -> JobData | None:
        await self._process.break_off(stage)
        return broken_off(self._job, self._why or why, debug_id=self._debug_id, provider=self._provider)

    def _wait_for(self, provider: str) -> None:
        """It pauses for longer than a job is to wait with all that it holds."""
        self._provider = provider
        self.interrupt(Interruption.PROVIDER)

    # ── how it is held together ───────────────────────────────────────────────

    async def _or_interrupted(self, work: Coroutine[Any, Any, T]) -> T | Interruption:
        """What the work gives, or why it was broken off."""
        working, told = asyncio.create_task(work), asyncio.create_task(self._told.wait())
        try:
            await asyncio.wait([working, told], return_when=asyncio.FIRST_COMPLETED)
            if not self.is_ours():
                return Interruption.LOST
            return working.result() if self._why is None else self._why
        finally:
            working.cancel()
            told.cancel()
            await asyncio.wait([working, told])

    async def _look(self) -> None:
        for pause_ms in LOOKS_MS:
            await self._tools.clock.sleep_ms(pause_ms)
            if not await self._chain.look_again():
                return self.interrupt(Interruption.LOST)
            if self._job.cancel_requested_by is not None:
                return self.interrupt(Interruption.CANCELLED)
        return None

    async def _time_out(self) -> None:
        await self._tools.clock.sleep_ms(round(self._claimed.budget_s * 1000))
        self.interrupt(Interruption.TIMED_OUT)

    async def _leave(self, *tasks: asyncio.Task[Any]) -> None:
        """Nothing of it stays: no task, no process, no file."""
        every = [task for task in (*tasks, self._looking) if task is not None]
        for task in every:
            task.cancel()
        self.slots.close()
        await self._process.end()
        await asyncio.wait(every)

    def _failed(self, failed: Failed) -> JobData:
        return fail(self._job, failed, debug_id=self._debug_id)

    def _log_time(self) -> datetime:
        """Now, by the log's clock as far as we can tell: a wrong clock of this machine has no effect."""
        return self._claimed.at + timedelta(milliseconds=self._tools.clock.monotonic_ms() - self._claimed.at_ms)

    @property
    def _job(self) -> Job:
        return self._chain.job


def _name_of(outcome: StageOutcome | Interruption) -> str:
    match outcome:
        case Finished():
            return "finished"
        case ChecksFailed():
            return "checks_failed"
        case Failed():
            return "failed"
        case Interruption():
            return outcome.name.lower()

"""One attempt, from its claim to the event that ends it, or to the moment in which it is not ours any more.

    claimed ─► executor: prepare ─► write ─► run the stage ─► judge ─► write ─► … ─► ended
                      ▲ broken off
    heartbeat, watchdog, a wish, the deadline, a provider ─► tenure: is it ours?

Owns how these are held together for one job, and that nothing of an attempt stays behind. The steps are `executor`, how
long it is ours is `tenure`, what gets into the log is `chain`, what is kept is `checkpoints`.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from headgate_contracts import EventName, Holder, Job
from services.worker.attempt.chain import Chain
from services.worker.attempt.checkpoints import Checkpoints
from services.worker.attempt.executor import Executor
from services.worker.attempt.job_log import JobLog
from services.worker.attempt.process import AttemptProcess
from services.worker.attempt.progress import AttemptProgress
from services.worker.attempt.questions import AttemptQuestions
from services.worker.attempt.slots import StageSlots
from services.worker.attempt.telemetry import CallBook
from services.worker.attempt.tenure import Tenure
from services.worker.attempt.tools import Claimed, Tools
from services.worker.domain import Interruption, Lease

logger = logging.getLogger(__name__)

LOOKS_MS: Final = (0, 100, 400)  # a hint may be faster than what it hints at


class Attempt:
    """One attempt of a job, in this worker's hands."""

    def __init__(
        self, claimed: Claimed, tools: Tools, *, hands_over: Callable[[], bool], beat_soon: Callable[[], None]
    ) -> None:
        job, clock = claimed.job, tools.clock
        self.holder = str(Holder(job.id, job.attempt))
        self._tools = tools
        self._budget_ms = round(claimed.budget_s * 1000)
        self._tenure = Tenure(Lease(claimed.at_ms + round(tools.policy.leases.job_s * 1000)), clock)
        self._chain = Chain(job, log=tools.log, clock=clock, new_id=tools.new_id, ours=self._tenure.is_ours)
        checkpoints = Checkpoints(job, tools.shelf, tools.policy.retention)
        self._process = self._process_of(job, checkpoints, beat_soon=beat_soon)
        self.slots = StageSlots(
            job,
            scheduler=tools.scheduler,
            clock=clock,
            tell=self._process.send_lease,
            policy=tools.policy,
            pauses=self._tenure.wait_for,
        )
        self._executor = Executor(
            claimed,
            tools,
            tenure=self._tenure,
            chain=self._chain,
            process=self._process,
            checkpoints=checkpoints,
            slots=self.slots,
            hands_over=hands_over,
        )
        self._looking: asyncio.Task[None] | None = None

    def _process_of(self, job: Job, checkpoints: Checkpoints, *, beat_soon: Callable[[], None]) -> AttemptProcess:
        tools, clock = self._tools, self._tools.clock
        return AttemptProcess(
            self.holder,
            spawner=tools.spawner,
            limits=tools.limits,
            log=JobLog(job, tools.pump, clock=clock, runs=tools.limits.runs, secrets=tools.limits.secrets),
            checkpoints=checkpoints,
            progress=AttemptProgress(job, tools.progress, clock, secrets=tools.limits.secrets),
            questions=AttemptQuestions(job, inputs=tools.inputs, clock=clock, secrets=tools.limits.secrets),
            calls=CallBook(tools.limits.providers, tools.signals),
            beat_soon=beat_soon,
            vanished=lambda: self.interrupt(Interruption.LOST),
        )

    @property
    def was_forced(self) -> bool:
        """Whether it was ended because an operator wants its slots."""
        return self._tenure.why is Interruption.FORCED

    @property
    def lease(self) -> Lease:
        return self._tenure.lease

    def hold_until(self, lease: Lease) -> None:
        """The lease is another now. The process lives no longer than that, whatever becomes of us."""
        if lease != self._tenure.lease:
            self._tenure.lease = lease
            self._process.prolong(lease.ends_ms)

    def interrupt(self, why: Interruption) -> None:
        self._tenure.interrupt(why)

    def look_soon(self) -> None:
        """Somebody says that something became of the job: look what the log says."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name=f"look at {self.holder}")

    async def run(self) -> str | None:
        """Until it is over: the event that ended it, or null where it was lost."""
        living = asyncio.create_task(self._executor.run(), name=f"attempt {self.holder}")
        lost, deadline = asyncio.create_task(self._tenure.lost.wait()), asyncio.create_task(self._time_out())
        ended: str | None = None
        try:
            await asyncio.wait([living, lost], return_when=asyncio.FIRST_COMPLETED)
            ended = living.result() if living.done() else None
        finally:
            await self._leave(living, lost, deadline, well=ended == EventName.READY)
        if ended is None:
            logger.warning("%s is not ours any more: its processes were ended, nothing more is written", self.holder)
        return ended

    async def _look(self) -> None:
        for pause_ms in LOOKS_MS:
            await self._tools.clock.sleep_ms(pause_ms)
            if not await self._chain.look_again():
                return self.interrupt(Interruption.LOST)
            if self._job.cancel_requested_by is not None:
                return self.interrupt(Interruption.CANCELLED)
        return None

    async def _time_out(self) -> None:
        await self._tools.clock.sleep_ms(self._budget_ms)
        self.interrupt(Interruption.TIMED_OUT)

    async def _leave(self, *tasks: asyncio.Task[Any], well: bool) -> None:
        """Nothing of it stays: no task, no process, no file."""
        every = [task for task in (*tasks, self._looking) if task is not None]
        for task in every:
            task.cancel()
        self.slots.close()
        await self._process.end(well=well)
        await asyncio.wait(every)

    @property
    def _job(self) -> Job:
        return self._chain.job

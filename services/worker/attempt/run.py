"""One attempt, from its claim to the event that ends it, or to the moment in which it is not ours any more.

    claimed ─► course: what is to be written ─► chain: written ─► course: the stage is run ─► …
                      ▲ broken off                                        │
    heartbeat, watchdog, a wish, the deadline, a provider ─► tenure ◄─────┘ is it ours?

Owns how these are held together for one job, and that nothing of an attempt stays behind. What is done next is
`course`, how long it is ours is `tenure`, what gets into the log is `chain`, what is kept is `checkpoints`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from headgate_contracts import EventName, Holder, Job
from headgate_contracts.events import JobData, JobStage, JobTryFailed
from services.worker.attempt.chain import Chain
from services.worker.attempt.checkpoints import Checkpoints
from services.worker.attempt.course import Course
from services.worker.attempt.lines import JobLog
from services.worker.attempt.process import AttemptProcess
from services.worker.attempt.progress import AttemptProgress
from services.worker.attempt.questions import AttemptQuestions
from services.worker.attempt.slots import StageSlots
from services.worker.attempt.tenure import Tenure
from services.worker.attempt.tools import Claimed, Tools
from services.worker.domain import Interruption, Lease, naming, next_stage

logger = logging.getLogger(__name__)

LAST_LINES_S: Final = 1.0  # an event is not held up for longer by lines that were said before it
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
        self._checkpoints = Checkpoints(job, tools.shelf, tools.policy.retention)
        self._process = AttemptProcess(
            self.holder,
            spawner=tools.spawner,
            limits=tools.limits,
            log=JobLog(job, tools.pump, clock=clock, runs=tools.limits.runs, secrets=tools.limits.secrets),
            checkpoints=self._checkpoints,
            progress=AttemptProgress(job, tools.progress, clock, secrets=tools.limits.secrets),
            questions=AttemptQuestions(job, inputs=tools.inputs, clock=clock, secrets=tools.limits.secrets),
            beat_soon=beat_soon,
            vanished=lambda: self.interrupt(Interruption.LOST),
        )
        self.slots = StageSlots(
            job,
            scheduler=tools.scheduler,
            clock=clock,
            tell=self._process.send_lease,
            policy=tools.policy,
            pauses=self._tenure.wait_for,
        )
        self._course = Course(
            claimed,
            tools,
            tenure=self._tenure,
            chain=self._chain,
            process=self._process,
            slots=self.slots,
            hands_over=hands_over,
        )
        self._looking: asyncio.Task[None] | None = None

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
        living = asyncio.create_task(self._live(), name=f"attempt {self.holder}")
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

    async def _live(self) -> str | None:
        data = await self._course.first()
        while data is not None:
            if not isinstance(data, JobStage | JobTryFailed):
                self._process.close_log()
            await self._tools.pump.sent(within_s=LAST_LINES_S)  # what was said stands before what comes of it
            written = await self._write(data)
            match written:
                case None:
                    return None
                case JobStage(restored=True):
                    data = next_stage(self._job)
                case JobStage():
                    data = await self._course.through(written)
                case JobTryFailed():
                    data = await self._course.again(written)
                case _:
                    return written.EVENT.value
        return None

    async def _write(self, data: JobData) -> JobData | None:
        """What was stored meanwhile is named; what nothing names any more may go."""
        before = self._job.checkpoint
        written = await self._chain.write(naming(data, self._checkpoints.newest))
        if written is not None:
            self._checkpoints.written(self._job, before=before)
        return written

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

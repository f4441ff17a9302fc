"""The steps of an attempt, from what its first stage needs to the event that ends it.

    run
     1  prepare        input, process, slots, the work of an earlier attempt
     2  write          the event that is due, after the lines that were said before it   ◄─────────────┐
     3  run_stage      in its time, as long as the attempt is ours                                      │
     4  judge          what follows from how the stage ended ───────────────────────────────────────────┤
     5  wait           for another try of a stage whose failure passes; a long one as given_back ───────┤
     6  keep_result    of the last stage, where it has passed; then `ready` ────────────────────────────┘

At each step the attempt may be broken off (`tenure`). Its process ends, and what is due then is

    cancelled, deadline    cancelled, failed (timeout)
    provider, drained      given_back: what is done counts
    forced, lost           nothing: the schedulers give it back, or have done so
    the machine gave out   nothing: the attempt is left to its lease

Owns that order. What follows what is `domain`, what runs is `process`, what gets into the log is `chain`.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from headgate_contracts import Job
from headgate_contracts.commands import CHECKS_FAILED
from headgate_contracts.events import JobData, JobStage, JobTryFailed, Tried
from headgate_contracts.stages import is_in_last
from headgate_contracts.vocabulary import Fault
from headgate_pipeline.rules import StageRules
from libs.runtime.spans import step
from libs.runtime.telemetry import job_trace
from services.worker.attempt.chain import Chain
from services.worker.attempt.checkpoints import Checkpoints
from services.worker.attempt.patience import insist
from services.worker.attempt.process import AttemptProcess
from services.worker.attempt.slots import StageSlots
from services.worker.attempt.tenure import Tenure
from services.worker.attempt.tools import Claimed, Tools
from services.worker.domain import (
    Interruption,
    after_failed_checks,
    ask,
    broken_off,
    fail,
    finish,
    give_back,
    naming,
    next_stage,
    put_off,
    too_late,
    tries_of,
    try_again,
)
from services.worker.outcomes import (
    ChecksFailed,
    Failed,
    Finished,
    GaveOut,
    StageAsks,
    StageOutcome,
    name_of,
    wrong_in,
)

logger = logging.getLogger(__name__)

LAST_LINES_S: Final = 1.0  # an event is not held up for longer by lines that were said before it
PREPARING: Final = "preparing"  # in the place of a stage, where the worker has no pipeline of that name


class Executor:
    """Carries one attempt out, step by step."""

    def __init__(
        self,
        claimed: Claimed,
        tools: Tools,
        *,
        tenure: Tenure,
        chain: Chain,
        process: AttemptProcess,
        checkpoints: Checkpoints,
        slots: StageSlots,
        hands_over: Callable[[], bool],
    ) -> None:
        self._claimed = claimed
        self._tools = tools
        self._tenure = tenure
        self._chain = chain
        self._process = process
        self._checkpoints = checkpoints
        self._slots = slots
        self._hands_over = hands_over
        self._begun: JobStage | None = None  # the stage that runs

    async def run(self) -> str | None:
        """Until it is over: the event that ended it, or null where it is not ours to end."""
        due = await self.prepare()
        while due is not None:
            match await self.write(due):
                case None:
                    return None
                case JobStage(restored=True):
                    due = next_stage(self._job)
                case JobStage() as begun:
                    due = await self.begin(begun)
                case JobTryFailed(tried=tried):
                    due = await self.wait(tried)
                case last:
                    return last.EVENT.value
        return None

    async def prepare(self) -> JobData | None:
        """Get all that the first stage needs."""
        match await self._tenure.or_interrupted(self._begin_process()):
            case Interruption() as why:
                return await self._broken_off(why, self._first_stage)
            case Failed() as wrong:
                return self._failed(wrong)
            case GaveOut(why):
                return self._left(self._first_stage, why)
            case None:
                return next_stage(self._job)

    async def write(self, data: JobData) -> JobData | None:
        """Write what is due, with the name of the work that was stored meanwhile, before which the other may go, and
        with the calls to models that were made. Null where it is not ours to write."""
        if not isinstance(data, JobStage | JobTryFailed):
            self._process.close_log()
        await self._tools.pump.sent(within_s=LAST_LINES_S)  # what was said stands before what comes of it
        before = self._job.checkpoint
        written = await self._chain.write(naming(data, self._checkpoints.newest, usage=self._process.calls.taken()))
        if written is not None:
            self._checkpoints.written(self._job, before=before)
        return written

    async def begin(self, begun: JobStage) -> JobData | None:
        """Run the stage that was written; once its pause is over, where an attempt before was broken off in that."""
        self._begun, tried = begun, self._job.tried
        if tried is not None and tried.again_at > self._log_time():
            return await self.wait(tried)
        return await self.run_stage(begun)

    async def run_stage(self, begun: JobStage) -> JobData | None:
        """Run the stage that was written, and judge how it ended."""
        self._begun, tries = begun, tries_of(self._job)
        if self._hands_over():
            return give_back(self._job)
        in_time = self._tenure.stage_time(self._rules(begun.stage).timeout_s)
        with self._tools.signals.stage(self._job, begun) as running, in_time:
            outcome = await self._tenure.or_interrupted(self._process.stage(begun, tries=tries))
            if isinstance(outcome, Interruption):
                running.outcome, late = outcome.name.lower(), too_late(self._job, self._tenure.why or outcome)
                running.wrong = late and late.summary
            else:
                running.outcome, running.wrong = name_of(outcome), wrong_in(outcome)
        return await self.judge(outcome, begun.stage)

    async def judge(self, outcome: StageOutcome | Interruption, stage: str) -> JobData | None:
        """What follows from how a stage ended."""
        policy, now = self._tools.policy, self._log_time()
        match outcome:
            case Interruption():
                return await self._broken_off(outcome, stage)
            case GaveOut(why):
                return self._left(stage, why)
            case Finished():
                return await self.keep_result(stage) if is_in_last(self._job) else next_stage(self._job)
            case StageAsks(question):
                self._process.say(stage, f"… [asks: {question.text}]")
                return ask(self._job, question, policy=policy, now=now)
            case ChecksFailed(summary=summary):
                self._process.say(stage, f"{CHECKS_FAILED}{summary}")
                return after_failed_checks(self._job, outcome, policy=policy, now=now, debug_id=self._debug_id)
            case Failed(again_after_s=None):
                return self._failed(outcome)
            case Failed():
                return self._next_try(outcome, stage) or self._failed(outcome)

    async def wait(self, tried: Tried) -> JobData | None:
        """For the next try of the same stage; a long pause is spent without slots."""
        begun = self._begun
        if begun is None:
            raise AssertionError("another try of a stage that was not begun")
        said = f"Try {tried.tries} of {tried.most + 1} failed: {tried.summary}"
        pause_s = (tried.again_at - self._log_time()).total_seconds()
        self._process.say(begun.stage, f"{said} It is run again in {max(0, pause_s):.3g} s.")
        if pause_s > self._tools.policy.providers.give_back_after_s:
            return put_off(self._job, tried.again_at)
        match await self._tenure.or_interrupted(self._tools.clock.sleep_ms(max(0, round(pause_s * 1000)))):
            case Interruption() as why:
                return await self._broken_off(why, begun.stage)
            case None:
                return await self.run_stage(begun)

    async def keep_result(self, stage: str) -> JobData | None:
        """The last stage has passed: what the job made is stored, then it is ready."""
        match await self._tenure.or_interrupted(self._stored_result(stage)):
            case Interruption() as why:
                return await self._broken_off(why, stage)
            case Failed() as failed:
                return self._failed(failed)
            case GaveOut(why):
                return self._left(stage, why)
            case result:
                worked_s = self._claimed.job.worked_s + self._claimed.worked_s(self._tools.clock)
                return finish(self._job, result=result, duration_s=round(worked_s, 3))

    def _next_try(self, failed: Failed, stage: str) -> JobTryFailed | None:
        rules, job = self._rules(stage), self._job
        pause_s = rules.pause_s(tries_of(job) + 1)
        return try_again(job, failed, most=rules.retries, pause_s=pause_s, now=self._log_time())

    def _rules(self, stage: str) -> StageRules:
        return self._tools.spawner.pipelines[self._job.submission.pipeline].rules_of(stage)

    async def _begin_process(self) -> Failed | GaveOut | None:
        """Everything that the first stage needs, or what is wrong with it."""
        pipeline, known = self._job.submission.pipeline, self._tools.spawner.pipelines
        if pipeline not in known:
            there = f"There are: {', '.join(sorted(known))}."
            return Failed(f"There is no pipeline {pipeline} in the pool.", there, Fault.SYSTEM)
        content = await self._claimed.content
        if content is None:
            return Failed("The job's input is not there any more.", fault=Fault.SYSTEM)
        until_ms = self._tenure.lease.ends_ms
        await self._process.begin(self._job, content=content, until_ms=until_ms, slots=self._slots)
        return None if self._job.checkpoint is None else await self._process.restore(self._first_stage)

    async def _stored_result(self, stage: str) -> str | Failed | GaveOut | None:
        """The result's name once it is stored; null where the job made nothing to keep."""
        content = await self._process.result(stage)
        if not isinstance(content, bytes):
            return content
        name = f"{self._job.id}-{self._job.attempt}"
        with step("keep result", {"headgate.result.bytes": len(content)}):
            await insist(lambda: self._tools.results.put(name, content), self._tools.clock, about=f"result {name}")
        return name

    async def _broken_off(self, why: Interruption, stage: str) -> JobData | None:
        await self._process.break_off(stage)
        why, provider = self._tenure.why or why, self._tenure.provider
        return broken_off(self._job, why, debug_id=self._debug_id, provider=provider)

    def _left(self, stage: str, why: str) -> None:
        """To its lease: nothing is written, and the schedulers give the job back as one whose worker was lost."""
        logger.error("this machine gave out under %s-%s: %s", self._job.id, self._job.attempt, why)
        self._process.say(stage, f"… [the worker's machine gave out: {why}. This attempt ends here]")

    def _failed(self, failed: Failed) -> JobData:
        return fail(self._job, failed, debug_id=self._debug_id)

    def _log_time(self) -> datetime:
        return self._claimed.log_time(self._tools.clock)

    @property
    def _first_stage(self) -> str:
        """Where the log has what is said before any stage has begun."""
        return next(iter(self._job.stage_names), PREPARING)

    @property
    def _job(self) -> Job:
        return self._chain.job

    @property
    def _debug_id(self) -> str:
        return job_trace(self._job).debug_id

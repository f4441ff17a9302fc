"""What runs for one attempt: its process, its workspace, its slots and its log, from `begin` to `end`.

Owns the talk with the process, and refuses to trust it with anything but its own job: of what it says only log lines,
requests for slots and how its stage ended are kept, its words are read for secrets, and what it has packed is read as
one plain file of a bounded size.
"""

import asyncio
import errno
import logging
import os
import signal
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from headgate_contracts import Holder, Job
from headgate_contracts.events import JobStage
from headgate_contracts.vocabulary import Fault
from libs.policy import Runs
from libs.policy.sections import Sandbox as SandboxBounds
from services.worker.attempt.checkpoints import Checkpoints
from services.worker.attempt.job_log import JobLog
from services.worker.attempt.progress import AttemptProgress
from services.worker.attempt.questions import AttemptQuestions
from services.worker.attempt.secrets import for_users
from services.worker.attempt.slots import StageSlots
from services.worker.attempt.telemetry import CallBook, show_command
from services.worker.child.messages import (
    Acquire,
    Ask,
    Begin,
    ChildAnswer,
    CommandEnded,
    Extend,
    FromChild,
    GiveUp,
    LeaseNotice,
    ModelCalled,
    OutputLine,
    Pack,
    Packed,
    Progressed,
    ProviderEndpoint,
    Restore,
    Restored,
    RunStage,
    Shut,
    StageEnded,
    StoreReady,
    StoreTaken,
)
from services.worker.children import Child, Spawner
from services.worker.errors import ChildSpokeNonsense
from services.worker.outcomes import ChecksFailed, Failed, Finished, GaveOut, LeftOpen, StageAsks, StageOutcome
from services.worker.sandbox.command import CommandBounds, Level
from services.worker.sandbox.errors import USED_UP
from services.worker.sandbox.reach import make_passage
from services.worker.sandbox.remains import clear

logger = logging.getLogger(__name__)

LAST_WORDS_S: Final = 0.2  # after its end: what it said before is here already
GONE: Final = Failed(
    "The work of earlier stages is not there any more.",
    "It was kept for a while and then cleared away. Submit the job again.",
    Fault.SYSTEM,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What this worker's settings and policy allow an attempt, and what it may call."""

    workspaces: Path
    end_grace_s: float
    runs: Runs
    commands: SandboxBounds
    level: Level
    providers: Mapping[str, ProviderEndpoint]

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(each.key for each in self.providers.values() if each.key is not None)


class AttemptProcess:
    """The process that runs one attempt's stages, as the worker sees it."""

    def __init__(
        self,
        holder: str,
        *,
        spawner: Spawner,
        limits: Limits,
        log: JobLog,
        checkpoints: Checkpoints,
        questions: AttemptQuestions,
        progress: AttemptProgress,
        calls: CallBook,
        beat_soon: Callable[[], None],
        vanished: Callable[[], None],
    ) -> None:
        self._holder = holder
        self._spawner = spawner
        self._limits = limits
        self._log = log
        self._checkpoints = checkpoints
        self._questions = questions
        self._progress = progress
        self.calls = calls
        self._beat_soon = beat_soon
        self._vanished = vanished
        self._home = limits.workspaces / Holder.parse(holder).token
        self._store = self._home / "checkpoint.tar.gz"
        self._child: Child | None = None
        self._reuses: str | None = None  # the pipeline, where policy lets it have one process for several jobs
        self._slots: StageSlots | None = None

    async def begin(self, job: Job, *, content: bytes, until_ms: int, slots: StageSlots) -> None:
        """A process with a workspace of its own, that lives until then at the longest."""
        folder = self._home / "kept"
        for path in (self._home, folder):
            make_passage(path)
        (folder / "workspace").mkdir(mode=0o700, exist_ok=True)
        self._slots = slots
        pipeline = job.submission.pipeline
        if pipeline in self._limits.runs.reused_pipelines:
            self._reuses = pipeline
            self._child = self._spawner.spare(pipeline, until_ms=until_ms)
        self._child = self._child or await self._spawner.spawn(self._holder, until_ms=until_ms)
        begin = Begin(
            job_id=job.id,
            project_id=job.project_id,
            pipeline=pipeline,
            input=content.decode(errors="replace"),
            folder=str(folder),
            store=str(self._store),
            store_bytes=self._limits.runs.checkpoint_bytes,
            area=str(self._home / "area"),
            level=self._limits.level,
            bounds=CommandBounds.of(self._limits.commands),
            command_s=self._limits.commands.timeout_s,
            providers=dict(self._limits.providers),
        )
        await self._child.send(begin)

    async def restore(self, stage: str) -> Failed | GaveOut | None:
        """Begin with the work that earlier attempts have left."""
        content = await self._checkpoints.fetch()
        if content is None:
            return GONE
        await asyncio.to_thread(_write_private, self._store, content)
        match await self._answer_to(Restore(), stage):
            case Restored():
                return None
            case other:
                return self._not_done(other, stage)

    def prolong(self, until_ms: int) -> None:
        if self._child is not None:
            self._child.prolong(until_ms)

    async def send_lease(self, told: LeaseNotice) -> None:
        if self._child is not None:
            await self._child.send(told)

    async def stage(self, begun: JobStage, *, tries: int) -> StageOutcome:
        """Run the stage to its end, after so many tries. Unless it failed for good, its work is stored then."""
        order = RunStage(stage=begun.stage, iteration=begun.iteration, tries=tries)
        match await self._answer_to(order, begun.stage):
            case StageEnded(outcome=Finished() as finished):
                return finished
            case StageEnded(outcome=ChecksFailed(summary, detail)):
                return ChecksFailed(self._told(summary), self._told(detail))
            case StageEnded(outcome=LeftOpen()) if (question := self._questions.open) is not None:
                return StageAsks(question)
            case other:
                return self._not_done(other, begun.stage)

    async def result(self, stage: str) -> bytes | Failed | GaveOut | None:
        """What the job made, packed; null where it made nothing to keep."""
        target, max_bytes = self._home / "result.tar.gz", self._limits.runs.result_bytes
        match await self._answer_to(Pack(target=str(target), max_bytes=max_bytes), stage):
            case Packed(result=None):
                return None
            case Packed(result=result):
                content = await _packed(result, target, max_bytes=max_bytes)
                return Failed("The result cannot be read.") if content is None else content
            case other:
                return self._not_done(other, stage)

    async def break_off(self, stage: str) -> None:
        """End what runs, after a moment in which it may clear up and say what it did."""
        child = self._child
        if child is not None:
            listening = asyncio.create_task(self._last_words(child, stage))
            await child.end(grace_s=self._limits.end_grace_s)
            await asyncio.wait([listening], timeout=LAST_WORDS_S)
            listening.cancel()

    def say(self, stage: str, line: str) -> None:
        """In the job's log, beside what the process says there."""
        self._log.add(stage, line)

    def close_log(self) -> None:
        """What the log has to say about itself is said."""
        self._log.close()

    async def end(self, *, well: bool) -> None:
        """Nothing of it stays: no file, and no process, unless that may have another job after one that ended well."""
        child = self._child
        self._progress.close()
        if child is not None and not (well and self._reuses and await self._spawner.keep(child, self._reuses)):
            await child.end()
        self.close_log()
        if not await asyncio.to_thread(clear, self._home):
            logger.warning("something of %s could not be removed from its workspace", self._holder)

    async def _answer_to(self, order: Restore | RunStage | Pack, stage: str) -> ChildAnswer | Failed | GaveOut:
        """What the process says to an order, after all that it says on its way there."""
        child = self._child
        if child is None:
            raise AssertionError("an order before the process has begun")
        await child.send(order)
        try:
            while (said := await child.receive()) is not None:
                if isinstance(said, ChildAnswer):
                    return said
                if isinstance(said, StoreReady):
                    await self._keep(said)
                    await child.send(StoreTaken())
                elif isinstance(said, Ask):
                    await child.send(await self._questions.answer(said))
                else:
                    self._take(said, stage)
        except ChildSpokeNonsense as nonsense:
            logger.warning("%s", nonsense)
            return _nonsense(stage)
        return await self._died(child, stage)

    async def _keep(self, said: StoreReady) -> None:
        """Its work is packed: store it."""
        content = await _packed(said.content, self._store, max_bytes=self._limits.runs.checkpoint_bytes)
        if content is None:
            raise ChildSpokeNonsense(name=self._holder)
        await self._checkpoints.keep(content)

    def _take(self, said: FromChild, stage: str) -> None:
        match said:
            case OutputLine(line=line):
                self._log.add(stage, line)
            case Progressed():
                self._progress.show(stage, said)
            case Extend():
                self._beat_soon()
            case ModelCalled():
                self.calls.add(said)
            case CommandEnded():
                show_command(said)
            case _ if self._slots is not None:
                _take_about_slots(said, stage, self._slots)
            case _:
                pass

    def _not_done(self, answer: ChildAnswer | Failed | GaveOut, stage: str) -> Failed | GaveOut:
        match answer:
            case StageEnded(outcome=Failed() as failed):
                return replace(failed, summary=self._told(failed.summary), detail=self._told(failed.detail))
            case StageEnded(outcome=GaveOut(why)):
                return GaveOut(self._told(why))
            case Failed() | GaveOut():
                return answer
            case _:
                return _nonsense(stage)

    def _told(self, text: str) -> str:
        """As the job's user may read it."""
        return for_users(text, known=self._limits.secrets)

    async def _last_words(self, child: Child, stage: str) -> None:
        with suppress(ChildSpokeNonsense):
            while (said := await child.receive()) is not None:
                if isinstance(said, OutputLine | ModelCalled):
                    self._take(said, stage)

    async def _died(self, child: Child, stage: str) -> Failed | GaveOut:
        """It says no more: its code has ended it, or it is not known how, or it was killed. That is what the
        kernel does where memory runs out; we do it only to an attempt that is over."""
        code = await child.ended()
        if code is None:
            self._vanished()
        if code == -signal.SIGKILL:
            return GaveOut("its process was killed, as where memory runs out")
        how = f"by signal {-code}" if code is not None and code < 0 else f"with code {code}"
        return Failed(f"The stage {stage} ended its own process.", f"It ended {how}.")


def _take_about_slots(said: FromChild, stage: str, slots: StageSlots) -> None:
    match said:
        case Acquire():
            slots.ask(said, stage)
        case GiveUp(lease=number):
            slots.give_up(number)
        case Shut():
            slots.shut(said)
        case _:
            pass


def _nonsense(stage: str) -> Failed:
    return Failed(f"The stage {stage} gave an answer that makes no sense.")


async def _packed(told: bytes | int | None, path: Path, *, max_bytes: int) -> bytes | None:
    """What was told, or is in the file; null where that is more than it may be, or no plain file."""
    if isinstance(told, bytes):
        return told if len(told) <= max_bytes else None
    return await asyncio.to_thread(_plain_file, path, max_bytes=max_bytes)


def _write_private(path: Path, content: bytes) -> None:
    """For its owner alone: the folder lets the users of all commands through."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(content)


def _plain_file(path: Path, *, max_bytes: int) -> bytes | None:
    """Its content, if it is a plain file of at most that size and no link to anything. What is wrong with this machine
    and not with the file is raised: then the attempt is left to its lease."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                content = file.read(max_bytes + 1)
                return content if len(content) <= max_bytes else None
    except OSError as error:
        if error.errno in {*USED_UP, errno.EMFILE}:
            raise
    return None

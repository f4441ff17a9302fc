"""What runs for one attempt: its process, its workspace, its slots and its log, from `begin` to `end`.

Owns the talk with the process, and refuses to trust it with anything but its own job: of what it says only log lines,
requests for slots and how its stage ended are kept, and its result is read as one plain file of a bounded size.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate_contracts import Job, Stage
from headgate_contracts.events import JobStage
from services.worker.children import Child, Spawner
from services.worker.domain import ChecksFailed, Failed, Finished, StageOutcome
from services.worker.errors import ChildSpokeNonsense
from services.worker.lines import JobLog
from services.worker.messages import Acquire, Begin, Ended, Extend, GiveUp, LeaseTold, Line, Pack, Packed, RunStage
from services.worker.slots import StageSlots

logger = logging.getLogger(__name__)

LAST_WORDS_S: Final = 0.2  # after its end: what it said before is here already


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What this worker's settings allow an attempt."""

    workspaces: Path
    end_grace_s: float
    max_lines: int
    max_result_bytes: int


class AttemptProcess:
    """One attempt's."""

    def __init__(
        self,
        holder: str,
        *,
        spawner: Spawner,
        limits: Limits,
        log: JobLog,
        beat_soon: Callable[[], None],
        vanished: Callable[[], None],
    ) -> None:
        self._holder = holder
        self._spawner = spawner
        self._limits = limits
        self._log = log
        self._beat_soon = beat_soon
        self._vanished = vanished
        self._home = limits.workspaces / holder.replace(":", "-")
        self._child: Child | None = None
        self._slots: StageSlots | None = None

    async def begin(self, job: Job, *, content: bytes, until_ms: int, slots: StageSlots) -> None:
        """A process with a workspace of its own, that lives until then at the longest."""
        workspace = self._home / "workspace"
        workspace.mkdir(parents=True, exist_ok=True)
        self._slots = slots
        self._child = await self._spawner.spawn(self._holder, until_ms=until_ms)
        begin = Begin(
            job_id=job.id,
            project_id=job.project_id,
            pipeline=job.submission.pipeline,
            input=content.decode(errors="replace"),
            workspace=str(workspace),
        )
        await self._child.tell(begin)

    def prolong(self, until_ms: int) -> None:
        if self._child is not None:
            self._child.prolong(until_ms)

    async def tell_lease(self, told: LeaseTold) -> None:
        if self._child is not None:
            await self._child.tell(told)

    async def stage(self, begun: JobStage) -> StageOutcome:
        """Run the stage to its end."""
        match await self._answer_to(RunStage(stage=begun.stage, iteration=begun.iteration), begun.stage):
            case Ended(outcome="finished"):
                return Finished()
            case Ended(outcome="checks_failed", summary=summary):
                return ChecksFailed(summary)
            case Ended(summary=summary, detail=detail, fault=fault):
                return Failed(summary, detail, fault)
            case Failed() as failed:
                return failed
            case Packed():
                return _nonsense(begun.stage)

    async def result(self) -> bytes | Failed | None:
        """What the job made, packed; null where it made nothing to keep."""
        target, max_bytes = self._home / "result.tar.gz", self._limits.max_result_bytes
        match await self._answer_to(Pack(target=str(target), max_bytes=max_bytes), Stage.CHECKS):
            case Packed(size=None):
                return None
            case Packed():
                content = await asyncio.to_thread(_plain_file, target, max_bytes=max_bytes)
                return Failed("The result cannot be read.") if content is None else content
            case Ended(summary=summary, detail=detail):
                return Failed(summary, detail)
            case Failed() as failed:
                return failed

    async def break_off(self, stage: Stage) -> None:
        """End what runs, after a moment in which it may clear up and say what it did."""
        child = self._child
        if child is not None:
            listening = asyncio.create_task(self._last_words(child, stage))
            await child.end(grace_s=self._limits.end_grace_s)
            await asyncio.wait([listening], timeout=LAST_WORDS_S)
            listening.cancel()

    async def end(self) -> None:
        """Nothing of it stays: no process, no file."""
        if self._child is not None:
            await self._child.end()
        await asyncio.to_thread(shutil.rmtree, self._home, ignore_errors=True)

    async def _answer_to(self, order: RunStage | Pack, stage: Stage) -> Ended | Packed | Failed:
        """What the process says to an order, after all that it says on its way there."""
        child = self._child
        if child is None:
            raise AssertionError("an order before the process has begun")
        await child.tell(order)
        try:
            while (said := await child.hear()) is not None:
                if isinstance(said, Ended | Packed):
                    return said
                self._heed(said, stage)
        except ChildSpokeNonsense as nonsense:
            logger.warning("%s", nonsense)
            return _nonsense(stage)
        return await self._died(child, stage)

    def _heed(self, said: Line | Acquire | GiveUp | Extend, stage: Stage) -> None:
        match said:
            case Line(line=line):
                self._log.add(stage, line)
            case Extend():
                self._beat_soon()
            case Acquire() if self._slots is not None:
                self._slots.ask(said)
            case GiveUp(lease=number) if self._slots is not None:
                self._slots.give_up(number)
            case _:
                pass

    async def _last_words(self, child: Child, stage: Stage) -> None:
        with suppress(ChildSpokeNonsense):
            while (said := await child.hear()) is not None:
                if isinstance(said, Line):
                    self._log.add(stage, said.line)

    async def _died(self, child: Child, stage: Stage) -> Failed:
        """It says no more: either its code has ended it, or its time was over, or nobody knows."""
        code = await child.ended()
        if code is None:
            self._vanished()
        how = f"by signal {-code}" if code is not None and code < 0 else f"with code {code}"
        return Failed(f"The stage {stage.value} ended its own process.", f"It ended {how}.")


def _nonsense(stage: Stage) -> Failed:
    return Failed(f"The stage {stage.value} gave an answer that makes no sense.")


def _plain_file(path: Path, *, max_bytes: int) -> bytes | None:
    """Its content, if it is a plain file of at most that size and no link to anything."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                content = file.read(max_bytes + 1)
                return content if len(content) <= max_bytes else None
    return None

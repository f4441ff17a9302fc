"""The process of an attempt, played on the loop of the twins: the same orders and answers, without a process.

    worker ──Begin, RunStage, Pack──► here ──► the pipeline's own stages, in a folder of their own
           ◄──lines, slots, questions, how it ended──┘

What a stage raises, asks and keeps becomes what it does in a process, by the same code. Nothing contains it, and its
commands run without a sandbox, while no time passes.
"""

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from headgate_pipeline import CommandBounds, Pipeline, Ran
from headgate_pipeline.commands import StageCommand
from headgate_pipeline.rules import KnownPipeline
from services.worker.child.folder import Folder
from services.worker.child.life import Work, input_of, packed, restored, run_stage
from services.worker.child.link import ParentLink
from services.worker.child.loop import StageLoop
from services.worker.child.messages import (
    AnswerNotice,
    Begin,
    ChildOrder,
    FromChild,
    LeaseNotice,
    Pack,
    Restore,
    RunStage,
    StageEnded,
    StoreTaken,
    ToChild,
)
from services.worker.outcomes import SaidOutcome

KILLED, TERMINATED = -9, -15
TAIL_CHARS: Final = 32_000
PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ")
ToldWords = asyncio.Queue["FromChild | None"]


class MemoryStageLoop(StageLoop):
    """Where there is no socket: each word is there at once."""

    def send(self, message: FromChild) -> None:
        cast("ToldWords", self.channel).put_nowait(message)

    async def drained(self) -> None:
        """There is always room."""

    def runs(self, stage: asyncio.Task[Any] | None) -> None:
        self._stage = stage


class MemoryLink(ParentLink):
    """The worker, as a stage here sees it."""

    loop: MemoryStageLoop

    async def run(self, command: StageCommand, *, bounds: CommandBounds | None) -> Ran:
        assert self.folder is not None
        ran = await asyncio.to_thread(_run, command, self.folder.workspace)
        for line in ran.output_tail.splitlines():
            self.say(line)
        return ran


class MemoryChild:
    """One attempt's, as the worker sees it. It lives until it is ended."""

    def __init__(self, name: str, pipelines: Mapping[str, Pipeline]) -> None:
        self.name = name
        self.code: int | None = None
        self._pipelines = pipelines
        self._orders: asyncio.Queue[ChildOrder] = asyncio.Queue()
        self._told: ToldWords = asyncio.Queue()
        self._link = MemoryLink(cast("Any", self._told), MemoryStageLoop)
        self._gone = asyncio.Event()
        self._living = asyncio.create_task(self._live(), name=f"process of {name}")
        self._living.add_done_callback(self._over)

    async def send(self, message: ToChild) -> None:
        match message:
            case LeaseNotice() | StoreTaken() | AnswerNotice():
                self._link.take(message)
            case order:
                self._orders.put_nowait(order)

    async def receive(self) -> FromChild | None:
        return await self._told.get()

    def prolong(self, until_ms: int) -> None:
        """It ends with its worker, which is in the same process."""

    async def end(self, *, grace_s: float = 0.0) -> None:
        self._link.loop.cancelling = True
        if not self._living.done():
            self.code = TERMINATED if grace_s else KILLED
            self._living.cancel()
        await self._gone.wait()

    async def ended(self) -> int | None:
        await self._gone.wait()
        return self.code

    async def _live(self) -> None:
        begin = await self._orders.get()
        assert isinstance(begin, Begin)
        pipeline = self._pipelines[begin.pipeline]
        folder = self._link.folder = Folder(begin, not_kept=pipeline.not_kept)
        work = Work(begin, pipeline, folder, self._link, *input_of(pipeline, begin))
        while True:
            match await self._orders.get():
                case Restore():
                    self._link.loop.send(restored(folder))
                case RunStage() as order:
                    self._link.loop.send(StageEnded(outcome=await self._run(work, order)))
                case Pack() as order:
                    self._link.loop.send(packed(folder, order))
                case _:
                    return

    async def _run(self, work: Work, order: RunStage) -> SaidOutcome:
        """In a task of its own, which a question breaks off."""
        stage = asyncio.create_task(run_stage(work, order), name=f"{order.stage} of {self.name}")
        self._link.loop.runs(stage)
        try:
            return await stage
        finally:
            stage.cancel()
            self._link.loop.runs(None)

    def _over(self, living: asyncio.Task[None]) -> None:
        if not living.cancelled() and living.exception() is not None:
            self.code = 1
        self._told.put_nowait(None)
        self._gone.set()


class MemorySpawner:
    """Where attempts have their processes from."""

    refused: tuple[str, ...] = ()

    def __init__(self, pipelines: Mapping[str, Pipeline]) -> None:
        self._pipelines = pipelines
        self.pipelines: Mapping[str, KnownPipeline] = {name: each.stages for name, each in pipelines.items()}

    async def spawn(self, name: str, *, until_ms: int) -> MemoryChild:
        return MemoryChild(name, self._pipelines)

    def spare(self, pipeline: str, *, until_ms: int) -> None:
        """Each attempt has one of its own."""

    async def keep(self, child: MemoryChild, pipeline: str) -> bool:
        return False


def _run(command: StageCommand, workspace: Path) -> Ran:
    """With a short environment and a time limit, and without any sandbox."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    try:
        ran = subprocess.run(  # noqa: S603 - the author's own command, in the author's own test
            command.argv,
            cwd=workspace / command.cwd,
            env=passed | {"HOME": str(workspace), **command.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=command.timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ran(None, "time", "")
    code = ran.returncode
    return Ran(code if code >= 0 else 128 - code, "itself", ran.stdout.decode(errors="replace")[-TAIL_CHARS:])

"""Stages run in the process of the test: nothing contains their commands, and no slot is waited for."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

from headgate_pipeline.commands import CommandBounds, Ran, StageCommand
from headgate_pipeline.context import Context, Endpoint, ModelCall, Slots
from headgate_pipeline.pipeline import Pipeline, Step
from headgate_pipeline.questions import StageQuestion
from headgate_pipeline.rules import NEVER_KEPT, KnownPipeline
from headgate_pipeline.testing.course import StageEnd, end_of
from headgate_pipeline.testing.questions import AnsweringUser
from headgate_pipeline.testing.record import PipelineRun, ProviderPause, SlotsAsked

COMMAND_S: Final = 60.0
TAIL_CHARS: Final = 32_000
PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ")


class OwnHands:
    """A pipeline in this process, below a folder of its own."""

    def __init__(
        self,
        pipeline: Pipeline,
        content: str,
        told: PipelineRun,
        *,
        folder: Path,
        endpoints: Mapping[str, Endpoint],
        full: Collection[str],
        user: AnsweringUser,
    ) -> None:
        self.pipeline, self.user = pipeline, user
        self._content, self._told, self._endpoints, self._full = content, told, endpoints, full
        self._folder, self._lives, self._failure = folder, 0, ""
        self._workspace = self._new_workspace()
        self._input: Any = None
        self._is_read = False

    @property
    def known(self) -> KnownPipeline:
        return self.pipeline.stages

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def run(self, stage: str, *, iteration: int, tries: int) -> StageEnd:
        if (wrong := self._read_input()) is not None:
            return wrong
        step, link = self.pipeline.step(stage), OwnLink(stage, self._workspace, self._told, self._full, self.user)
        ctx = self._context(link, stage, iteration=iteration, tries=tries)
        is_last = self.pipeline.is_last(stage)
        time = asyncio.timeout(step.rules.timeout_s)
        try:
            async with time:
                await _inside(step, ctx, link)
        except (AssertionError, asyncio.CancelledError):
            if self.user.open is None:
                raise  # the test's own
            return StageEnd("asks", self.user.open.text)
        except TimeoutError as error:
            if time.expired():
                said = f"The stage {stage} took longer than it may: {step.rules.timeout_s:g} s."
                return StageEnd("failed", said, error=error)
            return end_of(error, stage, is_last=is_last, retry_on=step.retry_on)
        except Exception as error:  # noqa: BLE001 - an author's own: what it comes to is what the test asks
            ended = end_of(error, stage, is_last=is_last, retry_on=step.retry_on)
            if ended.outcome == "checks_failed":
                await self.fail(ended.detail or ended.summary)
            return ended
        return StageEnd("finished")

    async def fail(self, failure: str) -> None:
        self._failure = failure

    async def lose(self) -> None:
        """On another machine: with plain files and folders, without links, environments and caches."""
        before, self._workspace = self._workspace, self._new_workspace()
        not_kept = frozenset(PurePosixPath(path) for path in self.pipeline.not_kept)
        _carry(before, self._workspace, not_kept=not_kept, at=PurePosixPath())
        shutil.rmtree(before)

    async def result(self) -> dict[str, bytes]:
        root = self._workspace / "result"
        files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}

    def _context(self, link: OwnLink, stage: str, *, iteration: int, tries: int) -> Context:
        return Context(
            "test-job",
            "test",
            stage,
            iteration,
            self._workspace,
            self._input,
            link,
            failure=self._failure,
            providers=self._endpoints,
            tries=tries,
            _command_s=COMMAND_S,
        )

    def _new_workspace(self) -> Path:
        self._lives += 1
        workspace = self._folder / f"attempt-{self._lives}" / "workspace"
        workspace.mkdir(parents=True)
        return workspace

    def _read_input(self) -> StageEnd | None:
        if self._is_read:
            return None
        try:
            self._input = self.pipeline.read_input(self._content)
        except ValueError as error:
            said = "The job's input is not what the pipeline needs."
            return StageEnd("failed", said, str(error) or "it cannot be read", error=error)
        self._is_read = True
        return None


class OwnLink:
    """The worker, as a stage of the test sees it."""

    def __init__(
        self, stage: str, workspace: Path, told: PipelineRun, full: Collection[str], user: AnsweringUser
    ) -> None:
        self.cancelling = False
        self._stage, self._workspace, self._told, self._full, self._user = stage, workspace, told, full, user

    def say(self, line: str) -> None:
        self._told.lines.append(line)

    async def acquire(self, slots: Slots) -> bool:
        self._told.slots.append(SlotsAsked(self._stage, slots.providers, slots.groups, slots.stage_limit))
        lacking = [name for name in (*slots.providers, *slots.groups) if name in self._full]
        if lacking and slots.wait_s is None:
            raise AssertionError(f"the stage {self._stage} would wait for ever: {lacking[0]} is full in this test")
        return not lacking

    def extend(self) -> None:
        pass

    def give_up(self, slots: Slots) -> None:
        pass

    def shut(self, slots: Slots, provider: str, *, for_s: float | None) -> None:
        self._told.pauses.append(ProviderPause(self._stage, provider, for_s))

    def called(self, call: ModelCall) -> None:
        self._told.calls.append(call)

    async def keep(self) -> None:
        pass

    async def ask(self, question: StageQuestion) -> Any:
        is_answered, answer = self._user.asked(question)
        if not is_answered:
            raise asyncio.CancelledError
        return answer

    def progress(self, fraction: float, message: str) -> None:
        self._told.progress.append((fraction, message))

    async def run(self, command: StageCommand, *, bounds: CommandBounds | None) -> Ran:
        """With a short environment and a time limit, and without any sandbox."""
        self._told.commands.append(command.argv)
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            cwd=self._workspace / command.cwd,
            env=passed | {"HOME": str(self._workspace), **command.environ},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(command.timeout_s):
                output, _ = await process.communicate()
        except TimeoutError:
            return Ran(None, "time", "")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text, code = output.decode(errors="replace"), process.returncode or 0
        self._told.lines += text.splitlines()
        return Ran(code if code >= 0 else 128 - code, "itself", text[-TAIL_CHARS:])


async def _inside(step: Step, ctx: Context, link: OwnLink) -> None:
    async with AsyncExitStack() as held:
        if step.max_concurrent is not None:
            await held.enter_async_context(Slots(link, (), (), stage_limit=step.max_concurrent))
        await step.run(ctx)


def _carry(before: Path, after: Path, *, not_kept: Collection[PurePosixPath], at: PurePosixPath) -> None:
    for path in sorted(before.iterdir()):
        name = at / path.name
        if path.is_symlink() or path.name in NEVER_KEPT or name in not_kept:
            continue
        if path.is_dir():
            (after / path.name).mkdir()
            _carry(path, after / path.name, not_kept=not_kept, at=name)
        elif path.is_file():
            shutil.copy2(path, after / path.name)

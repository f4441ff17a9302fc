"""A pipeline run for its author's tests by what runs it for real: the spawner, the process of an attempt, the sandbox.

No server is there: slots are granted as the test says, what is kept stays in a folder of the test. `headgate_pipeline.
testing` decides what runs next and finds this module by its name (`isolated=True`).
"""

import asyncio
import io
import json
import os
import sys
import tarfile
import time
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Self

from headgate_pipeline import Endpoint, ModelCall, Pipeline
from headgate_pipeline.questions import StageQuestion
from headgate_pipeline.rules import KnownPipeline
from headgate_pipeline.testing import PipelineRun, ProviderPause, SlotsAsked
from headgate_pipeline.testing.course import StageEnd
from headgate_pipeline.testing.questions import AnsweringUser
from libs.policy import Policy
from services.worker.child.messages import (
    Acquire,
    AnswerNotice,
    Ask,
    Begin,
    ChildAnswer,
    CommandEnded,
    FromChild,
    LeaseNotice,
    ModelCalled,
    OutputLine,
    Pack,
    Packed,
    Progressed,
    ProviderEndpoint,
    Restore,
    RunStage,
    Shut,
    StageEnded,
    StoreReady,
    StoreTaken,
)
from services.worker.children import Child, Spawner
from services.worker.outcomes import ChecksFailed, Failed, Finished, GaveOut, LeftOpen, SaidOutcome
from services.worker.premises import Premises, settle
from services.worker.sandbox.command import CommandBounds, Level
from services.worker.sandbox.levels import find_level
from services.worker.sandbox.reach import make_passage

TRIAL: Final = "trial"
LIVES_MS: Final = 3_600_000  # a process that is forgotten ends then


class IsolatedHands:
    """One pipeline, which is loaded again by the name of its module."""

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
        self.user = user
        self._name, self._content, self._told, self._full = pipeline.name, content, told, full
        self._folder, self._endpoints, self._policy = folder, endpoints, Policy()
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._spawner = Spawner([_module_of(pipeline)], environ=environ)
        self._held = AsyncExitStack()
        self._lives, self._stored = 0, b""
        self._premises: Premises
        self._level: Level
        self._child: Child
        self._home: Path

    @property
    def known(self) -> KnownPipeline:
        return self._spawner.pipelines[self._name]

    async def __aenter__(self) -> Self:
        self._premises, self._level = await settle(self._folder / "workspaces", TRIAL, find=_level)
        self._held.callback(os.close, self._premises.lock)
        self._held.callback(self._premises.leave)
        await self._spawner.start()
        self._held.push_async_callback(self._spawner.stop)
        await self._begin()
        self._held.push_async_callback(self._end)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._held.aclose()

    async def run(self, stage: str, *, iteration: int, tries: int) -> StageEnd:
        timeout_s = self.known.rules_of(stage).timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._answer_to(RunStage(stage=stage, iteration=iteration, tries=tries), stage)
        except TimeoutError:
            await self._child.end()
            return StageEnd("failed", f"The stage {stage} took longer than it may: {timeout_s:g} s.")
        match answer:
            case StageEnded(outcome=outcome):
                return self._end_of(outcome)
            case _:
                return StageEnd("failed", f"The stage {stage} ended its own process.")

    def _end_of(self, outcome: SaidOutcome) -> StageEnd:
        match outcome:
            case LeftOpen() if self.user.open is not None:
                return StageEnd("asks", self.user.open.text)
            case LeftOpen():
                return StageEnd("failed")
            case Finished():
                return StageEnd("finished")
            case ChecksFailed(summary, detail):
                return StageEnd("checks_failed", summary, detail)
            case Failed(again_after_s=None):
                return StageEnd("failed", outcome.summary, outcome.detail)
            case Failed(again_after_s=again_after_s):
                return StageEnd("passing", outcome.summary, outcome.detail, again_after_s or 0)
            case GaveOut(why):
                return StageEnd("failed", why)

    async def fail(self, failure: str) -> None:
        await asyncio.to_thread((self._home / "kept" / "failure.txt").write_text, failure, encoding="utf-8")

    async def lose(self) -> None:
        await self._child.end()
        await self._begin()
        if self._stored:
            store = self._home / "checkpoint.tar.gz"
            await asyncio.to_thread(store.write_bytes, self._stored)
            await self._answer_to(Restore(), "restoring")

    async def result(self) -> dict[str, bytes]:
        target = self._home / "result.tar.gz"
        order = Pack(target=str(target), max_bytes=self._policy.runs.result_bytes)
        match await self._answer_to(order, "packing"):
            case Packed(result=bytes(content)):
                return _files_in(content)
            case Packed(result=int()):
                return _files_in(await asyncio.to_thread(target.read_bytes))
            case _:
                return {}

    async def _end(self) -> None:
        await self._child.end()

    async def _begin(self) -> None:
        """A process and a workspace of their own, as for another attempt."""
        self._lives += 1
        name = f"{TRIAL}-{self._lives}"
        self._home = self._premises.folder / name
        for path in (self._home, self._home / "kept"):
            make_passage(path)
        (self._home / "kept" / "workspace").mkdir(mode=0o700)
        self._child = await self._spawner.spawn(name, until_ms=time.monotonic_ns() // 1_000_000 + LIVES_MS)
        begin = Begin(
            job_id="test-job",
            project_id="test",
            pipeline=self._name,
            input=self._content,
            folder=str(self._home / "kept"),
            store=str(self._home / "checkpoint.tar.gz"),
            store_bytes=self._policy.runs.checkpoint_bytes,
            area=str(self._home / "area"),
            level=self._level,
            bounds=CommandBounds.of(self._policy.sandbox),
            command_s=self._policy.sandbox.timeout_s,
            providers={name: _endpoint(each) for name, each in self._endpoints.items()},
        )
        await self._child.send(begin)

    async def _answer_to(self, order: Restore | RunStage | Pack, stage: str) -> ChildAnswer | None:
        await self._child.send(order)
        while (said := await self._child.receive()) is not None:
            if isinstance(said, ChildAnswer):
                return said
            await self._take(said, stage)
        return None

    async def _take(self, said: FromChild, stage: str) -> None:
        match said:
            case Ask():
                await self._child.send(self._answer(said))
            case StoreReady(content=content):
                stored = self._home / "checkpoint.tar.gz"
                self._stored = await asyncio.to_thread(stored.read_bytes) if content is None else content
                await self._child.send(StoreTaken())
            case Acquire():
                await self._acquire(said, stage)
            case _:
                self._note(said, stage)

    def _note(self, said: FromChild, stage: str) -> None:
        told = self._told
        match said:
            case OutputLine(line=line):
                told.lines.append(line)
            case Progressed(fraction=fraction, message=message):
                told.progress.append((fraction, message))
            case Shut(provider=provider, for_ms=for_ms):
                told.pauses.append(ProviderPause(stage, provider, None if for_ms is None else for_ms / 1000))
            case ModelCalled():
                told.calls.append(_call(said))
            case CommandEnded(program=program):
                told.commands.append((program,))
            case _:
                pass

    def _answer(self, said: Ask) -> AnswerNotice:
        question = StageQuestion(said.key, said.text, said.choices, said.answer_schema)
        is_answered, answer = self.user.asked(question)
        words = json.dumps(answer) if is_answered else ""
        return AnswerNotice(number=said.number, state="answered" if is_answered else "open", words=words)

    async def _acquire(self, asked: Acquire, stage: str) -> None:
        self._told.slots.append(SlotsAsked(stage, asked.providers, asked.groups, asked.stage_limit))
        lacking = [name for name in (*asked.providers, *asked.groups) if name in self._full]
        if lacking and asked.wait_ms is None:
            raise AssertionError(f"the stage {stage} would wait for ever: {lacking[0]} is full in this test")
        await self._child.send(LeaseNotice(lease=asked.lease, state="full" if lacking else "granted"))


def _module_of(pipeline: Pipeline) -> str:
    """By which a process of its own can load it."""
    for name, module in tuple(sys.modules.items()):
        if name != "__main__" and getattr(module, "pipeline", None) is pipeline:
            return name
    wrong = f"isolated=True loads {pipeline.name} anew from its module, and none has it as `pipeline`"
    raise ValueError(f"{wrong}: import it from where `pipeline = Pipeline(...)` stands")


async def _level(workspaces: Path) -> Level:
    return await find_level("auto", workspaces=workspaces)


def _endpoint(told: Endpoint) -> ProviderEndpoint:
    return ProviderEndpoint(
        url=told.url, model=told.model, key=None if told.key is None else told.key.get_secret_value()
    )


def _call(said: ModelCalled) -> ModelCall:
    told = said.model_dump(exclude={"kind", "took_ms"})
    return ModelCall(**told, took_s=said.took_ms / 1000)


def _files_in(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        files = ((each.name, packed.extractfile(each)) for each in packed if each.isfile())
        return {name: content.read() for name, content in files if content is not None}

"""What becomes of builds in a test: nothing is written, and each stage does what the test has said of its job.

Owns the pipeline `build` of the twins: its stages, their titles and its input are those of the real one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final

from headgate_pipeline import ChecksFailed, Context, Pipeline, StageFailed, TryAgain, stage
from services.worker.build.pipeline import pipeline as build

BUILD: Final = build
FIRST: Final = BUILD.steps[0].stage
RETRIES: Final = 3


@dataclass(frozen=True, slots=True)
class ScriptedFault:
    """A stage that fails. `passes_after`: so many tries fail, and then it goes on."""

    summary: str
    detail: str
    stage: str
    passes_after: int | None = None


@dataclass(frozen=True, slots=True)
class ScriptedQuestion:
    """A stage that asks."""

    text: str
    stage: str
    choices: Sequence[str] | None
    schema: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class JobScript:
    """What becomes of one job. `failing_checks`: of so many iterations the checks fail."""

    stage_s: float = 1.0
    fault: ScriptedFault | None = None
    questions: tuple[ScriptedQuestion, ...] = ()
    failing_checks: int = 0
    files: Mapping[str, bytes] | None = None


@dataclass(slots=True)
class Scripts:
    """Those of a test: of the jobs that it has named, and of all others."""

    usual: JobScript = JobScript()
    of_jobs: dict[str, JobScript] = field(default_factory=dict[str, JobScript])

    def of(self, job_id: str) -> JobScript:
        return self.of_jobs.get(job_id, self.usual)

    def lasts(self, stage_s: float, job_id: str | None) -> None:
        self._change(job_id, stage_s=stage_s)

    def makes(self, files: Mapping[str, bytes | str], job_id: str | None) -> None:
        self._change(job_id, files={_name_of(name): _content_of(each) for name, each in files.items()})

    def fails(
        self, summary: str, detail: str, *, stage: str | None, passes_after: int | None, job_id: str | None
    ) -> None:
        self._change(job_id, fault=ScriptedFault(summary, detail, known_stage(stage), passes_after))

    def fails_checks(self, times: int, job_id: str | None) -> None:
        self._change(job_id, failing_checks=times)

    def asks(
        self,
        text: str,
        *,
        choices: Sequence[str] | None,
        schema: Mapping[str, Any] | None,
        stage: str | None,
        job_id: str | None,
    ) -> None:
        before = self.usual if job_id is None else self.of(job_id)
        asked = ScriptedQuestion(text, known_stage(stage), choices, schema)
        self._change(job_id, questions=(*before.questions, asked))

    def forget(self) -> None:
        """All that was said: builds are done well again."""
        self.usual = JobScript()
        self.of_jobs.clear()

    def _change(self, job_id: str | None, **changes: Any) -> None:
        if job_id is None:
            self.usual = replace(self.usual, **changes)
        else:
            self.of_jobs[job_id] = replace(self.of(job_id), **changes)


def known_stage(name: str | None) -> str:
    """The first one, where none is named. Raises ValueError where `build` has no such stage."""
    names = [step.stage for step in BUILD.steps]
    if name is not None and name not in names:
        raise ValueError(f"build has no stage {name!r}: it has {', '.join(names)}")
    return name or FIRST


def scripted_build(scripts: Scripts) -> Pipeline:
    """`build`, as the scripts say."""

    async def play(ctx: Context) -> None:
        ctx.log(f"{ctx.stage} of iteration {ctx.iteration}")
        await asyncio.sleep(scripts.of(ctx.job_id).stage_s)
        await _play(ctx, scripts.of(ctx.job_id), is_last=BUILD.is_last(ctx.stage))  # as was said meanwhile

    steps = tuple(stage(step.stage, title=step.title, retries=RETRIES)(play) for step in BUILD.steps)
    return Pipeline(BUILD.name, steps, BUILD.read_input)


async def _play(ctx: Context, script: JobScript, *, is_last: bool) -> None:
    for asked in script.questions:
        if asked.stage == ctx.stage:
            answer = await ctx.ask(asked.text, choices=asked.choices, schema=asked.schema)
            ctx.log(f"{asked.text} {answer}")
    fault = script.fault
    if fault is not None and fault.stage == ctx.stage:
        if fault.passes_after is None:
            raise StageFailed(fault.summary, fault.detail)
        if ctx.tries < fault.passes_after:
            raise TryAgain(fault.summary, fault.detail)
    if is_last:
        if ctx.iteration <= script.failing_checks:
            raise ChecksFailed("The checks failed, as the test has said.", f"In iteration {ctx.iteration}.")
        _write_result(ctx, {"README.md": f"{ctx.input.prompt}\n".encode()} if script.files is None else script.files)


def _write_result(ctx: Context, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = ctx.result / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _name_of(name: str) -> str:
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"a result holds no {name!r}: name a path below it")
    return name


def _content_of(content: bytes | str) -> bytes:
    if not isinstance(content, bytes | str):  # pyright: ignore[reportUnnecessaryIsInstance] - a test's, and none checks it
        raise TypeError(f"a file holds a text or bytes, not {type(content).__name__}")
    return content.encode() if isinstance(content, str) else content

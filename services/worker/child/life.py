"""What runs inside the process of an attempt: a stage at a time, as the worker asks for it, until the worker hangs up.
Where policy lets a pipeline have one process for several jobs, the worker says `Leave` and then `Begin` again.

Owns this end of the socket and the words an author's exceptions become. It has no credential and opens no connection;
of the world it has its workspace, its input and the socket. Refuses to decide what comes next: that is the worker's.

SIGTERM cancels the running stage, so that it can clear up, and ends the process. SIGKILL follows from outside.
"""

import asyncio
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import SecretStr

from headgate_contracts.vocabulary import Fault
from headgate_pipeline import Context, Endpoint, Pipeline, SlotLost, Slots, StageFailed, TryAgain, errors
from headgate_pipeline.pipeline import Step
from headgate_pipeline.rules import MAX_PAUSE_S
from libs.runtime.errors import ArchiveRefused
from services.worker.child.folder import Folder
from services.worker.child.link import ParentLink
from services.worker.child.loop import Terminated
from services.worker.child.messages import (
    Begin,
    ChildAnswer,
    Leave,
    Left,
    Pack,
    Packed,
    Restore,
    Restored,
    RunStage,
    StageEnded,
    sayable,
)
from services.worker.child.packing import ResultTooLarge, pack
from services.worker.outcomes import ChecksFailed, Failed, Finished, GaveOut, LeftOpen, SaidOutcome
from services.worker.sandbox.errors import USED_UP, CommandNotRun, MachineGaveOut
from services.worker.sandbox.running import Sandbox

TERMINATED: Final = 128 + signal.SIGTERM


@dataclass(frozen=True, slots=True)
class Work:
    """What all stages of the attempt have in common. `wrong` is what the pipeline says against the input."""

    begin: Begin
    pipeline: Pipeline
    folder: Folder
    link: ParentLink
    content: Any
    wrong: str | None

    def context(self, order: RunStage) -> Context:
        return Context(
            self.begin.job_id,
            self.begin.project_id,
            order.stage,
            order.iteration,
            self.folder.workspace,
            self.content,
            self.link,
            self.folder.failure if order.iteration > 1 else "",
            {name: _endpoint(told) for name, told in self.begin.providers.items()},
            self.begin.command_s,
            order.tries,
        )


def run(link: ParentLink, pipelines: Mapping[str, Pipeline], *, tie: int) -> int:
    """The whole life of the process; its exit code. Keepers of its commands hold the tie as long as they live."""
    try:
        serve(link, pipelines, tie=tie)
    except (Terminated, asyncio.CancelledError):
        return TERMINATED
    return 0


def serve(link: ParentLink, pipelines: Mapping[str, Pipeline], *, tie: int) -> None:
    """One attempt after the other, until the worker wants no more."""
    while isinstance(begin := link.next_order(), Begin):
        _live(link, begin, pipelines[begin.pipeline], tie)
        os.chdir("/")
        link.leave()
        link.loop.answer(Left())


def _live(link: ParentLink, begin: Begin, pipeline: Pipeline, tie: int) -> None:
    """One attempt."""
    folder = link.folder = Folder(begin, not_kept=pipeline.not_kept)
    sandbox = Sandbox(begin.level, bounds=begin.bounds, workspace=folder.workspace, area=Path(begin.area), tie=tie)
    link.sandbox = sandbox
    try:
        _settle_in(folder)
    except OSError as error:
        link.next_order()
        link.loop.answer(StageEnded(outcome=_unable(error, "The attempt's own folder cannot be used.")))
    else:
        _obey(Work(begin, pipeline, folder, link, *input_of(pipeline, begin)))
    finally:
        sandbox.close()


def _obey(work: Work) -> None:
    """One order after the other, until the worker hangs up or wants the attempt to be left."""
    link, folder = work.link, work.folder
    while order := link.next_order():
        match order:
            case Restore():
                link.loop.answer(restored(folder))
            case RunStage():
                link.loop.answer(StageEnded(outcome=_run(work, order)))
            case Pack():
                link.loop.answer(packed(folder, order))
            case Begin() | Leave():
                return


def _settle_in(folder: Folder) -> None:
    """What is written without a thought goes where it will be thrown away, and what libraries read from a home is
    nothing that a command can have left there."""
    os.environ["HOME"] = os.environ["TMPDIR"] = tempfile.tempdir = str(folder.home)
    os.chdir(folder.workspace)


def input_of(pipeline: Pipeline, begin: Begin) -> tuple[Any, str | None]:
    """The input as the pipeline reads it, or what is wrong with it."""
    try:
        return pipeline.read_input(begin.input), None
    except ValueError as error:
        return None, str(error) or "it cannot be read"
    except Exception as error:  # noqa: BLE001 - an author's own, or more brackets than Python counts
        return None, f"Reading it ended with {type(error).__name__}."


def _endpoint(told: Any) -> Endpoint:
    return Endpoint(told.url, told.model, None if told.key is None else SecretStr(told.key))


def restored(folder: Folder) -> ChildAnswer:
    try:
        folder.restore()
    except (ArchiveRefused, OSError) as refused:
        return StageEnded(outcome=_unable(refused, "The work of earlier stages cannot be read."))
    return Restored()


def _run(work: Work, order: RunStage) -> SaidOutcome:
    """Run the stage and keep its work. What the last one leaves behind is the result, and that is packed."""
    if work.wrong is not None:
        return _unreadable(work.wrong)
    try:
        ended = work.link.loop.run(_outcome(work.pipeline.step(order.stage), work.context(order), work))
        if _is_kept(work, order, ended):
            work.link.keep_now()
    except (StageFailed, OSError) as error:
        return _not_kept(error)
    return ended


async def run_stage(work: Work, order: RunStage) -> SaidOutcome:
    """The same on a loop that runs already, where the pipeline has no process of its own."""
    if work.wrong is not None:
        return _unreadable(work.wrong)
    try:
        ended = await _outcome(work.pipeline.step(order.stage), work.context(order), work)
        if _is_kept(work, order, ended):
            await work.link.keep()
    except (StageFailed, OSError) as error:
        return _not_kept(error)
    return ended


def _is_kept(work: Work, order: RunStage, ended: SaidOutcome) -> bool:
    """Whether the stage's work is needed by what comes next."""
    match ended:
        case Finished():
            return not work.pipeline.is_last(order.stage)
        case Failed(again_after_s=again_after_s):
            return again_after_s is not None
        case ChecksFailed() | LeftOpen():
            return True
        case GaveOut():
            return False


def _unreadable(wrong: str) -> Failed:
    return _failed("The job's input is not what the pipeline needs.", wrong)


def _not_kept(error: StageFailed | OSError) -> Failed | GaveOut:
    if isinstance(error, StageFailed):
        return _failed(error.summary, error.detail, error.fault)
    return _unable(error, "The work of the stage cannot be kept.")


async def _outcome(step: Step, ctx: Context, work: Work) -> SaidOutcome:
    """What the stage's function makes of itself. One that has asked ends with that, whatever it did then."""
    ended = await _own_end(step, ctx, work)
    work.link.progress_now()
    return LeftOpen() if work.link.asks else ended


async def _own_end(step: Step, ctx: Context, work: Work) -> SaidOutcome:
    try:
        await _inside(step, ctx, work.link)
    except errors.ChecksFailed as failed:
        if not work.pipeline.is_last(ctx.stage):
            return _failed(f"The stage {ctx.stage} said that checks failed, and is not the last.", failed.summary)
        work.folder.failed(failed.detail or failed.summary)
        return ChecksFailed(sayable(failed.summary[:500]), sayable(failed.detail[:4096]))
    except asyncio.CancelledError:
        if work.link.cancelling:
            raise
        if work.link.lost_slots:
            return _failed(f"The stage {ctx.stage} lost a slot that it needed.", fault=Fault.SYSTEM)
        return _failed(f"The stage {ctx.stage} cancelled itself.")
    except Exception as error:  # noqa: BLE001 - an author's own: whatever it is, it ends the job and not the worker
        return _passing(error, ctx) if isinstance(error, (TryAgain, *step.retry_on)) else _broken(error, ctx)
    return Finished()


def _passing(error: Exception, ctx: Context) -> Failed:
    """Worth another try, as it says of itself or its author does."""
    after_s = min(MAX_PAUSE_S, max(0, error.after_s)) if isinstance(error, TryAgain) else 0
    match _broken(error, ctx):
        case GaveOut(why):
            return Failed(why, again_after_s=after_s)
        case failed:
            return replace(failed, again_after_s=after_s)


def _broken(error: Exception, ctx: Context) -> Failed | GaveOut:
    """In words that the job's user may read."""
    name = ctx.stage
    match error:
        case StageFailed():
            return _failed(error.summary, error.detail, error.fault)
        case SlotLost():
            return _failed(f"The stage {name} lost a slot that it needed.", str(error), Fault.SYSTEM)
        case MachineGaveOut():
            return _gave_out(error.why)
        case OSError() if error.errno in USED_UP:
            return _gave_out(os.strerror(error.errno))
        case CommandNotRun():
            return _failed(f"The stage {name} could not run a command.", str(error), Fault.SYSTEM)
        case _:
            ctx.log(traceback_of(error, workspace=ctx.workspace))
            return _failed(f"The stage {name} ended with {type(error).__name__}.", "The job's log has the details.")


async def _inside(step: Step, ctx: Context, link: ParentLink) -> None:
    """The function itself, once no more jobs than it allows are in the stage."""
    if step.max_concurrent is None:
        return await step.run(ctx)
    async with Slots(link, (), (), stage_limit=step.max_concurrent):
        return await step.run(ctx)


def packed(folder: Folder, order: Pack) -> ChildAnswer:
    result, target = folder.workspace / "result", Path(order.target)
    try:
        return Packed(result=pack(result, target, max_bytes=order.max_bytes, in_memory=True))
    except ResultTooLarge as error:
        return StageEnded(outcome=_failed("The result is too large.", str(error)))
    except OSError as error:
        return StageEnded(outcome=_unable(error, "The result cannot be kept."))


def _unable(error: Exception, summary: str) -> Failed | GaveOut:
    """Ours to do, and not done: by a machine that is used up, or else for good."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError) and cause.errno in USED_UP:
        return _gave_out(os.strerror(cause.errno))
    return _failed(summary, str(error), Fault.SYSTEM)


def _gave_out(why: str) -> GaveOut:
    return GaveOut(sayable(why[:500]))


def _failed(summary: str, detail: str = "", fault: Literal[Fault.JOB, Fault.SYSTEM] = Fault.JOB) -> Failed:
    return Failed(sayable(summary[:500]), sayable(detail[:4096]), fault)


def traceback_of(error: BaseException, *, workspace: Path) -> str:
    """The traceback, with each file below the folder that it was imported from."""
    text = "".join(traceback.format_exception(error))
    for root in _roots((str(workspace), *sys.path, sys.prefix, sys.base_prefix)):
        text = text.replace(f"{root}/", "")
    return text


def _roots(folders: Iterable[str]) -> list[str]:
    """As they are named and as they really are, the longest first."""
    named = {folder.rstrip("/") for folder in folders}
    real = {str(Path(folder).resolve()) for folder in named if folder}
    return sorted((named | real) - {""}, key=len, reverse=True)

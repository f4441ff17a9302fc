"""What a pipeline is made of: four stages, each a Python function that is given a context.

    from services.worker.pipeline import Context, Pipeline, stage

    @stage("code")
    async def code(ctx: Context) -> None:
        async with ctx.provider("ollama"):
            ctx.log("writing")

    pipeline = Pipeline("mine", (scaffold, code, deps, checks))

Owns what an author sees. Runs inside the process of an attempt and nowhere else, so it knows no server, no clock of the
worker and no credential; what it needs from outside it asks its link for. A stage may be run again after an attempt was
lost in its middle: it should begin by clearing what it is about to make.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from headgate_contracts import Stage
from headgate_contracts.vocabulary import STAGES


class PipelineError(Exception):
    """What a stage may raise, and what its context raises. Any other exception fails the job with its name alone."""


class ChecksFailed(PipelineError):
    """The checks found the work wanting: the job goes on with the next cycle, or asks. Only `checks` may say so."""


class StageFailed(PipelineError):
    """The job cannot be done. Both texts are shown to its user."""

    def __init__(self, summary: str, detail: str = "") -> None:
        super().__init__(summary)
        self.summary = summary
        self.detail = detail


class NoSlot(PipelineError):
    """There was no slot within the time that the stage was ready to wait. Try again later in the same stage."""


class SlotLost(PipelineError):
    """The slot was taken away. Stop what needed it; ask again in the same stage."""


class PipelineBroken(Exception):
    """{name} is no pipeline: {why}. Correct the module, or the setting HEADGATE_PIPELINES."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(name=name, why=why))


class Link(Protocol):
    """What the context needs from the worker."""

    @property
    def cancelling(self) -> bool: ...
    def say(self, line: str) -> None: ...
    async def acquire(self, slots: Slots) -> bool: ...
    def extend(self) -> None: ...
    def give_up(self, slots: Slots) -> None: ...


@dataclass(frozen=True, slots=True)
class Context:
    """All that a stage is given."""

    job_id: str
    project_id: str
    stage: Stage
    iteration: int
    workspace: Path
    input: Any
    _link: Link

    @property
    def result(self) -> Path:
        """What lies in this folder when the checks have passed is the job's result."""
        return self.workspace / "result"

    @property
    def cancelling(self) -> bool:
        """The stage is to end now. Whoever awaits something is told by `asyncio.CancelledError` as well."""
        return self._link.cancelling

    def log(self, text: str) -> None:
        """Add to the job's log, a line for each line."""
        for line in text.splitlines() or [""]:
            self._link.say(line)

    def provider(self, name: str, *, wait_s: float | None = None, lease_s: float | None = None) -> Slots:
        """One slot of the provider and one of all providers together."""
        return self.slots(providers=(name,), wait_s=wait_s, lease_s=lease_s)

    def group(self, name: str, *, wait_s: float | None = None, lease_s: float | None = None) -> Slots:
        """One slot of the project's group of this name."""
        return self.slots(groups=(name,), wait_s=wait_s, lease_s=lease_s)

    def slots(
        self,
        *,
        providers: Sequence[str] = (),
        groups: Sequence[str] = (),
        wait_s: float | None = None,
        lease_s: float | None = None,
    ) -> Slots:
        """A slot of each in one step, or none. `wait_s`: not set, as long as it takes; 0, only if there is one now."""
        return Slots(self._link, tuple(providers), tuple(groups), wait_s=wait_s, lease_s=lease_s)

    def extend(self) -> None:
        """Let what the stage holds last a whole lease from now: the worker's next heartbeat goes out at once."""
        self._link.extend()


class Slots:
    """Slots of groups, held for the length of an `async with`. Lost ones break its body off with `SlotLost`."""

    def __init__(
        self,
        link: Link,
        providers: tuple[str, ...],
        groups: tuple[str, ...],
        *,
        wait_s: float | None,
        lease_s: float | None,
    ) -> None:
        self.providers, self.groups = providers, groups
        self.wait_s, self.lease_s = wait_s, lease_s
        self._link = link
        self._holder: asyncio.Task[Any] | None = None
        self._lost = False

    async def __aenter__(self) -> Self:
        try:
            granted = await self._link.acquire(self)
        except asyncio.CancelledError:
            self._link.give_up(self)
            raise
        if not granted:
            raise NoSlot(f"no slot of {self} within {self.wait_s} s")
        self._holder = asyncio.current_task()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        holder, self._holder = self._holder, None
        self._link.give_up(self)
        if self._lost and holder is not None and kind is asyncio.CancelledError and not holder.uncancel():
            raise SlotLost(f"the slot of {self} was taken away") from error

    def __str__(self) -> str:
        return ", ".join((*self.providers, *self.groups))

    def lose(self) -> None:
        """The worker says that the slots are gone."""
        if self._holder is not None and not self._lost:
            self._lost = True
            self._holder.cancel()


StageFunction = Callable[[Context], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Step:
    """A stage and the function that does its work."""

    stage: Stage
    run: StageFunction


def stage(name: str) -> Callable[[StageFunction], Step]:
    """Mark the function that does the work of this stage."""
    return lambda function: Step(Stage(name), function)


@dataclass(frozen=True)
class Pipeline:
    """Four steps under a name. `read_input` turns the job's input into what `ctx.input` is; a ValueError of it is told
    to the job's user."""

    name: str
    steps: tuple[Step, ...]
    read_input: Callable[[str], Any] = json.loads

    def __post_init__(self) -> None:
        given = sorted(STAGES.index(step.stage) for step in self.steps)
        if given != list(range(len(STAGES))):
            raise PipelineBroken(self.name, f"it needs each of {', '.join(STAGES)} exactly once")

    def step(self, wanted: Stage) -> Step:
        return next(step for step in self.steps if step.stage is wanted)


def load_pipelines(modules: Iterable[str]) -> dict[str, Pipeline]:
    """The pipelines of these modules, by name. Each module has its own as `pipeline`."""
    found: dict[str, Pipeline] = {}
    for name in modules:
        try:
            pipeline = getattr(importlib.import_module(name), "pipeline", None)
        except ImportError as error:
            raise PipelineBroken(name, str(error)) from error
        if not isinstance(pipeline, Pipeline):
            raise PipelineBroken(name, "it has no `pipeline = Pipeline(...)`")
        if pipeline.name in found:
            raise PipelineBroken(name, f"another module has a pipeline named {pipeline.name} too")
        found[pipeline.name] = pipeline
    return found

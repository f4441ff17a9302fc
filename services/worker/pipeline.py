"""What a pipeline is made of: four stages, each a Python function that is given a context.

    from services.worker.pipeline import Context, Pipeline, stage

    @stage("code")
    async def code(ctx: Context) -> None:
        async with ctx.provider("ollama"):
            ctx.log("writing")

    pipeline = Pipeline("mine", (scaffold, code, deps, checks))

docs/pipelines.md makes a whole one. Owns what an author sees. Runs inside the process of an attempt and nowhere else,
so it knows no server and no clock of the worker; what it needs from outside it asks its link for. A stage may be run
again after an attempt was lost in its middle: it should begin by clearing what it is about to make.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, SecretStr, ValidationError

from headgate_contracts import Stage
from headgate_contracts.vocabulary import STAGES, Fault
from services.worker.sandbox.command import HTTPS, CommandBounds, Ran, SandboxCommand

LONGEST_NAME: Final = 48  # with a stage's name behind it, it is one token
Input = TypeVar("Input", bound=BaseModel)


class PipelineError(Exception):
    """What a stage may raise, and what its context raises. Any other exception fails the job with its name alone."""


class ChecksFailed(PipelineError):
    """The checks found the work wanting: the job goes on with the next cycle, or asks. Only `checks` may say so.

    The summary is shown to the job's user. The next cycle finds the detail, or else the summary, as `ctx.failure`.
    """

    def __init__(self, summary: str, detail: str = "") -> None:
        super().__init__(summary)
        self.summary = summary
        self.detail = detail


class StageFailed(PipelineError):
    """The job cannot be done. Both texts are shown to its user. One that fails by the system's fault, not by what the
    user asked for, gives its place of the day back."""

    def __init__(self, summary: str, detail: str = "", *, fault: Literal[Fault.JOB, Fault.SYSTEM] = Fault.JOB) -> None:
        super().__init__(summary)
        self.summary = summary
        self.detail = detail
        self.fault: Literal[Fault.JOB, Fault.SYSTEM] = fault


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
    def shut(self, slots: Slots, provider: str, *, for_s: float | None) -> None: ...
    async def keep(self) -> None: ...
    async def run(self, command: SandboxCommand, *, bounds: CommandBounds | None) -> Ran: ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider is called, with which model, and as whom. The key is for that call and nothing else."""

    url: str
    model: str
    key: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """All that a stage is given.

    `failure` is what the last failed checks of this job said, in whichever attempt; empty in its first cycle.
    `providers` are those that the worker may call, in the order in which they are preferred.
    """

    job_id: str
    project_id: str
    stage: Stage
    iteration: int
    workspace: Path
    input: Any
    _link: Link
    failure: str = ""
    providers: Mapping[str, Endpoint] = field(default_factory=dict[str, Endpoint])
    _command_s: float = 900.0

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
        """Let what the stage holds last a whole lease from now: the worker's next heartbeat goes out within a moment,
        however often it is asked for."""
        self._link.extend()

    async def run(
        self,
        *argv: str | Path,
        cwd: str = ".",
        network: bool = False,
        ports: Sequence[int] = (HTTPS,),
        reads: Sequence[Path] = (),
        environ: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        bounds: CommandBounds | None = None,
    ) -> Ran:
        """Run a command that nobody vouches for, in the sandbox, until nothing of it is left. Each line that it says is
        added to the log. It may write to the workspace, where it stands in `cwd`, and read the system, the worker's
        Python and `reads`. It has no secret, and no network unless told, and then these ports alone."""
        command = SandboxCommand(
            argv=tuple(map(str, argv)),
            timeout_s=self._command_s if timeout_s is None else timeout_s,
            cwd=cwd,
            network=network,
            ports=tuple(ports),
            environ=environ or {},
            reads=tuple(reads),
        )
        return await self._link.run(command, bounds=bounds)

    async def checkpoint(self) -> None:
        """Keep the workspace as it is now. Where the job is handed over before this stage has ended, the stage begins
        again with it. At the end of a stage that is done anyway."""
        await self._link.keep()


class Slots:
    """Slots of groups, held for the length of an `async with`. Lost ones break its body off with `SlotLost`."""

    def __init__(
        self,
        link: Link,
        providers: tuple[str, ...],
        groups: tuple[str, ...],
        *,
        wait_s: float | None = None,
        lease_s: float | None = None,
        stage_limit: int | None = None,
    ) -> None:
        self.providers, self.groups, self.stage_limit = providers, groups, stage_limit
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

    async def shut(self, provider: str, *, for_s: float | None = None) -> None:
        """The provider has answered that it had enough (429), and wants no call for so long: a number of seconds, or
        what policy says where it named none. All slots are given up, nobody else is let through meanwhile, and this
        comes back when they are granted again. Where that takes too long, the attempt ends here and the job waits in
        the queue."""
        if provider not in self.providers:
            raise ValueError(f"there is no slot of {provider} here, there is one of {self}")
        self._link.shut(self, provider, for_s=for_s)
        if not await self._link.acquire(self):
            raise NoSlot(f"no slot of {self} within {self.wait_s} s")

    def __str__(self) -> str:
        return ", ".join((*self.providers, *self.groups)) or "the stage"

    def lose(self) -> None:
        """The worker says that the slots are gone."""
        if self._holder is not None and not self._lost:
            self._lost = True
            self._holder.cancel()


StageFunction = Callable[[Context], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Step:
    """A stage, the function that does its work, and how many jobs of the pipeline may be in it at once."""

    stage: Stage
    run: StageFunction
    max_concurrent: int | None = None


def stage(name: str, *, max_concurrent: int | None = None) -> Callable[[StageFunction], Step]:
    """Mark the function that does the work of this stage."""
    if max_concurrent is not None and max_concurrent < 1:
        raise ValueError(f"max_concurrent of {name} is {max_concurrent}: use 1 or more, or leave it out")
    return lambda function: Step(Stage(name), function, max_concurrent)


@dataclass(frozen=True)
class Pipeline:
    """Four steps under a name.

    `read_input` turns the job's input into what `ctx.input` is; a ValueError of it is told to the job's user.
    `not_kept` are paths below the workspace that are made again where they are missing, so no checkpoint has them.
    """

    name: str
    steps: tuple[Step, ...]
    read_input: Callable[[str], Any] = json.loads
    not_kept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = sorted(STAGES.index(step.stage) for step in self.steps)
        if given != list(range(len(STAGES))):
            raise PipelineBroken(self.name, f"it needs each of {', '.join(STAGES)} exactly once")
        if not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}", self.name):
            raise PipelineBroken(self.name, f"a name is 1 to {LONGEST_NAME} of A-Z a-z 0-9 _ -")

    def step(self, wanted: Stage) -> Step:
        return next(step for step in self.steps if step.stage is wanted)


def input_as(model: type[Input]) -> Callable[[str], Input]:
    """A `read_input` that wants this model of pydantic, and says which field is wrong, and how."""

    def read(text: str) -> Input:
        try:
            return model.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "input"
            raise ValueError(f"{field}: {first['msg']}") from error

    return read


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

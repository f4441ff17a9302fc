"""What a pipeline is made of: 1 to 20 stages, each a Python function that is given a context.

    from services.worker.pipeline import Context, Pipeline, stage

    @stage("code")
    async def code(ctx: Context) -> None:
        async with ctx.provider("ollama"):
            ctx.log("writing")

    pipeline = Pipeline("mine", (plan, code, checks), again_at="code")

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

from headgate_contracts.events import StageTitle
from headgate_contracts.vocabulary import MOST_STAGES, Fault
from services.worker.rules import PLAIN, KnownPipeline, StageRules
from services.worker.sandbox.command import HTTPS, CommandBounds, Ran, SandboxCommand

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,48}")  # of a pipeline or a stage: it stands in groups, subjects and labels
CallOutcome = Literal["answered", "refused", "busy", "away", "rejected", "too_much"]
Input = TypeVar("Input", bound=BaseModel)


class PipelineError(Exception):
    """What a stage may raise, and what its context raises. Any other exception fails the job with its name alone."""


class ChecksFailed(PipelineError):
    """The checks found the work wanting: the job goes on with the next cycle, or asks. Only the last stage may say so.

    Both texts are shown to the job's user, where it asks whether to go on. The next cycle finds the detail, or else the
    summary, as `ctx.failure`.
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


class TryAgain(StageFailed):
    """The stage failed by something that passes: a server that is away, an answer that cannot be read. It is run again
    as often as its `retries` say, after a pause of at least `after_s`; then the job fails by this."""

    def __init__(
        self,
        summary: str,
        detail: str = "",
        *,
        after_s: float = 0,
        fault: Literal[Fault.JOB, Fault.SYSTEM] = Fault.JOB,
    ) -> None:
        super().__init__(summary, detail, fault=fault)
        self.after_s = after_s


class NoSlot(PipelineError):
    """There was no slot within the time that the stage was ready to wait. Try again later in the same stage."""


class SlotLost(PipelineError):
    """The slot was taken away. Stop what needed it; ask again in the same stage."""


class PipelineBroken(Exception):
    """{name} is no pipeline: {why}. Correct the module, or the setting HEADGATE_PIPELINES."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(name=name, why=why))
        self.why = why


class Link(Protocol):
    """What the context needs from the worker."""

    @property
    def cancelling(self) -> bool: ...
    def say(self, line: str) -> None: ...
    async def acquire(self, slots: Slots) -> bool: ...
    def extend(self) -> None: ...
    def give_up(self, slots: Slots) -> None: ...
    def shut(self, slots: Slots, provider: str, *, for_s: float | None) -> None: ...
    def called(self, call: ModelCall) -> None: ...
    async def keep(self) -> None: ...
    async def run(self, command: SandboxCommand, *, bounds: CommandBounds | None) -> Ran: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A call to a provider that is over, for the job's trace: no word of it, only how many tokens they were."""

    provider: str
    model: str
    took_s: float
    outcome: CallOutcome
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider is called, with which model, and as whom. The key is for that call and nothing else."""

    url: str
    model: str
    key: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """All that a stage is given.

    `tries`: how often this stage has failed already and was run again.
    `failure` is what the last failed checks of this job said, in whichever attempt; empty in its first cycle.
    `providers` are those that the worker may call, in the order in which they are preferred.
    """

    job_id: str
    project_id: str
    stage: str
    iteration: int
    workspace: Path
    input: Any
    _link: Link
    failure: str = ""
    providers: Mapping[str, Endpoint] = field(default_factory=dict[str, Endpoint])
    _command_s: float = 900.0
    tries: int = 0

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

    def called(self, call: ModelCall) -> None:
        """Show a call to a provider in the job's trace."""
        self._link.called(call)

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
    """A stage, what people are told while it runs, the function that does its work, and how many jobs of the pipeline
    may be in it at once; how long it may take, how often it is run again, and after which errors beside `TryAgain`."""

    stage: str
    title: str
    run: StageFunction
    max_concurrent: int | None = None
    rules: StageRules = PLAIN
    retry_on: tuple[type[Exception], ...] = ()


def stage(
    name: str,
    *,
    title: str | None = None,
    max_concurrent: int | None = None,
    timeout_s: float | None = None,
    retries: int = 0,
    backoff_s: tuple[float, float] = (1, 60),
    retry_on: Sequence[type[Exception]] = (),
) -> Callable[[StageFunction], Step]:
    """Mark the function that does the work of this stage. Without a title its name is one.

    A try may take `timeout_s`, waiting for slots included. After `TryAgain`, or an error of `retry_on`, the stage is
    run again up to `retries` times, after pauses that double from the first of `backoff_s` up to the second.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a stage: use 1 to 48 of A-Z a-z 0-9 _ -")
    title = title or name.replace("_", " ").replace("-", " ").strip().capitalize() or name
    if max_concurrent is not None and max_concurrent < 1:
        raise ValueError(f"max_concurrent of {name} is {max_concurrent}: use 1 or more, or leave it out")
    try:
        rules = StageRules(timeout_s=timeout_s, retries=retries, backoff_s=backoff_s)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{first['loc'][0]} of {name}: {first['msg']}") from error
    return lambda function: Step(name, title, function, max_concurrent, rules, tuple(retry_on))


@dataclass(frozen=True)
class Pipeline:
    """1 to 20 steps under a name, in the order in which they run.

    A cycle whose last stage has raised `ChecksFailed` is followed by one that begins with the stage `again_at`, or with
    the first one.
    `read_input` turns the job's input into what `ctx.input` is; a ValueError of it is told to the job's user.
    `not_kept` are paths below the workspace that are made again where they are missing, so no checkpoint has them.
    """

    name: str
    steps: tuple[Step, ...]
    read_input: Callable[[str], Any] = json.loads
    not_kept: tuple[str, ...] = ()
    again_at: str | None = None

    def __post_init__(self) -> None:
        names = [step.stage for step in self.steps]
        if not 1 <= len(names) <= MOST_STAGES:
            raise PipelineBroken(self.name, f"it has {len(names)} stages, and may have 1 to {MOST_STAGES}")
        if len(set(names)) < len(names):
            raise PipelineBroken(self.name, f"two of its stages have one name: {', '.join(names)}")
        if self.again_at is not None and self.again_at not in names:
            raise PipelineBroken(self.name, f"a cycle begins again at {self.again_at}, which is none of its stages")
        if not NAME.fullmatch(self.name):
            raise PipelineBroken(self.name, "a name is 1 to 48 of A-Z a-z 0-9 _ -")

    @property
    def stages(self) -> KnownPipeline:
        """What others are told of them."""
        titles = tuple(StageTitle(name=step.stage, title=step.title) for step in self.steps)
        rules = {step.stage: step.rules for step in self.steps}
        return KnownPipeline(titles=titles, again_at=self.again_at, rules=rules)

    def step(self, wanted: str) -> Step:
        return next(step for step in self.steps if step.stage == wanted)

    def is_last(self, stage: str) -> bool:
        return stage == self.steps[-1].stage


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


MOST_SAID: Final = 500  # of what a module raises


@dataclass(frozen=True, slots=True)
class LoadedPipelines:
    """Those that can run, by name, and why each other module of the list is refused, in words that name it."""

    found: Mapping[str, Pipeline]
    refused: tuple[str, ...]


def load_pipelines(modules: Iterable[str]) -> LoadedPipelines:
    """The pipelines of these modules. Each module has its own as `pipeline`; one that is broken costs no other."""
    found: dict[str, Pipeline] = {}
    refused: list[str] = []
    for name in modules:
        try:
            pipeline = _pipeline_of(name, known=found)
        except PipelineBroken as broken:
            refused.append(str(broken))
        else:
            found[pipeline.name] = pipeline
    return LoadedPipelines(found, tuple(refused))


def _pipeline_of(module: str, *, known: Mapping[str, Pipeline]) -> Pipeline:
    """Raises PipelineBroken, whatever the module raises: it is an author's."""
    try:
        pipeline = getattr(importlib.import_module(module), "pipeline", None)
    except PipelineBroken as broken:
        raise PipelineBroken(module, broken.why) from broken
    except (Exception, SystemExit) as error:
        raise PipelineBroken(module, f"{type(error).__name__}: {error}"[:MOST_SAID]) from error
    if not isinstance(pipeline, Pipeline):
        raise PipelineBroken(module, "it has no `pipeline = Pipeline(...)`")
    if pipeline.name in known:
        raise PipelineBroken(module, f"another module has a pipeline named {pipeline.name} too")
    return pipeline

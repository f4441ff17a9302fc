"""All that a stage is given, and what the context needs from outside, which it asks its link for.

Lives inside the process of an attempt, or of a test, and nowhere else: it knows no server and no clock of the worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeGuard

from pydantic import BaseModel, SecretStr

from headgate_pipeline.commands import HTTPS, CommandBounds, Ran, StageCommand
from headgate_pipeline.errors import NoSlot, SlotLost
from headgate_pipeline.questions import AnswerShape, StageQuestion, stage_question

CallOutcome = Literal["answered", "refused", "busy", "away", "rejected", "too_much", "broken_off"]


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
    async def ask(self, question: StageQuestion) -> Any: ...
    def progress(self, fraction: float, message: str) -> None: ...
    async def run(self, command: StageCommand, *, bounds: CommandBounds | None) -> Ran: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A call to a provider that is over: no word of it, only how many tokens they were. `cached_tokens` are those of
    `input_tokens` that the provider still had."""

    provider: str
    model: str
    took_s: float
    outcome: CallOutcome
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


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
    `failure` is what the last failed checks of this job said, in whichever attempt; empty in its first iteration.
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
        """The stage is to end now. What it awaits then raises `asyncio.CancelledError`, too."""
        return self._link.cancelling

    def log(self, text: str) -> None:
        """Add to the job's log, a line for each line."""
        for line in text.splitlines() or [""]:
            self._link.say(line)

    def progress(self, fraction: float, message: str = "") -> None:
        """Show how far the stage is, from 0 to 1, and in words. Often is fine: at most two a second are passed on."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress is from 0 to 1, not {fraction}")
        self._link.progress(float(fraction), message)

    async def ask(
        self,
        text: str,
        *,
        choices: Sequence[str] | None = None,
        schema: AnswerShape | None = None,
        key: str | None = None,
    ) -> Any:
        """What the job's user answers: one of the choices, what the JSON Schema wants (an instance, where a model of
        pydantic says it), or a text.

        Where the question of this key was answered before, in whichever stage or attempt, the answer is here at once.
        Else the workspace is kept and the attempt ends here, its slots are free, and once it is answered the stage
        begins again: what it does before it asks, it does twice.
        """
        answer = await self._link.ask(stage_question(text, choices=choices, schema=schema, key=key))
        return schema.model_validate(answer) if _is_model(schema) else answer

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
        command = StageCommand(
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
        """Count a call to a provider: in the job's own events, in its trace, in the worker's metrics."""
        self._link.called(call)

    async def checkpoint(self) -> None:
        """Keep the workspace as it is now. Where the job is handed over before this stage has ended, the stage begins
        again with it. At the end of a stage that is done anyway."""
        await self._link.keep()


def _is_model(schema: AnswerShape | None) -> TypeGuard[type[BaseModel]]:
    return isinstance(schema, type)


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

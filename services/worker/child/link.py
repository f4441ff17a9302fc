"""What the process of an attempt tells its worker and asks it, and what it makes of the words that come back.

Owns which answer belongs to which question: orders are taken one by one, answers about slots and the word that work is
stored go to who waits for them in the middle of a stage.
"""

import asyncio
import itertools
import json
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any, Final, Literal

from headgate_contracts.vocabulary import Fault
from headgate_pipeline import CommandBounds, ModelCall, Ran, Slots, StageFailed
from headgate_pipeline.commands import StageCommand
from headgate_pipeline.questions import StageQuestion
from services.worker.child.folder import Folder
from services.worker.child.loop import StageLoop
from services.worker.child.messages import (
    MAX_SHUT_MS,
    MAX_WAIT_MS,
    MOST_TOKENS,
    Acquire,
    AnswerNotice,
    Ask,
    ChildOrder,
    CommandEnded,
    Extend,
    GiveUp,
    LeaseNotice,
    ModelCalled,
    OutputLine,
    Progressed,
    Shut,
    StoreReady,
    StoreTaken,
    ToChild,
    ToolName,
    cut,
    sayable,
)
from services.worker.child.packing import ResultTooLarge
from services.worker.sandbox.command import CommandBounds as SandboxBounds
from services.worker.sandbox.command import SandboxCommand
from services.worker.sandbox.running import Sandbox

PROGRESS_EVERY_S: Final = 0.5
PROGRAMS: Final[dict[str, ToolName]] = {"python": "python", "pytest": "pytest", "ruff": "ruff", "uv": "uv"}
LeaseState = Literal["granted", "full", "lost"]


@dataclass(slots=True)
class _Claim:
    """A lease as this process knows it."""

    number: int
    answer: asyncio.Future[LeaseState]


class ParentLink:
    """The worker, as the process of an attempt sees it."""

    def __init__(self, channel: socket.socket, loop: type[StageLoop] = StageLoop) -> None:
        self.loop = loop(channel, self.take)
        self.folder: Folder | None = None
        self.sandbox: Sandbox | None = None
        self.lost_slots = False
        self.asks = False
        self._questions: dict[int, asyncio.Future[AnswerNotice]] = {}
        self._orders = deque[ChildOrder]()
        self._numbers: Iterator[int] = itertools.count(1)
        self._claims: dict[Slots, _Claim] = {}
        self._progress: Progressed | None = None
        self._progress_timer: asyncio.TimerHandle | None = None
        self._progress_next_s = 0.0
        self._keeping = asyncio.Lock()
        self._stored = asyncio.Event()

    @property
    def cancelling(self) -> bool:
        return self.loop.cancelling

    # ── between two stages ────────────────────────────────────────────────────

    def next_order(self) -> ChildOrder | None:
        """Wait for it; null once the worker has hung up."""
        while not (self._orders or self.loop.hung_up):
            self.loop.wait_for_words()
        return self._orders.popleft() if self._orders else None

    def keep_now(self) -> None:
        """Until what is to outlive the attempt is stored."""
        if self._keeping.locked():  # by what the stage has left running
            self.loop.run(self.keep())
        elif packed := self._packed():
            self._stored.clear()
            self.loop.answer(packed)
            while not (self._stored.is_set() or self.loop.hung_up):
                self.loop.wait_for_words()

    def leave(self) -> None:
        """Nothing of the attempt stays: no task that its stages have left running, no slot that they asked for."""
        self.loop.end_tasks()
        self.folder = self.sandbox = None
        self.lost_slots = self.asks = False
        self._claims.clear()
        self._questions.clear()

    # ── in a stage ────────────────────────────────────────────────────────────

    def say(self, line: str) -> None:
        self.loop.send(OutputLine(line=cut(sayable(line))))

    async def acquire(self, slots: Slots) -> bool:
        number = next(self._numbers)
        claim = self._claims[slots] = _Claim(number, asyncio.get_running_loop().create_future())
        self.loop.send(
            Acquire(
                lease=number,
                providers=slots.providers,
                groups=slots.groups,
                stage_limit=slots.stage_limit,
                wait_ms=_ms(slots.wait_s),
                ttl_ms=_ms(slots.lease_s),
            )
        )
        if await claim.answer == "granted":
            return True
        del self._claims[slots]
        return False

    def extend(self) -> None:
        self.loop.send(Extend())

    def give_up(self, slots: Slots) -> None:
        claim = self._claims.pop(slots, None)
        if claim is not None:
            self.loop.send(GiveUp(lease=claim.number))

    def shut(self, slots: Slots, provider: str, *, for_s: float | None) -> None:
        claim = self._claims.pop(slots, None)
        if claim is not None:
            for_ms = None if for_s is None else min(MAX_SHUT_MS, max(0, round(for_s * 1000)))
            self.loop.send(Shut(lease=claim.number, provider=provider, for_ms=for_ms))

    async def keep(self) -> None:
        """Until what is to outlive the attempt is stored; what else runs in the stage goes on."""
        async with self._keeping:
            if packed := await asyncio.to_thread(self._packed):
                self._stored.clear()
                self.loop.send(packed)
                await self._stored.wait()

    async def ask(self, question: StageQuestion) -> Any:
        """The answer, where there is one; else the stage ends here, whatever it does meanwhile."""
        number = next(self._numbers)
        answer = self._questions[number] = asyncio.get_running_loop().create_future()
        self.loop.send(
            Ask(
                number=number,
                key=question.key,
                text=sayable(question.text),
                choices=tuple(map(sayable, question.choices)),
                answer_schema=question.schema,
            )
        )
        told = await answer
        if told.state == "answered":
            return json.loads(told.words)
        if told.state == "wrong":
            raise StageFailed("The stage asks what nobody can answer.", told.words, fault=Fault.SYSTEM)
        self.asks = True
        self.loop.break_off()
        return await asyncio.Event().wait()

    def progress(self, fraction: float, message: str) -> None:
        """Twice a second: what comes between is told when its time has come, if nothing newer has."""
        self._progress = Progressed(fraction=fraction, message=cut(sayable(" ".join(message.split())), max_chars=200))
        loop = asyncio.get_running_loop()
        wait_s = self._progress_next_s - loop.time()
        if wait_s <= 0:
            self._tell_progress()
        elif self._progress_timer is None:
            self._progress_timer = loop.call_later(wait_s, self._tell_progress)

    def progress_now(self) -> None:
        """The stage is over: what waits is told."""
        if self._progress_timer is not None:
            self._progress_timer.cancel()
            self._tell_progress()

    def _tell_progress(self) -> None:
        self._progress_timer = None
        if self._progress is not None:
            self._progress_next_s = asyncio.get_running_loop().time() + PROGRESS_EVERY_S
            self.loop.send(self._progress)
            self._progress = None

    async def run(self, command: StageCommand, *, bounds: CommandBounds | None) -> Ran:
        assert self.sandbox is not None
        began_s = time.monotonic()
        ran = await self.sandbox.run(
            _for_the_sandbox(command),
            on_line=self.say,
            bounds=None if bounds is None else SandboxBounds.of(bounds),
            drained=self.loop.drained,
        )
        self.loop.send(
            CommandEnded(
                program=_program(command.argv[0]),
                took_ms=_ms_since(began_s),
                network=command.network,
                ended_by=ran.ended_by,
                exit_code=ran.exit_code,
            )
        )
        return Ran(ran.exit_code, ran.ended_by, ran.output_tail)

    def called(self, call: ModelCall) -> None:
        self.loop.send(
            ModelCalled(
                provider=call.provider,
                model=call.model[:200],
                took_ms=min(MAX_WAIT_MS, round(call.took_s * 1000)),
                outcome=call.outcome,
                input_tokens=_tokens(call.input_tokens),
                output_tokens=_tokens(call.output_tokens),
                cached_tokens=_tokens(call.cached_tokens),
            )
        )

    def _packed(self) -> StoreReady | None:
        """Null where there is nothing new to keep."""
        assert self.folder is not None
        try:
            return self.folder.pack()
        except ResultTooLarge as large:
            raise StageFailed("The workspace is too large to keep.", str(large)) from large

    # ── what comes back ──────────────────────────────────────────────────────────

    def take(self, word: ToChild) -> None:
        match word:
            case LeaseNotice():
                self._lease_told(word)
            case StoreTaken():
                self._stored.set()
            case AnswerNotice(number=number):
                if number in self._questions and not self._questions[number].done():
                    self._questions.pop(number).set_result(word)
            case order:
                self._orders.append(order)

    def _lease_told(self, told: LeaseNotice) -> None:
        for slots, claim in tuple(self._claims.items()):
            if claim.number != told.lease:
                continue
            if not claim.answer.done():
                claim.answer.set_result(told.state)
            elif told.state == "lost":
                self.lost_slots = True
                slots.lose()


def _for_the_sandbox(command: StageCommand) -> SandboxCommand:
    """In its own words. Raises ValueError where it may not be asked for."""
    return SandboxCommand(**{each.name: getattr(command, each.name) for each in fields(command)})


def _program(path: str) -> ToolName:
    """Pipelines of others run what they like, and its name may be anything."""
    return PROGRAMS.get(PurePath(path).name.rstrip("0123456789."), "other")


def _tokens(said: int | None) -> int | None:
    """What a provider counts is its own word."""
    return said if said is not None and 0 <= said <= MOST_TOKENS else None


def _ms_since(began_s: float) -> int:
    return min(MAX_WAIT_MS, round((time.monotonic() - began_s) * 1000))


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)

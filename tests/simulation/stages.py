"""The process of an attempt, played: it says what a real one says, and what it really did is written down here.

A pipeline of an author's own goes through the same four, each under another name, or through two of them, or one.

    input   {"code": {"s": 1.5, "slots": ["db"], "limit": 2, "provider": "ollama", "shut_ms": 2000, "fails": 1,
              "stumbles": 2, "after_s": 3.0}, ...}

A stage lasts `s` seconds, inside the slots that it asks for. What stands in `Deeds` is what an observer on the machine
would have seen: when it ran, and from when to when it was inside a slot. It outlives a pause of its worker, not its
end.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any, Final, TypeVar

from headgate_contracts.events import StageTitle
from headgate_contracts.vocabulary import Fault
from headgate_pipeline.rules import KnownPipeline
from libs.twins.virtual import Process, VirtualLoop
from services.worker.child.messages import (
    Acquire,
    AnswerNotice,
    Ask,
    Begin,
    GiveUp,
    LeaseNotice,
    Pack,
    Packed,
    Restore,
    Restored,
    RunStage,
    Shut,
    StageEnded,
    StoreReady,
    StoreTaken,
)
from services.worker.outcomes import ChecksFailed, Failed, Finished, LeftOpen, SaidOutcome
from tests.fixtures.audit import Execution
from tests.simulation.deeds import AnswerHeard, Deeds, Holding, TryRun, Wait
from tests.simulation.dice import Dice
from tests.simulation.stumbles import TRIED

PIPELINES: Final = {
    "build": KnownPipeline(
        titles=tuple(StageTitle(name=name, title=name) for name in ("scaffold", "code", "deps", "checks")),
        rules={"code": TRIED},
    ),
    "own": KnownPipeline(
        titles=tuple(StageTitle(name=name, title=name) for name in ("fetch", "train", "pack", "judge")),
        again_at="train",
        rules={"train": TRIED},
    ),
    "short": KnownPipeline(
        titles=tuple(StageTitle(name=name, title=name) for name in ("make", "look")),
        again_at="make",
        rules={"make": TRIED},
    ),
    "single": KnownPipeline(titles=(StageTitle(name="do", title="do"),), rules={"do": TRIED}),
}
PLAYED_AS: Final = {
    own.name: stage.name for own, stage in zip(PIPELINES["own"].titles, PIPELINES["build"].titles, strict=True)
} | {"make": "code", "look": "checks", "do": "code"}
KILLED, TERMINATED = -9, -15
HANGS_UP_S = 0.05
LOST_SLOT = "lost a slot that it needed"
LAST: Final = {"checks", "judge", "look", "do"}
T = TypeVar("T")


class Mailbox:
    """Messages that were sent and not received yet. `None` is the end."""

    def __init__(self) -> None:
        self._said: deque[Any] = deque()
        self._more = asyncio.Event()

    def say(self, word: object) -> None:
        self._said.append(word)
        self._more.set()

    async def receive(self) -> Any:
        while not self._said:
            self._more.clear()
            await self._more.wait()
        return self._said.popleft()


class Play:
    """One attempt's process, as the worker sees it."""

    def __init__(self, name: str, process: Process, *, loop: VirtualLoop, dice: Dice, deeds: Deeds, up_ms: int) -> None:
        self.name = name
        self.code: int | None = None
        self._process = process
        self._loop = loop
        self._dice = dice
        self._deeds = deeds
        self._up_ms = up_ms
        self._to_child, self._to_parent = Mailbox(), Mailbox()
        self._gone = asyncio.Event()
        self._began_s = loop.time()
        self._until: asyncio.TimerHandle | None = None
        self._holding: Holding | None = None
        self._done: list[str] = []
        self._leases = 0
        self._work = process.start(self._live())
        self._work.add_done_callback(lambda _: self._over(), context=Context())

    # ── the worker's side ─────────────────────────────────────────────────────

    async def send(self, message: object) -> None:
        self._process.call(lambda: self._to_child.say(message))

    async def receive(self) -> Any:
        await asyncio.sleep(0)
        return await self._to_parent.receive()

    def prolong(self, until_ms: int) -> None:
        """It lives until then at the longest, whatever becomes of its worker."""
        if self._until is not None:
            self._until.cancel()
        at_s = max(self._loop.time(), (until_ms - self._up_ms) / 1000)
        self._until = self._loop.call_at(at_s, lambda: self._kill(KILLED), context=Context())

    async def end(self, *, grace_s: float = 0.0) -> None:
        if grace_s:
            await asyncio.sleep(min(grace_s, self._dice.between(f"{self.name} ends", 0.0, 2 * grace_s)))
        self._kill(TERMINATED if grace_s else KILLED)
        await self._gone.wait()

    async def ended(self) -> int | None:
        await self._gone.wait()
        return self.code

    # ── its own ───────────────────────────────────────────────────────────────

    async def _live(self) -> None:
        begin: Begin = await self._to_child.receive()
        asked: dict[str, dict[str, Any]] = json.loads(begin.input)
        while True:
            match await self._to_child.receive():
                case Restore():
                    self._done = json.loads(_read(begin.store))
                    self._to_parent_say(Restored())
                case RunStage() as order:
                    await self._run(order, asked.get(PLAYED_AS.get(order.stage, order.stage), {}))
                case Pack():
                    content = json.dumps(self._done).encode()
                    self._to_parent_say(Packed(result=content))
                case _:
                    pass

    async def _run(self, order: RunStage, asked: dict[str, Any]) -> None:
        ended = await self._outcome(order, asked)
        if isinstance(ended, Finished | ChecksFailed):
            self._done.append(f"{order.iteration} {order.stage}")
            if isinstance(ended, ChecksFailed) or order.stage not in LAST:
                self._to_parent_say(StoreReady(content=json.dumps(self._done).encode()))
                while not isinstance(await self._to_child.receive(), StoreTaken):
                    pass
        self._to_parent_say(StageEnded(outcome=ended))

    async def _outcome(self, order: RunStage, asked: dict[str, Any]) -> SaidOutcome:
        run = TryRun(*self._who, order.iteration, order.stage, order.tries, self._loop.time())
        self._deeds.tries.append(run)
        if not await self._are_answered(order.stage, asked.get("questions", 0)):
            return LeftOpen()
        names = (*asked.get("slots", ()), *((f"llm:{asked['provider']}",) if "provider" in asked else ()))
        if names:
            failed = await self._inside(names, asked)
            if failed is not None:
                return failed
        else:
            await asyncio.sleep(asked.get("s", 0.1))
        if order.tries < asked.get("stumbles", 0):
            return Failed("It stumbled, as asked.", again_after_s=asked["after_s"])
        if asked.get("breaks"):
            return Failed("It broke, as it was told to.")
        if order.iteration <= asked.get("fails", 0):
            return ChecksFailed("They failed, as they were told to.")
        return Finished()

    async def _are_answered(self, stage: str, questions: int) -> bool:
        for number in range(1, questions + 1):
            key = f"{stage}-{number}"
            self._to_parent_say(Ask(number=number, key=key, text=f"Question {number}?"))
            while not isinstance(told := await self._to_child.receive(), AnswerNotice):
                pass
            if told.state != "answered":
                return False
            self._deeds.answers.append(AnswerHeard(*self._who, key, json.loads(told.words)))
        return True

    async def _inside(self, names: tuple[str, ...], asked: dict[str, Any]) -> Failed | None:
        number = self._leases = self._leases + 1
        providers = tuple(name.removeprefix("llm:") for name in names if name.startswith("llm:"))
        groups = tuple(name for name in names if not name.startswith("llm:"))
        self._to_parent_say(Acquire(lease=number, providers=providers, groups=groups))
        if await self._turn(number, names) != "granted":
            return Failed(f"It {LOST_SLOT}.", fault=Fault.SYSTEM)
        self._holding = Holding(*self._who, names, self._loop.time())
        self._deeds.holdings.append(self._holding)
        try:
            async with asyncio.timeout(asked.get("s", 0.1)):
                await self._told(number)
            return Failed(f"It {LOST_SLOT}.", fault=Fault.SYSTEM)
        except TimeoutError:
            pass
        finally:
            self._let_go()
        if "shut_ms" in asked and self._who[0] not in self._deeds.shut and providers:
            self._deeds.shut.add(self._who[0])
            self._to_parent_say(Shut(lease=number, provider=providers[0], for_ms=asked["shut_ms"]))
            return await self._inside(names, asked)  # as a client does after a 429
        self._to_parent_say(GiveUp(lease=number))
        return None

    async def _turn(self, number: int, names: tuple[str, ...]) -> str:
        wait = Wait(*self._who, names, self._loop.time())
        self._deeds.waits.append(wait)
        try:
            return await self._told(number)
        finally:
            wait.ended_s = self._loop.time()

    async def _told(self, number: int) -> str:
        while True:
            told = await self._to_child.receive()
            if isinstance(told, LeaseNotice) and told.lease == number:
                return told.state

    @property
    def _who(self) -> tuple[str, int]:
        job, _, attempt = self.name.rpartition(":")
        return job, int(attempt)

    def _to_parent_say(self, word: object) -> None:
        self._to_parent.say(word)

    def _let_go(self) -> None:
        if self._holding is not None:
            self._holding.ended_s = self._loop.time()
            self._holding = None

    def _kill(self, code: int) -> None:
        if not self._work.done():
            self.code = code
            self._work.cancel()

    def _over(self) -> None:
        self._let_go()
        if self._until is not None:
            self._until.cancel()
        self._deeds.executions.append(Execution(*self._who, self._began_s, self._loop.time()))
        self._gone.set()
        self._to_parent.say(None)


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


class Stages:
    """The spawner of a worker."""

    pipelines = PIPELINES

    def __init__(self, process: Process, make: Callable[[str, Process], Play]) -> None:
        self._process = process
        self._make = make

    async def spawn(self, name: str, *, until_ms: int) -> Play:
        play = self._make(name, self._process.child(f"{self._process.name}/{name}"))
        play.prolong(until_ms)
        return play

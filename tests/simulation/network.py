"""Messages under way: each arrives when it does, at a server that does not know what became of its sender.

ask ──there──► act at the server ──back──► answer
 │  lost: nothing happens   late: it happens when nobody waits any more   unheard: it happens, and nobody says so
 │  held: it happens once the way is free again, with all that was sent meanwhile
 └── the time to wait is over: `Silent`
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, Final, TypeVar

from libs.twins.virtual import Process, VirtualLoop
from tests.simulation.dice import Dice

T = TypeVar("T")
NEAR_S: Final = (0.0002, 0.003)
SLOW_S: Final = 1.5  # how much longer a message may take at most, where everything is slow
LATE_S = {"log": (2.5, 45.0), "view": (5.5, 9.0)}  # after the time to wait is over
LATE_ELSEWHERE_S = (2.5, 6.0)


class Way(Enum):
    """What becomes of one message."""

    ARRIVES = auto()
    LOST = auto()
    UNHEARD = auto()
    LATE = auto()
    TWICE = auto()
    HELD = auto()


TROUBLED = (Way.LOST, Way.UNHEARD, Way.LATE, Way.TWICE)


class Silent(Exception):
    """Nobody has answered in time."""


class Unconnected(Exception):
    """There is no connection: nothing was sent."""


@dataclass(slots=True)
class Trouble:
    """What goes wrong between somebody and a server, for a while."""

    who: str  # a process, or `*`
    server: str
    lossy: float = 0.0  # the share of messages that something happens to
    late: float = 0.0  # the share of messages that come when nobody waits for an answer any more
    slow_s: float = 0.0  # how much longer a message may take, each way
    cut: bool = False
    mute: bool = False  # nothing is answered, as where a machine has lost its way back
    deaf: bool = False  # nothing arrives, and nobody says so
    holds_until_s: float | None = None  # what is sent meanwhile arrives then, and nobody says so

    def concerns(self, who: str, server: str) -> bool:
        return self.who in ("*", who) and self.server in ("*", server)


class Network:
    """All that is under way, and all that is wrong with it now."""

    def __init__(self, loop: VirtualLoop, dice: Dice) -> None:
        self.loop = loop
        self.dice = dice
        self.troubles: list[Trouble] = []
        self.ambushes: dict[tuple[str, str], Callable[[], None]] = {}  # who, and where it is lain in wait for
        self._nobody = Context()

    def troubles_of(self, who: str, server: str) -> Sequence[Trouble]:
        if not self.troubles:
            return ()
        return [trouble for trouble in self.troubles if trouble.concerns(who, server)]

    def later(self, delay_s: float, act: Callable[..., Any], *args: object) -> None:
        """In nobody's name: whatever becomes of the sender."""
        self.loop.call_later(delay_s, act, *args, context=self._nobody)


class Link:
    """One process's way to one server."""

    def __init__(self, network: Network, process: Process, server: str) -> None:
        self.process = process
        self._network = network
        self._server = server
        self._name = f"{process.name} to {server}"
        self._delay = f"{self._name} delay"

    @property
    def connected(self) -> bool:
        return not self._network.troubles or not any(trouble.cut for trouble in self._troubles())

    def delay_s(self, share: float = 1.0) -> float:
        """One way."""
        dice = self._network.dice
        low_s, high_s = NEAR_S
        near_s = low_s + (high_s - low_s) * dice.throw(self._delay)
        if not self._network.troubles:
            return share * near_s
        slow_s = max((each.slow_s for each in self._troubles()), default=0.0)
        return share * (near_s + (slow_s * dice.throw(f"{self._name} slow") if slow_s else 0.0))

    @property
    def is_watched(self) -> bool:
        """Whether anybody lies in wait for anyone."""
        return bool(self._network.ambushes)

    async def reached(self, place: str) -> None:
        """Where somebody may lie in wait: between two awaits that matter."""
        ambush = self._network.ambushes.pop((self.process.name, place), None)
        if ambush is not None:
            ambush()
            await asyncio.sleep(0)

    def fate(self) -> Way:
        if not self._network.troubles:
            return Way.ARRIVES
        dice, troubles = self._network.dice, self._troubles()
        if not troubles:
            return Way.ARRIVES
        if any(trouble.deaf for trouble in troubles):
            return Way.LOST
        if any(trouble.holds_until_s for trouble in troubles):
            return Way.HELD
        if any(trouble.mute for trouble in troubles):
            return dice.one_of(f"{self._name} mute", (Way.LOST, Way.UNHEARD))
        late = max(each.late for each in troubles)
        if late and dice.chance(f"{self._name} late", late):
            return Way.LATE
        lossy = max(each.lossy for each in troubles)
        if not lossy or not dice.chance(f"{self._name} fate", lossy):
            return Way.ARRIVES
        return dice.one_of(f"{self._name} way", TROUBLED)

    async def ask(self, act: Callable[[], T], *, within_s: float) -> T:
        """What the server answers. Its own exceptions are answers too."""
        self.process.require_life()
        if not self.connected:
            await asyncio.sleep(0)
            raise Unconnected
        loop = self._network.loop
        answer: asyncio.Future[T] = loop.create_future()
        there_s = self.carry(partial(self._arrive, act, answer))
        if (
            there_s is not None and there_s + NEAR_S[1] + SLOW_S < within_s
        ):  # nothing can be so slow that it comes too late
            try:
                return await answer
            finally:
                self.process.require_life()
        patience = loop.call_later(within_s, _give_up, answer)  # as this process: a pause holds it back
        try:
            return await answer
        finally:
            patience.cancel()
            self.process.require_life()

    def tell(self, act: Callable[[], object]) -> None:
        """Nobody waits for an answer."""
        if self.process.alive and self.connected and self.fate() in (Way.ARRIVES, Way.UNHEARD):
            self._network.later(self.delay_s(), act)

    def carry(self, arrive: Callable[[Way], object]) -> float | None:
        """There, whatever becomes of it; an answer comes back where it is told that it arrives. After how long it is
        there; null where that is not sure."""
        later = self._network.later
        match self.fate():
            case Way.ARRIVES:
                there_s = self.delay_s()
                later(there_s, arrive, Way.ARRIVES)
                return there_s
            case Way.UNHEARD:
                later(self.delay_s(), arrive, Way.UNHEARD)
            case Way.LATE:
                late_s = LATE_S.get(self._server, LATE_ELSEWHERE_S)
                later(self._network.dice.between(f"{self._name} late", *late_s), arrive, Way.UNHEARD)
            case Way.HELD:
                later(self._held_s(), arrive, Way.UNHEARD)
            case Way.TWICE:
                later(self.delay_s(), arrive, Way.UNHEARD)
                later(self.delay_s(2.0), arrive, Way.ARRIVES)
            case Way.LOST:
                pass
        return None

    def _arrive(self, act: Callable[[], T], answer: asyncio.Future[T], way: Way) -> None:
        result, fault = _outcome_of(act)
        if way is Way.ARRIVES:
            self._network.later(self.delay_s(), _answer, answer, result, fault)

    def _held_s(self) -> float:
        return max(trouble.holds_until_s or 0.0 for trouble in self._troubles()) - self._network.loop.time()

    def _troubles(self) -> Sequence[Trouble]:
        return self._network.troubles_of(self.process.name, self._server)


def _answer(answer: asyncio.Future[Any], result: object, fault: Exception | None) -> None:
    if answer.done():
        return
    if fault is None:
        answer.set_result(result)
    else:
        answer.set_exception(fault)


def _give_up(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(Silent())


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What a twin answers: it waits for nobody."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise AssertionError("a twin that waits cannot answer in one moment")


def _outcome_of(act: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return act(), None
    except Exception as fault:  # noqa: BLE001 - what the server says, whatever it is
        return None, fault

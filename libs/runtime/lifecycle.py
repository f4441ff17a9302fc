"""The life of a process: its parts start in order and stop in reverse, and everybody can see what is missing.

Owns `Service` (the one place where signals arrive and where a fault of any part ends up), `Loop` (a task with start and
stop) and `Health` (what must be there, and is not). Refuses to restart anything: a process that lost a part ends with
1, and its supervisor starts it again.
"""

import asyncio
import gc
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import uvloop

logger = logging.getLogger(__name__)

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
LAST_WORD_S: Final = 0.2  # for each part whose turn comes when the grace is over: enough to close a socket

P = TypeVar("P", bound="Part")


class Part(Protocol):
    """Something with a life. Both may be called twice, and `stop` before `start`."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@runtime_checkable
class Watched(Protocol):
    """A part that can end by itself. `ended` raises what ended it."""

    def ended(self) -> Coroutine[Any, Any, None]: ...


@dataclass(frozen=True, slots=True)
class Missing:
    name: str
    why: str


class Health:
    """What must be there before a service is ready, by name. All of it is missing at first.

    A change is said once in the log, by whatever part and however often it is reported. `notes` are what a probe that
    asks whether it is ready has to know besides.
    """

    def __init__(self, *needs: str) -> None:
        self._notes: dict[str, tuple[str, ...]] = {}
        self._missing = dict.fromkeys(needs, "not there yet")
        self._said: set[str] = set()

    @property
    def ready(self) -> bool:
        return not self._missing

    @property
    def missing(self) -> tuple[Missing, ...]:
        return tuple(Missing(name, why) for name, why in self._missing.items())

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for notes in self._notes.values() for note in notes)

    def note(self, about: str, *notes: str) -> None:
        """These, in place of what was noted of it before."""
        self._notes[about] = notes

    def is_there(self, name: str) -> None:
        self._missing.pop(name, None)
        if name in self._said:
            self._said.remove(name)
            logger.info("%s is there", name)

    def is_missing(self, name: str, why: str) -> None:
        self._missing[name] = why
        if name not in self._said:
            self._said.add(name)
            logger.warning("waiting for %s: %s", name, why)


class Loop:
    """A task with a life: `body` runs from `start` until `stop` or its own end, and never twice at a time.

    `body` gets an event that is set when it should come to an end. It has `patience_s` for that, then it is cancelled.
    """

    def __init__(
        self, name: str, body: Callable[[asyncio.Event], Coroutine[Any, Any, None]], *, patience_s: float = 0.0
    ) -> None:
        self.name = name
        self._body = body
        self._patience_s = patience_s
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # starts and stops go one after the other, in the order they were called

    async def start(self) -> None:
        async with self._turn:
            if self._task is not None and self._stopping.is_set():
                await asyncio.wait([self._task])  # the task that stopped it was cancelled before it had ended
            if self._task is None or self._task.done():
                self._stopping = asyncio.Event()
                self._task = asyncio.create_task(self._body(self._stopping), name=self.name)

    async def stop(self) -> None:
        """Until the body has ended. Called by the body itself it only asks."""
        if self._task is not None and asyncio.current_task() is self._task:
            self._stopping.set()
            return
        async with self._turn:
            if self._task is not None:
                self._stopping.set()
                await self._end(self._task)

    async def ended(self) -> None:
        """Until the body has ended; raises the fault that ended it. Being stopped is none."""
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.result()

    async def _end(self, task: asyncio.Task[None]) -> None:
        try:
            await asyncio.wait([task], timeout=self._patience_s)
        finally:
            task.cancel()  # the patience is over, or the caller of `stop` was cancelled
        await asyncio.wait([task])


class Service:
    """One process, from its composition to its exit code.

        SIGTERM, SIGINT, a fault
               │
               ▼
        composition still under way? it is cancelled (it may be waiting for a server that is away)
               │
               ▼
        the parts, last first, all of them within grace_s:
          gate          /readyz says no, streams get their last bytes, requests end, new ones are sent elsewhere
          loops         are asked to end, then cancelled
          clients       are closed: no part uses them any more
          HTTP server   answers /livez and /readyz until here; behind a gateway on old connections alone
               │
               ▼
        exit code 0, or 1 after a fault

    A second signal ends the grace at once.
    """

    def __init__(self, name: str, *, grace_s: float = 8.0) -> None:  # under the 10 s after which it would be killed
        self.name = name
        self._grace_s = grace_s
        self._parts: list[Part] = []
        self._watches: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._failed = False

    def live(self, compose: Callable[["Service"], Coroutine[Any, Any, None]]) -> int:
        """The whole of a process, in a loop of its own. What was imported lasts, and is not looked at any more."""
        gc.freeze()
        gc.enable()  # a fork server switches it off
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self.run(compose))

    async def run(self, compose: Callable[["Service"], Coroutine[Any, Any, None]]) -> int:
        """Composes, lives until it is told to stop or a part fails, stops, and gives the exit code."""
        with self._signals():
            composing = self._watch("composition", compose(self))
            await self._stopping.wait()
            composing.cancel()
            await asyncio.wait([composing])
            await self._stop_parts()
        return 1 if self._failed else 0

    async def start(self, part: P) -> P:
        """Starts a part, stops it in its turn, and stops the service when the part ends with a fault."""
        self._parts.append(part)  # first: `stop` is safe before `start`, and a start may fail half-way
        await part.start()
        if isinstance(part, Watched):
            self._watch(_name(part), part.ended())
        return part

    def closing(self, what: str, close: Callable[[], Awaitable[object]]) -> None:
        """For what is there already: it is closed in its turn."""
        self._parts.append(_Closing(what, close))

    def stop(self) -> None:
        """Asks for the end; asked twice it no longer waits for anybody."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    def _watch(self, what: str, life: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        watch = asyncio.create_task(self._live(what, life), name=f"watch {what}")
        self._watches.append(watch)
        return watch

    async def _live(self, what: str, life: Coroutine[Any, Any, None]) -> None:
        """The outermost loop of the process: here every unexpected fault ends up."""
        try:
            await life
        except Exception:
            logger.exception("%s stops: %s failed", self.name, what)
            self._failed = True
            self._stopping.set()

    async def _stop_parts(self) -> None:
        hurry = asyncio.create_task(self._hurry.wait())
        give_up_at = asyncio.get_running_loop().time() + self._grace_s
        while self._parts:
            await self._stop_part(self._parts.pop(), give_up_at=give_up_at, hurry=hurry)
        for task in (hurry, *self._watches):
            task.cancel()
        await asyncio.wait([hurry, *self._watches])

    async def _stop_part(self, part: Part, *, give_up_at: float, hurry: asyncio.Task[bool]) -> None:
        stopping = asyncio.create_task(self._live(f"the end of {_name(part)}", part.stop()))
        left_s = max(give_up_at - asyncio.get_running_loop().time(), LAST_WORD_S)
        await asyncio.wait([stopping, hurry], timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            await asyncio.wait([stopping], timeout=LAST_WORD_S)
        if not stopping.done():
            logger.error("%s did not stop in time", _name(part))
            stopping.cancel()

    @contextmanager
    def _signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._told, number)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _told(self, number: signal.Signals) -> None:
        logger.info("%s stops: %s", self.name, number.name)
        self.stop()


@dataclass(frozen=True, slots=True)
class _Closing:
    name: str
    close: Callable[[], Awaitable[object]]

    async def start(self) -> None: ...

    async def stop(self) -> None:
        await self.close()


def _name(part: object) -> str:
    return str(getattr(part, "name", type(part).__name__))

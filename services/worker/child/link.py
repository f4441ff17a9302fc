"""The end of the socket that the process of an attempt holds: it tells the worker, asks it, and sorts what it says.

    between two stages   the process waits in one read, without an event loop: orders come one by one
    in a stage           the stage's loop listens beside it: answers about slots, the word that work is stored, the end

Owns which answer belongs to which question, and how a stage is broken off. Nothing that is said is lost where the
worker is slow to read: what does not fit into the socket waits here, and a command's output waits until it has gone.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from services.worker.child.folder import Folder
from services.worker.child.messages import (
    MAX_SHUT_MS,
    Acquire,
    Extend,
    FromChild,
    GiveUp,
    Kept,
    LeaseTold,
    Line,
    Order,
    Shut,
    Stored,
    ToChild,
    cut,
    read_by_child,
    sayable,
)
from services.worker.child.packing import ResultTooLarge
from services.worker.pipeline import Slots, StageFailed
from services.worker.sandbox.command import Bounds, Command, Ran
from services.worker.sandbox.running import Sandbox

READ_BYTES: Final = 64 * 1024
MOST_UNSENT_BYTES: Final = 64 * 1024  # beyond that a command's output waits

State = Literal["granted", "full", "lost"]
T = TypeVar("T")


class Terminated(BaseException):
    """The process is to end now, and no stage runs that could clear up."""


@dataclass(slots=True)
class _Claim:
    """A lease as this process knows it."""

    number: int
    answer: asyncio.Future[State]


@dataclass(slots=True)
class ParentLink:
    """The socket to the worker."""

    channel: socket.socket
    folder: Folder | None = None
    sandbox: Sandbox | None = None
    cancelling: bool = False
    lost_slots: bool = False
    _orders: deque[Order] = field(default_factory=deque["Order"])
    _heard: bytes = b""  # of a word whose end is still to come
    _unsent: bytearray = field(default_factory=bytearray)
    _hung_up: bool = False
    _waits_for_room: bool = False
    _loop: asyncio.AbstractEventLoop | None = None
    _stage: asyncio.Task[Any] | None = None
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _claims: dict[Slots, _Claim] = field(default_factory=dict[Slots, _Claim])
    _keeping: asyncio.Lock = field(default_factory=asyncio.Lock)
    _stored: asyncio.Event = field(default_factory=asyncio.Event)
    _sent: asyncio.Event = field(default_factory=asyncio.Event)

    # ── between two stages ────────────────────────────────────────────────────

    def next_order(self) -> Order | None:
        """Wait for it; null once the worker has hung up."""
        while not (self._orders or self._hung_up):
            self._wait_for_words()
        return self._orders.popleft() if self._orders else None

    def answer(self, message: FromChild) -> None:
        """With all that was said before it."""
        self._unsent += message.encoded()
        self._send_all()

    def keep_now(self) -> None:
        """Until what is to outlive the attempt is stored."""
        if self._keeping.locked():  # by what the stage has left running
            self.run_stage(self.keep())
        elif self._has_packed():
            self._stored.clear()
            self.answer(Kept())
            while not (self._stored.is_set() or self._hung_up):
                self._wait_for_words()

    def leave(self) -> None:
        """Nothing of the attempt stays: no task that its stages have left running, no slot that they asked for."""
        left = asyncio.all_tasks(self._loop) if self._loop else ()
        for task in left:
            task.cancel()
        if left:
            self.run_stage(_ended(left))
        self.folder = self.sandbox = None
        self.lost_slots = False
        self._claims.clear()

    def terminate(self) -> None:
        """Called in the middle of anything. What runs is told; where nothing does, that is the end."""
        self.cancelling = True
        if self._stage is None or self._loop is None:
            raise Terminated
        self._loop.call_soon_threadsafe(self._stage.cancel)

    def run_stage(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it to its end in the loop that all stages of this process share."""
        loop = self._loop = self._loop or asyncio.new_event_loop()
        self._stage = loop.create_task(work)
        loop.add_reader(self.channel, self._words_have_come)
        try:
            return loop.run_until_complete(self._stage)
        finally:
            self._stage = None
            loop.remove_reader(self.channel)
            self._wait_for_room(waits=False)

    # ── in a stage ────────────────────────────────────────────────────────────

    def tell(self, message: FromChild) -> None:
        self._unsent += message.encoded()
        self._send_some()

    def say(self, line: str) -> None:
        self.tell(Line(line=cut(sayable(line))))

    async def drained(self) -> None:
        """Until the worker has read most of what was said."""
        while len(self._unsent) > MOST_UNSENT_BYTES and not self._hung_up:
            self._sent.clear()
            await self._sent.wait()

    async def acquire(self, slots: Slots) -> bool:
        number = next(self._numbers)
        claim = self._claims[slots] = _Claim(number, asyncio.get_running_loop().create_future())
        self.tell(
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
        self.tell(Extend())

    def give_up(self, slots: Slots) -> None:
        claim = self._claims.pop(slots, None)
        if claim is not None:
            self.tell(GiveUp(lease=claim.number))

    def shut(self, slots: Slots, provider: str, *, for_s: float | None) -> None:
        claim = self._claims.pop(slots, None)
        if claim is not None:
            for_ms = None if for_s is None else min(MAX_SHUT_MS, max(0, round(for_s * 1000)))
            self.tell(Shut(lease=claim.number, provider=provider, for_ms=for_ms))

    async def keep(self) -> None:
        """Until what is to outlive the attempt is stored; what else runs in the stage goes on."""
        async with self._keeping:
            if await asyncio.to_thread(self._has_packed):
                self._stored.clear()
                self.tell(Kept())
                await self._stored.wait()

    async def run(self, command: Command, *, bounds: Bounds | None) -> Ran:
        assert self.sandbox is not None
        return await self.sandbox.run(command, on_line=self.say, bounds=bounds, drained=self.drained)

    # ── the socket ────────────────────────────────────────────────────────────

    def _has_packed(self) -> bool:
        """Whether there is anything new to keep."""
        assert self.folder is not None
        try:
            return self.folder.keep()
        except ResultTooLarge as large:
            raise StageFailed("The workspace is too large to keep.", str(large)) from large

    def _wait_for_words(self) -> None:
        if self.cancelling:
            raise Terminated
        self._send_all()
        self._take(self._received(0))

    def _words_have_come(self) -> None:
        """The worker that hangs up in the middle of a stage wants its end."""
        try:
            self._take(self._received(socket.MSG_DONTWAIT))
        except BlockingIOError:
            return
        if self._hung_up and self._stage is not None and self._loop is not None:
            self.cancelling = True
            self._loop.remove_reader(self.channel)
            self._stage.cancel()

    def _received(self, how: int) -> bytes:
        try:
            return self.channel.recv(READ_BYTES, how)
        except ConnectionError:
            return b""

    def _take(self, part: bytes) -> None:
        self._hung_up = not part
        *words, self._heard = (self._heard + part).split(b"\n")
        for word in words:
            self._heed(read_by_child(word))

    def _heed(self, word: ToChild) -> None:
        match word:
            case LeaseTold():
                self._lease_told(word)
            case Stored():
                self._stored.set()
            case order:
                self._orders.append(order)

    def _send_some(self) -> None:
        """As much as the worker has room for; the loop goes on with the rest."""
        self._wait_for_room(waits=not self._sent_now())
        self._sent.set()

    def _wait_for_room(self, *, waits: bool) -> None:
        if self._loop is not None and waits is not self._waits_for_room:
            self._waits_for_room = waits
            if waits:
                self._loop.add_writer(self.channel, self._send_some)
            else:
                self._loop.remove_writer(self.channel)

    def _sent_now(self) -> bool:
        """Whether all of it went."""
        try:
            while self._unsent:
                del self._unsent[: self.channel.send(self._unsent, socket.MSG_DONTWAIT)]
        except BlockingIOError:
            return False
        except ConnectionError:  # nobody will ever hear it
            self._unsent.clear()
        return True

    def _send_all(self) -> None:
        if self._unsent:
            with suppress(ConnectionError):  # nobody will ever hear it
                self.channel.sendall(self._unsent)
            self._unsent.clear()

    def _lease_told(self, told: LeaseTold) -> None:
        for slots, claim in tuple(self._claims.items()):
            if claim.number != told.lease:
                continue
            if not claim.answer.done():
                claim.answer.set_result(told.state)
            elif told.state == "lost":
                self.lost_slots = True
                slots.lose()


async def _ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    await asyncio.wait(tuple(tasks))


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)

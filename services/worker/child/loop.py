"""Where the stages of a process run, and how it hears its worker meanwhile.

    between two stages   the process waits in one read, without an event loop: words come one by one
    in a stage           the stage's loop listens beside it, and the worker that hangs up breaks it off

Owns the socket and the one loop. Refuses to know what a word means: `take` has each as it comes. Nothing that is said
is lost where the worker is slow to read: what does not fit into the socket waits here, and a command's output waits
until it has gone.
"""

import asyncio
import selectors
import socket
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from services.worker.child.messages import FromChild, ToChild, read_by_child

READ_BYTES: Final = 64 * 1024
MOST_UNSENT_BYTES: Final = 64 * 1024  # beyond that a command's output waits

T = TypeVar("T")


class Terminated(BaseException):
    """The process is to end now, and no stage runs that could clear up."""


class ForkedLoop(asyncio.SelectorEventLoop):
    """An event loop that may run before a fork and again in each process forked then. All that it has of the kernel's
    is a pair of sockets by which threads and signals wake it: that is made where it runs, and closed where it `rests`.
    """

    def __init__(self) -> None:
        super().__init__(selectors.PollSelector())  # the one without a descriptor
        self._wakes = False

    def _make_self_pipe(self) -> None:
        """Called as the loop is made, which is too early."""

    def open(self) -> None:
        if not self._wakes:
            super()._make_self_pipe()  # type: ignore[misc] - not in the stubs, and so named since Python 3.4
            self._wakes = True

    def _close_self_pipe(self) -> None:
        if self._wakes:
            super()._close_self_pipe()  # type: ignore[misc] - the same
            self._wakes = False

    def rest(self) -> None:
        self._close_self_pipe()


@dataclass(slots=True)
class StageLoop:
    """The loop that all stages of a process share, and its socket to the worker."""

    channel: socket.socket
    take: Callable[[ToChild], None]
    cancelling: bool = False
    hung_up: bool = False
    _heard: bytes = b""  # of a word whose end is still to come
    _unsent: bytearray = field(default_factory=bytearray)
    _waits_for_room: bool = False
    _loop: ForkedLoop | None = None
    _stage: asyncio.Task[Any] | None = None
    _sent: asyncio.Event = field(default_factory=asyncio.Event)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a stage to its end."""
        loop = self._loop = self._loop or ForkedLoop()
        loop.open()
        self._stage = loop.create_task(work)
        loop.add_reader(self.channel.fileno(), self._words_have_come)
        try:
            return loop.run_until_complete(self._stage)
        finally:
            self._stage = None
            loop.remove_reader(self.channel.fileno())
            self._wait_for_room(waits=False)

    def rest(self) -> None:
        """Until `go_on`, in a process that is forked from here."""
        if self._loop is not None:
            self._loop.rest()

    def go_on(self, channel: socket.socket) -> None:
        """With another worker's end of a socket, and the loop that was made before the fork."""
        self.channel, self.hung_up, self._heard = channel, False, b""

    def end_tasks(self) -> None:
        """Nothing goes on that stages have left running."""
        left = asyncio.all_tasks(self._loop) if self._loop else ()
        for task in left:
            task.cancel()
        if left:
            self.run(_ended(left))

    def break_off(self) -> None:
        """The stage ends here: what it runs is cancelled."""
        if self._stage is not None:
            self._stage.cancel()

    def terminate(self) -> None:
        """Called in the middle of anything. What runs is told; where nothing does, that is the end."""
        self.cancelling = True
        if self._stage is None or self._loop is None:
            raise Terminated
        self._loop.call_soon_threadsafe(self._stage.cancel)

    # ── between two stages ────────────────────────────────────────────────────

    def wait_for_words(self) -> None:
        if self.cancelling:
            raise Terminated
        self._send_all()
        self._take(self._received(0))

    def answer(self, message: FromChild) -> None:
        """With all that was said before it."""
        self._unsent += message.encoded()
        self._send_all()

    # ── in a stage ────────────────────────────────────────────────────────────

    def send(self, message: FromChild) -> None:
        self._unsent += message.encoded()
        self._send_some()

    async def drained(self) -> None:
        """Until the worker has read most of what was said."""
        while len(self._unsent) > MOST_UNSENT_BYTES and not self.hung_up:
            self._sent.clear()
            await self._sent.wait()

    def _words_have_come(self) -> None:
        """The worker that hangs up in the middle of a stage wants its end."""
        try:
            self._take(self._received(socket.MSG_DONTWAIT))
        except BlockingIOError:
            return
        if self.hung_up and self._stage is not None and self._loop is not None:
            self.cancelling = True
            self._loop.remove_reader(self.channel)
            self._stage.cancel()

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

    # ── the socket ────────────────────────────────────────────────────────────

    def _received(self, how: int) -> bytes:
        try:
            return self.channel.recv(READ_BYTES, how)
        except ConnectionError:
            return b""

    def _take(self, part: bytes) -> None:
        self.hung_up = not part
        *words, self._heard = (self._heard + part).split(b"\n")
        for word in words:
            self.take(read_by_child(word))

    def _sent_now(self) -> bool:
        """Whether all of it went."""
        try:
            while self._unsent:
                del self._unsent[: self.channel.send(self._unsent, socket.MSG_DONTWAIT)]
        except BlockingIOError:
            return False
        except ConnectionError:  # there is no reader any more
            self._unsent.clear()
        return True

    def _send_all(self) -> None:
        if self._unsent:
            with suppress(ConnectionError):  # there is no reader any more
                self.channel.sendall(self._unsent)
            self._unsent.clear()


async def _ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    await asyncio.wait(tuple(tasks))

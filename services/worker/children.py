"""The worker's side of the spawner and of each attempt's process.

Owns the sockets to both. An attempt's process is ended to the last of its group, and `ended` tells when it was. If the
spawner dies nothing can be run any more: `Spawner.ended` raises, and with it the worker ends, for its supervisor to
start it again. What a process says is read as a stranger's: `ChildSpokeNonsense` ends its attempt and no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from headgate_pipeline.rules import KnownPipeline
from services.worker.child.messages import MAX_MESSAGE_BYTES, FromChild, Leave, Left, ToChild, read_by_parent
from services.worker.child.spawner import (
    READ_BYTES,
    FromSpawner,
    Gone,
    Prolong,
    Ready,
    Signal,
    Spawn,
    ToSpawner,
    read_from_spawner,
)
from services.worker.errors import ChildSpokeNonsense, PipelinesNotLoaded, SpawnerDied

PASSED_ON: Final = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("HEADGATE_WHEELS", "HEADGATE_INDEX", "UV_SYSTEM_CERTS"),
)
LOADED_WITHIN_S: Final = 60.0
LEFT_WITHIN_S: Final = 1.0
IDLE_MS: Final = 10_000  # a process that waits for another job ends after that
PROLONGED_BY_MS: Final = 500  # at least: each word wakes the spawner, and a lease is renewed long before its end
MOST_ATTEMPTS: Final = 200  # of one process: what a pipeline leaks does not grow for ever
ENDED_WITHIN_S: Final = 2.0  # from hanging up; it ends what hides from signals in a few looks
_ROOT: Final = str(Path(__file__).parents[2])


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the spawner and all attempts may know of our environment: a list of what they need, and nothing else."""
    passed = {name: environ[name] for name in PASSED_ON if name in environ}
    path = [_ROOT, *filter(None, [passed.get("PYTHONPATH")])]
    return passed | {"PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}


class Child:
    """The process of one attempt."""

    def __init__(
        self,
        name: str,
        spawner: Spawner,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        until_ms: int,
    ) -> None:
        self.name = name  # of the attempt that it was made for
        self.code: int | None = None
        self.attempts = 1
        self._until_ms = until_ms  # as the spawner knows it
        self._waiting: asyncio.TimerHandle | None = None  # for another attempt, until we hang up
        self._spawner = spawner
        self._reader = reader
        self._writer = writer
        self._gone = asyncio.Event()

    async def send(self, message: ToChild) -> None:
        """One that is gone gets nothing; the task that listens to it finds that out."""
        with contextlib.suppress(ConnectionError):
            self._writer.write(message.encoded())
            await self._writer.drain()

    async def receive(self) -> FromChild | None:
        """The next thing it says; null once it will say nothing more."""
        await asyncio.sleep(0)  # a line that is here already lets no other task run: heartbeats must, whatever is said
        try:
            line = await self._reader.readline()
            return read_by_parent(line) if line else None
        except (ValueError, ValidationError) as nonsense:  # ValueError: a line beyond the bound
            raise ChildSpokeNonsense(name=self.name) from nonsense
        except ConnectionError:
            return None

    def prolong(self, until_ms: int) -> None:
        """It lives no longer than that, and hardly shorter."""
        if not 0 <= until_ms - self._until_ms < PROLONGED_BY_MS:
            self._until_ms = until_ms
            self._spawner.command(Prolong(name=self.name, until_ms=until_ms))

    async def leaves(self) -> bool:
        """Its attempt, and waits for another. False where it is to be ended."""
        self.attempts += 1
        try:
            async with asyncio.timeout(LEFT_WITHIN_S):
                await self.send(Leave())
                while not isinstance(said := await self.receive(), Left):
                    if said is None:
                        return False
        except (TimeoutError, ChildSpokeNonsense):
            return False
        self.prolong(max(self._until_ms, _now_ms() + 2 * IDLE_MS))
        self._waiting = asyncio.get_running_loop().call_later(IDLE_MS / 1000, self._writer.close)
        return True

    def takes_another(self, *, until_ms: int) -> bool:
        """Attempt, and lives until then. False where it is gone or has waited for long: by the time itself, as a worker
        that was stopped meanwhile has heard neither of its end nor of the timer yet."""
        has_time = self._waiting is not None and self._waiting.when() > asyncio.get_running_loop().time()
        self._waits_no_more()
        if self._gone.is_set() or not has_time:
            self._writer.close()
            return False
        self.prolong(until_ms)
        return True

    async def end(self, *, grace_s: float = 0.0) -> None:
        """Until nothing of it is left. With a grace it is asked first."""
        if grace_s > 0 and not self._gone.is_set():
            self._spawner.command(Signal(name=self.name, number=signal.SIGTERM))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._gone.wait()
        if not self._gone.is_set():
            self._spawner.command(Signal(name=self.name, number=signal.SIGKILL))
            await self._gone.wait()
        self._writer.close()

    async def ended(self) -> int | None:
        """Until nothing of it is left; its exit code, or null where its spawner, which knew it, is gone."""
        await self._gone.wait()
        return self.code

    def is_gone(self, code: int | None) -> None:
        self.code = code
        self._gone.set()
        if self._waits_no_more():  # no task listens to it
            self._writer.close()

    def _waits_no_more(self) -> bool:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.cancel()
        return waiting is not None


class Spawner:
    """The process that attempts are forked from, as the worker sees it."""

    def __init__(self, modules: Iterable[str], *, environ: Mapping[str, str]) -> None:
        self.pipelines: Mapping[str, KnownPipeline] = {}
        self.refused: tuple[str, ...] = ()  # modules that cannot be loaded, each with its reason
        self._modules = tuple(modules)
        self._environment = clean_environment(environ)
        self._children: dict[str, Child] = {}
        self._idle: defaultdict[str, list[Child]] = defaultdict(list)  # by pipeline, the last one on top
        self._process: subprocess.Popen[bytes] | None = None
        self._commands: socket.socket | None = None
        self._heard = b""  # of a word whose end is still to come
        self._first_word: asyncio.Future[Ready | None] | None = None
        self._hung_up = asyncio.Event()
        self._stopping = False

    def launch(self) -> None:
        """The process loads the pipelines from now on. May be said before there is a loop."""
        if self._commands is not None:
            return
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        command = [sys.executable, "-m", "services.worker.child.spawner", str(theirs.fileno()), *self._modules]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - starts at once; our own module
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the worker
            )
        self._commands = ours

    async def start(self) -> None:
        """Until the pipelines are loaded."""
        if self._first_word is not None:
            return
        self.launch()
        assert self._commands is not None
        loop = asyncio.get_running_loop()
        self._first_word = loop.create_future()
        loop.add_reader(self._commands.fileno(), self._hear)
        await self._loaded(self._first_word)

    async def stop(self) -> None:
        """Hang up: it ends every attempt that is left, and itself."""
        self._stopping = True
        self._hang_up()
        if self._process is not None:
            await asyncio.to_thread(_end_surely, self._process)

    async def ended(self) -> None:
        """Until it has ended; raises where it did so by itself."""
        await self._hung_up.wait()
        if not self._stopping:
            raise SpawnerDied

    async def spawn(self, name: str, *, until_ms: int) -> Child:
        """A process for this attempt, that lives until then at the longest."""
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await _opened(ours)
            child = self._children[name] = Child(name, self, reader, writer, until_ms=until_ms)
            self.command(Spawn(name=name, until_ms=until_ms), theirs)
        if self._commands is None:  # it has died meanwhile: it will never say that this child is gone
            child.is_gone(None)
        return child

    def spare(self, pipeline: str, *, until_ms: int) -> Child | None:
        """A process that has done with another job of this pipeline, to live until then; null where none waits."""
        idle = self._idle[pipeline]
        while idle:
            child = idle.pop()
            if child.takes_another(until_ms=until_ms):
                return child
        return None

    async def keep(self, child: Child, pipeline: str) -> bool:
        """For another job of its pipeline, once it has left this one. False where it is to be ended: it says that it
        cannot, or has had its share."""
        if self._stopping or child.attempts >= MOST_ATTEMPTS or not await child.leaves():
            return False
        self._idle[pipeline].append(child)
        return True

    def command(self, command: ToSpawner, *passed: socket.socket) -> None:
        """One that has stopped listening is as good as dead: hundreds of words wait for it already."""
        if self._commands is None:
            return
        word = command.encoded()
        try:
            if socket.send_fds(self._commands, [word], [one.fileno() for one in passed]) < len(word):
                self._hang_up()
        except BlockingIOError:
            if not isinstance(command, Prolong):  # that is said again with the next heartbeat
                self._hang_up()
        except ConnectionError:
            pass  # it is gone, and `ended` says so

    def _hear(self) -> None:
        """Words have come, or the end."""
        if self._commands is None:
            return
        try:
            part = self._commands.recv(READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            part = b""
        *lines, self._heard = (self._heard + part).split(b"\n")
        for line in lines:
            self._take(read_from_spawner(line))
        if not part:
            self._hang_up()

    def _take(self, word: FromSpawner) -> None:
        match word:
            case Gone(name=name, code=code):
                self._children.pop(name).is_gone(code)
            case first if self._first_word is not None and not self._first_word.done():
                self._first_word.set_result(first)
            case _:
                pass

    def _hang_up(self) -> None:
        """Nothing of it is to be heard any more: a task that waits for a child is told that it is not known."""
        if self._commands is not None:
            asyncio.get_running_loop().remove_reader(self._commands.fileno())
            self._commands.close()
            self._commands = None
        for child in self._children.values():
            child.is_gone(None)
        self._children.clear()
        if self._first_word is not None and not self._first_word.done():
            self._first_word.set_result(None)
        self._hung_up.set()

    async def _loaded(self, first_word: asyncio.Future[Ready | None]) -> None:
        why = "its process ended"
        try:
            async with asyncio.timeout(LOADED_WITHIN_S):
                word = await first_word
        except TimeoutError:
            word, why = None, f"they were not loaded within {LOADED_WITHIN_S:g} s"
        if word is None or not word.pipelines:
            await self.stop()
            raise PipelinesNotLoaded(why=" ".join(word.refused) if word else why)
        self.pipelines, self.refused = word.pipelines, word.refused


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _end_surely(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself when we hang up, unless something has stopped it."""
    try:
        process.wait(ENDED_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def _opened(ours: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(sock=ours, limit=MAX_MESSAGE_BYTES)
    except BaseException:  # told to stop in this very moment
        ours.close()
        raise

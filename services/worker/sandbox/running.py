"""An attempt's side: prepares what a command gets, has a keeper run it, and passes on what it says.

Owns the command's environment (a list of what it may have; nothing is inherited), its HOME and TMPDIR, the user it runs
as, and the bound on its output. Whatever happens to the task that awaits a command, `run` returns or raises only when
nothing of it is left.
"""

from __future__ import annotations

import asyncio
import codecs
import dataclasses
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import BinaryIO, Final

from services.worker.sandbox.bubblewrap import ROOT
from services.worker.sandbox.command import CommandBounds, EndedBy, KeeperOrder, Level, Ran, SandboxCommand
from services.worker.sandbox.errors import CommandNotRun, MachineGaveOut
from services.worker.sandbox.keeper import KeeperReport
from services.worker.sandbox.kinship import adopts_orphans
from services.worker.sandbox.ownership import User, hand_over, take_back, take_user
from services.worker.sandbox.reach import make_passage
from services.worker.sandbox.remains import clear
from services.worker.sandbox.watch import is_full

INHERITED: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # for who may reach the network
TAIL_CHARS: Final = 32_000
LONGEST_LINE_CHARS: Final = 8192  # what is longer is passed on in parts
READ_BYTES: Final = 65_536
LINE_BYTES: Final = 64  # that each line costs beside its text: millions of empty ones are work for everybody on the way
LET_GO_S: Final = 5.0  # where no process adopts what a command lets go, it may hold the output for ever
PAUSES_S: Final = (0.2, 1.0)  # before what could not be started is tried again
_KEEPER: Final = f"import sys; sys.path.insert(0, {ROOT!r}); from services.worker.sandbox.keeper import main; main()"

OnLine = Callable[[str], None]
Drained = Callable[[], Awaitable[None]]


async def _at_once() -> None:
    """For who takes lines as fast as they come."""


@contextmanager
def _a_fault_of_the_machine() -> Iterator[None]:
    """No process, no room, no descriptor: not the command's doing."""
    try:
        yield
    except OSError as error:
        raise MachineGaveOut(why=str(error)) from error


class Sandbox:
    """What one attempt runs its commands in. `area` is beside the workspace, and no command may write to it. Keepers
    hold the `tie`, a descriptor, as long as they live."""

    def __init__(
        self, level: Level, *, bounds: CommandBounds, workspace: Path, area: Path, tie: int | None = None
    ) -> None:
        self._level = level
        self._bounds = bounds
        self._named = (workspace, area)
        self._tie = tie
        self._user: User | None = None
        self._running = 0
        self._handing = asyncio.Lock()

    @cached_property
    def _workspace(self) -> Path:
        return self._named[0].resolve()

    @cached_property
    def _area(self) -> Path:
        return self._named[1].resolve()

    async def run(
        self,
        command: SandboxCommand,
        *,
        on_line: OnLine,
        bounds: CommandBounds | None = None,
        cancelled: asyncio.Event | None = None,
        drained: Drained = _at_once,
    ) -> Ran:
        """Until nothing of the command is left. Each line of its output is passed on as it comes, no faster than they
        are `drained`."""
        with _a_fault_of_the_machine():
            scratch = await asyncio.to_thread(self._new_scratch)
        try:
            with _a_fault_of_the_machine():
                await self._begin(scratch)
            order = self._order(command, scratch, bounds or self._bounds)
            ran = await _run(partial(_Kept, order, on_line, drained, self._tie), on_line, cancelled)
            if ran.exit_code != 0 and await asyncio.to_thread(is_full, self._workspace):
                raise MachineGaveOut(why="the disk is full")
            return ran
        finally:
            await asyncio.shield(asyncio.ensure_future(self._end(scratch)))

    def close(self) -> None:
        """The user that commands ran as is free for others. Safe twice."""
        if self._user is not None:
            self._user.release()
            self._user = None

    def _new_scratch(self) -> Path:
        make_passage(self._area)
        scratch = Path(tempfile.mkdtemp(prefix="command-", dir=self._area))
        try:
            for name in ("home", "tmp", "shm"):
                (scratch / name).mkdir(mode=0o700)
        except OSError:
            clear(scratch)
            raise
        return scratch

    async def _begin(self, scratch: Path) -> None:
        async with self._handing:
            self._running += 1
            if self._level.uids is not None:
                self._user = self._user or take_user(self._level.uids)
                await asyncio.to_thread(hand_over, scratch, self._user.uid, uids=self._level.uids)
                if self._running == 1:
                    await asyncio.to_thread(hand_over, self._workspace, self._user.uid, uids=self._level.uids)

    async def _end(self, scratch: Path) -> None:
        await asyncio.to_thread(clear, scratch)
        async with self._handing:
            self._running -= 1
            if self._user is not None and self._running == 0:
                await asyncio.to_thread(take_back, self._workspace, self._user.uid)

    def _order(self, command: SandboxCommand, scratch: Path, bounds: CommandBounds) -> KeeperOrder:
        environ, certificates = environment(command, os.environ, scratch=scratch)
        found, reads = self._level.found, (os.path.realpath(path) for path in command.reads)
        return KeeperOrder(
            argv=tuple(found.get(word, word) for word in command.argv),
            cwd=str(self._workspace / command.cwd),
            workspace=str(self._workspace),
            scratch=str(scratch),
            environ=environ,
            reads=tuple(dict.fromkeys((*self._level.reads, *reads, *certificates))),
            network=command.network,
            ports=command.ports,
            timeout_s=command.timeout_s,
            grace_s=command.grace_s,
            bounds=bounds,
            level=self._level,
            uid=self._user.uid if self._user else None,
        )


def environment(
    command: SandboxCommand, environ: Mapping[str, str], *, scratch: Path
) -> tuple[dict[str, str], list[str]]:
    """All that a command knows of ours, with the paths it must be able to read for it."""
    names = (*INHERITED, *CERTIFICATES) if command.network else INHERITED
    passed = {name: environ[name] for name in names if name in environ}
    certificates = [os.path.realpath(passed[name]) for name in CERTIFICATES if name in passed]
    own = {"HOME": f"{scratch}/home", "TMPDIR": f"{scratch}/tmp"}  # noqa: S108 - its own
    return {"PATH": os.defpath, **passed, **command.environ, **own}, certificates


async def _run(kept: Callable[[], _Kept], on_line: OnLine, cancelled: asyncio.Event | None) -> Ran:
    """What was refused has not begun: it is tried again, for what a busy machine lacked may be there a moment later."""
    for pause_s in PAUSES_S:
        try:
            return await kept().run(cancelled)
        except MachineGaveOut:
            raise
        except CommandNotRun as refused:
            on_line(f"{refused} It is tried again.")
            await asyncio.sleep(pause_s)
    return await kept().run(cancelled)


class _Kept:
    """One command, and the keeper that keeps it."""

    def __init__(self, order: KeeperOrder, on_line: OnLine, drained: Drained, tie: int | None) -> None:
        self._order = order
        self._drained = drained
        self._tie = tie
        self._output = Output(on_line, most_bytes=order.bounds.output_bytes)
        self._channel: asyncio.StreamWriter | None = None

    async def run(self, cancelled: asyncio.Event | None) -> Ran:
        with _a_fault_of_the_machine():
            process, channel, output = _start_keeper(self._tie)
        reader, self._channel = await asyncio.open_connection(sock=channel)
        try:
            return await self._followed(reader, output, cancelled)
        finally:
            self._channel.close()
            await asyncio.to_thread(process.wait)

    async def _followed(self, reader: asyncio.StreamReader, output: BinaryIO, cancelled: asyncio.Event | None) -> Ran:
        """A cancelled task asks for the end, and goes on being cancelled once it is there."""
        self._tell(json.dumps(dataclasses.asdict(self._order)))
        following = asyncio.ensure_future(self._follow(reader, output))
        watching = asyncio.ensure_future(self._cancel_when(cancelled))
        try:
            return await asyncio.shield(following)
        except asyncio.CancelledError:
            self._tell("cancel")
            await asyncio.wait([following])
            raise
        finally:
            watching.cancel()
            following.cancel()  # its caller waits no more, where it is not done

    async def _follow(self, reader: asyncio.StreamReader, output: BinaryIO) -> Ran:
        """What a keeper that was killed has left may hold the output for ever: that is not waited for."""
        passing = asyncio.ensure_future(self._pass_on(output))
        telling = asyncio.ensure_future(reader.readline())
        try:
            await asyncio.wait([passing, telling], return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                passing.result()  # its lines are not taken any more: then it is to end
            line = await telling
            if not line:
                raise MachineGaveOut(why="its keeper ended before it")
            await asyncio.wait([passing], timeout=None if adopts_orphans() else LET_GO_S)
            if passing.done():
                passing.result()
        finally:
            passing.cancel()
            telling.cancel()
            await asyncio.gather(passing, telling, return_exceptions=True)
        told = KeeperReport(**json.loads(line))
        if told.refused is not None:
            raise CommandNotRun(why=self._output.tail.strip() or told.refused)
        ended_by: EndedBy = "output" if self._output.is_full and told.ended_by == "itself" else told.ended_by
        return dataclasses.replace(told, ended_by=ended_by).ran(self._output.tail)

    async def _pass_on(self, output: BinaryIO) -> None:
        """Until everybody who could write has closed its end: nothing is left then, or there is too much of it."""
        stream = asyncio.StreamReader(limit=READ_BYTES)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), output
        )
        try:
            while part := await stream.read(READ_BYTES):
                if not self._output.take(part):
                    self._tell("output")
                    break
                await self._drained()
        finally:
            transport.close()
            self._output.finish()

    async def _cancel_when(self, cancelled: asyncio.Event | None) -> None:
        if cancelled is not None:
            await cancelled.wait()
            self._tell("cancel")

    def _tell(self, word: str) -> None:
        if self._channel is not None:
            with suppress(ConnectionError):
                self._channel.write(word.encode() + b"\n")


def _start_keeper(tie: int | None) -> tuple[subprocess.Popen[bytes], socket.socket, BinaryIO]:
    """With our ends of its channel and of the command's output."""
    with ExitStack() as ours, ExitStack() as theirs:
        channel, its_channel = socket.socketpair()
        ours.enter_context(channel)
        theirs.enter_context(its_channel)
        read_end, write_end = os.pipe()
        output = ours.enter_context(os.fdopen(read_end, "rb", buffering=0))
        theirs.callback(os.close, write_end)
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-I", "-S", "-B", "-c", _KEEPER, str(its_channel.fileno()), str(write_end)],
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(its_channel.fileno(), write_end, *(() if tie is None else (tie,))),
            start_new_session=True,
        )
        ours.pop_all()
        return process, channel, output


class Output:
    """What a command says, as lines of text, to its bound and no further."""

    def __init__(self, on_line: OnLine, *, most_bytes: int) -> None:
        self.is_full = False
        self.tail = ""
        self._on_line = on_line
        self._left_bytes = most_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._begun = ""

    def take(self, part: bytes) -> bool:
        """False once it is more than was allowed."""
        taken = part[: self._left_bytes]
        self._left_bytes -= len(taken) + LINE_BYTES * taken.count(b"\n")
        self._add(self._decoder.decode(taken))
        self.is_full = len(taken) < len(part) or self._left_bytes < 0
        return not self.is_full

    def finish(self) -> None:
        self._add(self._decoder.decode(b"", final=True))
        if self._begun:
            self._on_line(self._begun)
            self._begun = ""

    def _add(self, text: str) -> None:
        self.tail = (self.tail + text)[-TAIL_CHARS:]
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._say(line.removesuffix("\r"))
        while len(self._begun) > LONGEST_LINE_CHARS:
            self._say(self._begun[:LONGEST_LINE_CHARS])
            self._begun = self._begun[LONGEST_LINE_CHARS:]

    def _say(self, line: str) -> None:
        self._on_line(line[:LONGEST_LINE_CHARS])
        for at in range(LONGEST_LINE_CHARS, len(line), LONGEST_LINE_CHARS):
            self._on_line(line[at : at + LONGEST_LINE_CHARS])

"""The process that attempts are forked from: started clean, with the pipelines loaded, and kept small.

    worker ──commands──► spawner ──fork──► attempt, in a process group of its own
       ▲                    │                 │
       └────── ends ────────┘                 └── its own socket to the worker

A fork costs a few milliseconds where a fresh interpreter costs hundreds, and this process never had what an attempt
must not see: it was started with a short environment and has never opened a connection. It has one thread, and an event
loop that rests (`loop.ForkedLoop`), so that forking is safe.

What it keeps:
* An attempt is said to be gone when the last of its group has ended, and nothing is left that came to us from it: what
  loses its parent becomes our child. Keepers of commands are such; they end by themselves in a moment, and are waited
  for; where no system gives them to us, by the tie that they hold. As long as one of a group is left no other group has
  its number.
* An attempt outlives neither the worker (the commands' socket closes) nor its lease: the worker says how long it has,
  and a worker that is stopped says nothing more. `CLOCK_MONOTONIC` is one clock for all processes of a machine.
"""

import contextlib
import gc
import itertools
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NoReturn

from pydantic import Field, TypeAdapter

from headgate_pipeline import Pipeline
from headgate_pipeline.loading import load_pipelines
from headgate_pipeline.rules import KnownPipeline
from services.worker.child import life
from services.worker.child.link import ParentLink
from services.worker.child.messages import ChildMessage
from services.worker.child.warming import warm_link
from services.worker.sandbox.kinship import (
    adopt_orphans,
    adopts_orphans,
    child_ends,
    end_before_others,
    end_with_parent,
    keep_private,
)
from services.worker.sandbox.tree import ProcessTree, children

READ_BYTES: Final = 16 * 1024
MOST_PASSED: Final = 8  # sockets that come with one read
STRAY_MS: Final = 3000  # what has lost its attempt and is still there then ends by force
LOOK_EVERY_S: Final = 0.01  # while somebody waits for the end of an attempt
MAX_DESCRIPTORS: Final = 1024  # far more than this process ever opens
EXPENDABLE: Final = 500  # commands, which have 1000, go before attempts, which inherit this, and the worker goes last


class Spawn(ChildMessage):
    """To the spawner, with one end of a socket: fork an attempt that speaks over it, and let it live until then."""

    kind: Literal["spawn"] = "spawn"
    name: str
    until_ms: int


class Signal(ChildMessage):
    """To the spawner: send the signal to the attempt's whole group."""

    kind: Literal["signal"] = "signal"
    name: str
    number: int


class Prolong(ChildMessage):
    """To the spawner: the attempt may live until then."""

    kind: Literal["prolong"] = "prolong"
    name: str
    until_ms: int


class Ready(ChildMessage):
    """From the spawner, once: these pipelines are loaded, with these stages; each refused module has its reason."""

    kind: Literal["ready"] = "ready"
    pipelines: dict[str, KnownPipeline]
    refused: tuple[str, ...] = ()


class Gone(ChildMessage):
    """From the spawner: the attempt has ended, and so has all of its group. A negative code is a signal's number."""

    kind: Literal["gone"] = "gone"
    name: str
    code: int


ToSpawner = Spawn | Signal | Prolong
FromSpawner = Ready | Gone
_TO_SPAWNER: Final = TypeAdapter[ToSpawner](Annotated[ToSpawner, Field(discriminator="kind")])
_FROM_SPAWNER: Final = TypeAdapter[FromSpawner](Annotated[FromSpawner, Field(discriminator="kind")])


def read_from_spawner(line: bytes) -> FromSpawner:
    return _FROM_SPAWNER.validate_json(line)


@dataclass(slots=True)
class _Attempt:
    name: str
    until_ms: int
    tie: int  # can be read to its end once it and its keepers have ended
    code: int | None = None  # of its first process, once that has ended
    ended_ms: int = 0

    def is_untied(self) -> bool:
        """It and its keepers have ended, or a stranger holds what was theirs for too long."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self.tie, 1) == b""
        self.ended_ms = self.ended_ms or _now_ms()
        return _now_ms() - self.ended_ms >= STRAY_MS


@dataclass(slots=True)
class _Spawner:
    """The loop. Attempts are known by their process number, which is their group's too."""

    commands: socket.socket
    pipelines: Mapping[str, Pipeline]
    link: ParentLink  # each attempt goes on with it, in its own process
    attempts: dict[int, _Attempt] = field(default_factory=dict[int, _Attempt])
    heard: bytes = b""  # of a command whose end is still to come
    passed: deque[int] = field(default_factory=deque[int])  # sockets of attempts that are still to be made
    strays: dict[int, int] = field(default_factory=dict[int, int])  # and since when they are known

    def serve(self) -> None:
        """Until the worker hangs up; then no attempt is left."""
        try:
            with child_ends() as ends, selectors.DefaultSelector() as selector:
                selector.register(self.commands, selectors.EVENT_READ)
                selector.register(ends, selectors.EVENT_READ)
                while self._obey(selector.select(self._patience_s()), ends):
                    self._reap()
                    self._end_overdue()
        finally:
            self._end_all()

    def _obey(self, ready: list[tuple[selectors.SelectorKey, int]], ends: socket.socket) -> bool:
        files = {key.fileobj for key, _ in ready}
        if ends in files:
            ends.recv(4096)
        if self.commands not in files:
            return True
        part, passed, _, _ = socket.recv_fds(self.commands, READ_BYTES, MOST_PASSED)
        self.passed += passed
        *lines, self.heard = (self.heard + part).split(b"\n")
        for line in lines:
            self._do(_TO_SPAWNER.validate_json(line))
        return bool(part)

    def _do(self, command: ToSpawner) -> None:
        match command:
            case Spawn():
                self._spawn(command, socket.socket(fileno=self.passed.popleft()))
            case Signal():
                for pid in self._named(command.name):
                    _kill_group(pid, command.number)
            case Prolong():
                for pid in self._named(command.name):
                    self.attempts[pid].until_ms = command.until_ms

    def _spawn(self, command: Spawn, channel: socket.socket) -> None:
        ours = os.getpid()
        tie, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become_attempt(channel, spawner=ours, tie=theirs)
        channel.close()
        os.close(theirs)
        os.set_blocking(tie, False)
        # The attempt does it as well, and either may be first.
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)
        self.attempts[pid] = _Attempt(command.name, command.until_ms, tie)

    def _become_attempt(self, channel: socket.socket, *, spawner: int, tie: int) -> NoReturn:
        """In the forked process: leave everything of the spawner's behind, then live the attempt."""
        code, loop = 1, self.link.loop
        try:
            os.setpgid(0, 0)
            end_with_parent()  # no attempt outlives the spawner either
            if os.getppid() != spawner:
                os._exit(code)
            signal.set_wakeup_fd(-1)
            _keep_only(channel.fileno(), tie)
            signal.signal(signal.SIGTERM, lambda *_: loop.terminate())
            for number in (signal.SIGCHLD, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            loop.go_on(channel)
            code = life.run(self.link, self.pipelines, tie=tie)
        finally:
            os._exit(code)  # nothing of the spawner's is to be cleaned up here a second time

    def _reap(self) -> None:
        """Take note of what has ended. An attempt is gone when nothing is left that was its own."""
        while (buried := _ended_child()) is not None:
            pid, status = buried
            if pid in self.attempts:
                self.attempts[pid].code = os.waitstatus_to_exitcode(status)
        ended = {pid: attempt.code for pid, attempt in self.attempts.items() if attempt.code is not None}
        gone = {pid: code for pid, code in ended.items() if self._is_over(pid)}
        self._end_strays(looked_for=bool(gone))
        for pid, code in () if self.strays else gone.items():
            attempt = self.attempts.pop(pid)
            os.close(attempt.tie)
            with contextlib.suppress(ConnectionError):  # the worker has gone too: that is read next
                self.commands.sendall(Gone(name=attempt.name, code=code).encoded())

    def _is_over(self, pid: int) -> bool:
        """None of its group is left; nor of its keepers, where those would not come to us."""
        return not _kill_group(pid, signal.SIGKILL) and (adopts_orphans() or self.attempts[pid].is_untied())

    def _end_strays(self, *, looked_for: bool) -> None:
        """What came to us from attempts that have ended. Whose it was cannot be told any more; no living one's."""
        if adopts_orphans() and (looked_for or self.strays):
            living = {pid for pid, attempt in self.attempts.items() if attempt.code is None}
            found = [pid for pid in children() if pid not in self.attempts and _group_of(pid) not in living]
            self.strays = {pid: self.strays.get(pid, _now_ms()) for pid in found}
        for pid, since_ms in self.strays.items():
            if _now_ms() - since_ms >= STRAY_MS:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _end_all(self) -> None:
        """Keepers that would not come to us end by themselves, with all that they keep: none of them is stopped, as we
        could be ended in the middle of it."""
        if adopts_orphans():
            ProcessTree(0).kill()
            return
        while self.attempts:
            for pid in self.attempts:
                _kill_group(pid, signal.SIGKILL)
            self._reap()
            time.sleep(LOOK_EVERY_S)

    def _end_overdue(self) -> None:
        for pid, attempt in self.attempts.items():
            if attempt.until_ms <= _now_ms():
                _kill_group(pid, signal.SIGKILL)

    def _patience_s(self) -> float | None:
        """How long there is nothing to do by itself."""
        if not self.attempts:
            return None
        next_ms = min(0 if each.code is not None else each.until_ms for each in self.attempts.values())
        return max(LOOK_EVERY_S, (next_ms - _now_ms()) / 1000)

    def _named(self, name: str) -> list[int]:
        return [pid for pid, attempt in self.attempts.items() if attempt.name == name]


def _ended_child() -> tuple[int, int] | None:
    """One that has ended, and how."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _kill_group(pid: int, number: int) -> bool:
    """False where none of the group is left."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):  # the latter: of some systems, where all of it is dead and not buried
        return False
    return True


def _group_of(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


def _keep_only(*kept: int) -> None:
    """Of all that is open only these stay. What is printed goes nowhere: the worker's own log is not the job's."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    for before, after in itertools.pairwise((2, *sorted(kept), MAX_DESCRIPTORS)):
        os.closerange(before + 1, after)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def main() -> None:
    commands = socket.socket(fileno=int(sys.argv[1]))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the worker decides, and hangs up
    os.umask(0o077)
    end_before_others(EXPENDABLE)  # as long as this file is our own: what is private may not change it
    keep_private()
    adopt_orphans()
    loaded = load_pipelines(sys.argv[2:])
    stages = {name: pipeline.stages for name, pipeline in loaded.found.items()}
    commands.sendall(Ready(pipelines=stages, refused=loaded.refused).encoded())
    link = warm_link()
    gc.collect()
    gc.freeze()  # what is loaded stays shared with the attempts: no collection ever writes into it
    _Spawner(commands, loaded.found, link).serve()


if __name__ == "__main__":
    main()

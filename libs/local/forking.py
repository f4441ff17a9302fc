"""The process that the services of one machine are forked from, so that what they import is loaded once for all:
`python -m libs.local.forking 3 services.scheduler services.worker`.

    supervisor ──module, environment, log──► fork server ──fork──► service, in a session of its own
        ▲                                        │
        └──────────── pid, exit code ────────────┘

It loads them one after the other and forks each as soon as it has loaded that one: a service has begun while the next
is loaded. It has one thread, no event loop and no connection, so that forking is safe, and it was given no password
before it is asked for the service that needs it. A service runs as `python -m` runs it: that it was forked it does not
know. All of them end with this process, and it ends with the supervisor.
"""

import gc
import importlib
import importlib.util
import json
import os
import runpy
import select
import signal
import socket
import sys
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, Self

from libs.local.tether import ending_with_parent

MOST_BYTES: Final = 1 << 20
WORD_BYTES: Final = 64
COMMAND: Final = slice(45, 47)  # where it begins and ends in memory: of /proc/self/stat, behind the name


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """What a forked process is to be."""

    module: str
    environment: Mapping[str, str]

    def encoded(self) -> bytes:
        return json.dumps([self.module, dict(self.environment)]).encode()

    @classmethod
    def decoded(cls, message: bytes) -> Self:
        return cls(*json.loads(message))


class ForkedProcess:
    """One that the fork server has forked, to the supervisor: as `subprocess.Popen` shows a child."""

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self._code: int | None = None
        self._channel = channel

    def poll(self) -> int | None:
        """Its exit code, once it has ended: with the fork server, in whatever way that did."""
        with suppress(BlockingIOError):
            if self._code is None:
                word = self._channel.recv(WORD_BYTES)
                self._code = int(word) if word else -signal.SIGKILL
                self._channel.close()
        return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class _ForkLoop:
    """Forks whenever it is asked. To each process that it has forked belongs a socket, on which its end is told."""

    requests: socket.socket
    unloaded: deque[str]
    living: dict[int, socket.socket] = field(default_factory=dict[int, socket.socket])

    def serve(self) -> ForkRequest | None:
        """Null once the supervisor has hung up; in a forked process, what that is to be."""
        with _child_ends() as ends:
            while True:
                ready, _, _ = select.select([self.requests, ends], [], [], 0 if self.unloaded else None)
                if ends in ready:
                    ends.recv(4096)
                    self._tell_ends()
                if self.requests in ready:
                    message, passed, _, _ = socket.recv_fds(self.requests, MOST_BYTES, 2)
                    if not message:
                        return None
                    asked = ForkRequest.decoded(message)
                    self._load_up_to(asked.module)
                    if self._is_forked(log=passed[0], channel=socket.socket(fileno=passed[1])):
                        return asked
                elif self.unloaded:
                    self._load_next()

    def _load_up_to(self, module: str) -> None:
        while module in self.unloaded:
            self._load_next()

    def _load_next(self) -> None:
        with suppress(ImportError):  # the forked process will say it, in its own log
            load(self.unloaded.popleft())

    def _is_forked(self, *, log: int, channel: socket.socket) -> bool:
        """True in the forked process."""
        ours, end_with_parent = os.getpid(), ending_with_parent()
        pid = os.fork()
        if pid == 0:
            end_with_parent()
            _stand_alone(ours, log)
            for left in (self.requests, channel, *self.living.values()):
                left.close()
            return True
        os.close(log)
        self.living[pid] = channel
        _tell(channel, pid)
        return False

    def _tell_ends(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                with self.living.pop(ended[0]) as channel:
                    _tell(channel, os.waitstatus_to_exitcode(ended[1]))


@contextmanager
def _child_ends() -> Generator[socket.socket]:
    """A socket that can be read when a child has ended."""
    readable, writable = socket.socketpair()
    writable.setblocking(False)
    with readable, writable:
        signal.signal(signal.SIGCHLD, _noted)
        signal.set_wakeup_fd(writable.fileno(), warn_on_full_buffer=False)
        yield readable


def _noted(number: int, frame: FrameType | None) -> None:
    """By the wakeup descriptor, which needs a handler."""


def _tell(channel: socket.socket, number: int) -> None:
    with suppress(ConnectionError):  # the supervisor has gone: that is read next
        channel.send(str(number).encode())


def _stand_alone(server: int, log: int) -> None:
    """As a process that was started by itself would: but it ends with the one that has forked it."""
    os.setsid()
    if os.getppid() != server:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    for said in (1, 2):
        os.dup2(log, said)
    os.close(log)


def load(module: str) -> None:
    """What its `__main__` imports; of a module that has none there is nothing to load without running it."""
    found = importlib.util.find_spec(module)
    if found is not None and found.submodule_search_locations is not None:
        importlib.import_module(name := f"{module}.__main__")
        del sys.modules[name]  # it is run as what it is named, and once


def become(asked: ForkRequest) -> NoReturn:
    """The program, by its name and with its environment and nothing else of ours."""
    os.environ.clear()
    os.environ.update(asked.environment)
    _call_it(sys.executable, "-m", asked.module)
    sys.argv = [asked.module]
    runpy.run_module(asked.module, run_name="__main__", alter_sys=True)
    sys.exit(0)


def _call_it(*command: str) -> None:
    """For lists of processes: in place of our own command, which is longer."""
    with suppress(OSError):  # not everywhere may a process write to itself
        told = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2]
        start, end = map(int, told.split()[COMMAND])
        words = "\0".join(command).encode()[: end - start - 1]
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(words.ljust(end - start, b"\0"))


def main() -> None:
    gc.disable()  # what is loaded lasts, and stays shared: no collection ever looks at it
    loop = _ForkLoop(socket.socket(fileno=int(sys.argv[1])), deque(sys.argv[2:]))
    asked = loop.serve()
    if asked is not None:
        become(asked)


if __name__ == "__main__":
    main()

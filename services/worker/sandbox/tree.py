"""Everything that descends from this process, wherever it went: found, signalled, ended, buried.

Rests on the kernel: this process is a subreaper, so whatever loses its parent becomes a child of ours, in whatever
session or group it hides; and as long as one of them is left, there is a child to wait for. That there is none left is
therefore never a guess. Where no system does that, `group` follows what it can.
"""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

BETWEEN_LOOKS_S: Final = 0.005
MOST_STOPPING_PASSES: Final = 20


def children(pid: int | str = "self") -> list[int]:
    """Those that a process has now. One that is gone has none."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - many times a second
            found += _children_of_task(f"/proc/{pid}/task/{task}/children")
    return found


def _children_of_task(path: str) -> Iterable[int]:
    with suppress(FileNotFoundError, ProcessLookupError), open(path, encoding="ascii") as file:  # noqa: PTH123
        return map(int, file.read().split())
    return ()


class ProcessTree:
    """What descends from this process. `first` is the child whose end is the command's."""

    between_looks_s = BETWEEN_LOOKS_S

    def __init__(self, first: int) -> None:
        self.first = first
        self.status: int | None = None

    def members(self) -> list[int]:
        """As they are found, parents before children. What moves meanwhile is found the next time."""
        found, seen = children(), set[int]()
        for pid in found:
            if pid not in seen:
                seen.add(pid)
                found += children(pid)
        return list(dict.fromkeys(found))

    def reap(self) -> bool:
        """Bury the dead. False where nothing is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.first:
                self.status = status

    def ask(self, *, spared: Iterable[int] = ()) -> None:
        """To end by themselves."""
        for pid in set(self.members()) - set(spared):
            _send(pid, signal.SIGTERM)

    def wait(self, within_s: float) -> bool:
        """Until nothing is left. False where the time was too short."""
        until = time.monotonic() + within_s
        while self.reap():
            if time.monotonic() >= until:
                return False
            time.sleep(self.between_looks_s)
        return True

    def kill(self) -> None:
        """Until nothing is left. All are stopped before the first is killed: who is stopped makes no more of them, and
        still takes up the room that the limit on processes leaves."""
        while self.reap():
            self._stop_all()
            for pid in self.members():
                _send(pid, signal.SIGKILL)
            time.sleep(self.between_looks_s)

    def _stop_all(self) -> None:
        stopped = set[int]()
        for _ in range(MOST_STOPPING_PASSES):
            found = set(self.members()) - stopped
            if not found:
                return
            for pid in found:
                _send(pid, signal.SIGSTOP)
            stopped |= found


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)

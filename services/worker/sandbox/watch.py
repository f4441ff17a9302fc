"""Adds up what a whole tree of processes uses: the bounds that the kernel holds for each process alone, or not at all.

Owns what counts. Memory is what is written to and shared memory; where that exceeds the bound it is measured again
exactly, since what forks share is counted once for each at first. The processor's time includes that of children that
have been buried. Disk is what lies in the command's folders, what they have deleted and hold open, and memory that
poses as a file. Where a disk is full, what fails on it is the machine's fault alone.
"""

import os
import resource
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.worker.sandbox import kernel
from services.worker.sandbox.command import CommandBounds, EndedBy
from services.worker.sandbox.remains import below

FULL_BYTES: Final = 1024 * 1024  # a write that failed may have left as much
TICKS: Final = os.sysconf("SC_CLK_TCK")
ENTRY_BYTES: Final = 4096  # at least, of each name: a million empty files fill a disk too
BLOCK_BYTES: Final = 512
LOOK_FOR_S: Final = 0.02  # at the folders, before the processes are looked at again
REST: Final = 10  # times as long as looking took
SHORTEST_REST_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Used:
    tasks: int
    memory_bytes: int
    cpu_s: float


def used(pids: list[int]) -> Used:
    """By all of them together, as far as they are still there."""
    tasks, memory, ticks = 0, 0, 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            has_tasks, has_memory = _status(_read(pid, "status"))
            tasks += has_tasks
            memory += has_memory
            ticks += sum(map(int, _read(pid, "stat").rpartition(")")[2].split()[11:15]))
    buried = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Used(tasks, memory, ticks / TICKS + buried.ru_utime + buried.ru_stime)


def _read(pid: int, name: str) -> str:
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - ten times a second
        return file.read()


def _status(text: str) -> tuple[int, int]:
    """Threads, and bytes of memory that are this process's doing."""
    tasks, kilobytes = 0, 0
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in {"RssAnon", "RssShmem", "VmSwap"}:
            kilobytes += int(value.split()[0])
        elif name == "Threads":
            tasks = int(value)
    return tasks, kilobytes * 1024


def exact_memory(pids: list[int]) -> int:
    """What is shared is counted once. Costs more, and not every process may be looked at so closely."""
    kilobytes = 0
    for pid in pids:
        try:
            parts = [line.split() for line in _read(pid, "smaps_rollup").splitlines()]
            kilobytes += sum(int(part[1]) for part in parts if part[0] in {"Pss_Anon:", "Pss_Shmem:", "SwapPss:"})
        except PermissionError:
            with suppress(FileNotFoundError, ProcessLookupError):
                kilobytes += _status(_read(pid, "status"))[1] // 1024
        except (FileNotFoundError, ProcessLookupError):
            continue
    return kilobytes * 1024


class Processes:
    """The bounds on a tree's processes. `spared` are ours, around the command."""

    def __init__(self, bounds: CommandBounds, *, spared: int) -> None:
        self._bounds = bounds
        self._spared = spared

    def exceeded(self, pids: list[int]) -> EndedBy | None:
        """Where Linux shows what they use. Elsewhere each has limits of its own, and their sum has none."""
        if not kernel.is_linux():
            return None
        now = used(pids)
        if now.tasks - self._spared > self._bounds.processes:
            return "processes"
        if now.memory_bytes > self._bounds.memory_bytes and exact_memory(pids) > self._bounds.memory_bytes:
            return "memory"
        return "time" if now.cpu_s > self._bounds.cpu_s else None


class Disk:
    """The bound on a command's folders. Looks a little at a time, so that nothing else waits for a large folder."""

    def __init__(self, folders: tuple[str, ...], *, bound: int) -> None:
        self._folders = folders
        self._bound = bound
        self._walk: Iterator[int] | None = None
        self._bytes = 0
        self._looked_s = 0.0
        self._next_s = 0.0
        self._free = free_bytes(folders[0])

    def exceeded(self, pids: list[int]) -> bool:
        """So far in this look, which goes on where it stopped."""
        began = time.monotonic()
        if self._walk is None:
            if began < self._next_s and not self._fills_up():
                return False
            self._walk, self._bytes, self._looked_s = self._entries(pids), 0, 0.0
        for size in self._walk:
            self._bytes += size
            if self._bytes > self._bound:
                return True
            if time.monotonic() - began > LOOK_FOR_S:
                self._looked_s += LOOK_FOR_S
                return False
        self._looked_s += time.monotonic() - began
        self._walk, self._free = None, free_bytes(self._folders[0])
        self._next_s = time.monotonic() + max(SHORTEST_REST_S, REST * self._looked_s)
        return False

    def exceeded_in_the_end(self) -> bool:
        """A whole look, once nothing runs any more: what was written in the last moment counts too."""
        total = 0
        return any((total := total + size) > self._bound for size in self._entries([]))

    def _entries(self, pids: list[int]) -> Iterator[int]:
        seen = set[tuple[int, int]]()
        for folder in self._folders:
            for entry in below(folder):
                yield self._size(entry.seen if entry else None, seen)
        yield from (self._size(each, seen) for pid in pids for each in _deleted(pid))

    def _size(self, entry: os.stat_result | None, known: set[tuple[int, int]]) -> int:
        if entry is None:  # too deep, or closed to us: no build needs that
            return self._bound + 1
        if entry.st_nlink != 1 and not stat.S_ISDIR(entry.st_mode):
            if (entry.st_dev, entry.st_ino) in known:
                return ENTRY_BYTES
            known.add((entry.st_dev, entry.st_ino))
        return max(ENTRY_BYTES, entry.st_blocks * BLOCK_BYTES)

    def _fills_up(self) -> bool:
        """The disk as a whole: whichever process fills it, it is time to look again."""
        return self._free - free_bytes(self._folders[0]) > max(0, self._bound - self._bytes) // 2


def _deleted(pid: int) -> Iterator[os.stat_result]:
    """Files that have no name any more and still take up room, because this process holds them open."""
    if not kernel.is_linux():
        return
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - several times a second
            with suppress(FileNotFoundError, ProcessLookupError, PermissionError, OSError):
                seen = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                if stat.S_ISREG(seen.st_mode) and seen.st_nlink == 0:
                    yield seen


def free_bytes(folder: str | Path) -> int:
    seen = os.statvfs(folder)
    return seen.f_bavail * seen.f_frsize


def is_full(folder: str | Path) -> bool:
    """Of bytes or of names. Some systems of files have no limit on names, and say 0 of 0."""
    seen = os.statvfs(folder)
    return seen.f_bavail * seen.f_frsize < FULL_BYTES or (seen.f_files > 0 and seen.f_favail == 0)

"""A cgroup (v2) for each command, where the worker may make one: memory and processes exactly, and one word ends it.

Owns which folder is ours and what is written there. Refuses to move anything but what a keeper has forked. A group
without the controllers for memory and processes still ends a command as a whole; the keeper goes on adding up.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.worker.sandbox.command import CommandBounds, EndedBy

COMMAND: Final = "headgate-command-"
CONTROLLERS: Final = ("memory", "pids")
_FORGOTTEN_WITHIN_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class CommandCgroup:
    """The cgroup of one command."""

    folder: Path

    def bound(self, bounds: CommandBounds) -> None:
        for name, value in (
            ("memory.max", str(bounds.memory_bytes)),
            ("memory.swap.max", "0"),
            ("memory.oom.group", "1"),
            ("pids.max", str(bounds.processes)),
        ):
            if (self.folder / name).exists():
                (self.folder / name).write_text(value, encoding="ascii")

    def exceeded(self) -> EndedBy | None:
        """What the kernel had to refuse it."""
        if self._count("memory.events", "oom_kill"):
            return "memory"
        return "processes" if self._count("pids.events", "max") else None

    def kill(self) -> None:
        """All at once, a process that is just being forked included."""
        with suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1", encoding="ascii")

    def remove(self) -> None:
        """It is busy for a moment after its last process."""
        until = time.monotonic() + _FORGOTTEN_WITHIN_S
        while time.monotonic() < until:
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.005)

    def _count(self, file: str, name: str) -> int:
        with suppress(OSError):
            for line in (self.folder / file).read_text(encoding="ascii").splitlines():
                if line.startswith(f"{name} "):
                    return int(line.split()[1])
        return 0


def make(parent: str, bounds: CommandBounds) -> CommandCgroup:
    """A new one below it, with its bounds."""
    group = CommandCgroup(Path(parent) / f"{COMMAND}{os.getpid()}-{time.time_ns()}")
    group.folder.mkdir()
    group.bound(bounds)
    return group


def join(folder: str | None) -> None:
    """This process, and all it will fork."""
    if folder is not None:
        (Path(folder) / "cgroup.procs").write_text("0", encoding="ascii")


@dataclass(frozen=True, slots=True)
class Parent:
    """Where groups can be made, and whether they count."""

    folder: str
    counts: bool


def find(wanted: Path | None) -> Parent | None:
    """The one wanted, else our own. What keepers that were killed have left there is taken away."""
    parents = (wanted,) if wanted is not None else _ours()
    found = next(filter(None, map(_tried, parents)), None)
    for left in Path(found.folder).glob(f"{COMMAND}*") if found else ():
        with suppress(OSError):  # it is not empty: somebody else's, in use
            left.rmdir()
    return found


def _ours() -> Iterator[Path]:
    """Where the machine keeps its groups (v2), and this process's place there."""
    with suppress(OSError):
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        places = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        place = next((line.removeprefix("0::/") for line in places if line.startswith("0::/")), None)
        for line in mounts:
            if place is not None and " - cgroup2 " in line:
                yield Path(line.split()[4]) / place


def _tried(parent: Path) -> Parent | None:
    """With an empty group: made, with the controllers where they are to be had, removed."""
    probe = parent / f"headgate-probe-{os.getpid()}"
    with suppress(OSError):
        _hand_down(parent)
        probe.mkdir()
        try:
            if (probe / "cgroup.kill").exists() and os.access(probe / "cgroup.procs", os.W_OK):
                return Parent(str(parent), counts=all((probe / f"{name}.max").exists() for name in CONTROLLERS))
        finally:
            probe.rmdir()
    return None


def _hand_down(parent: Path) -> None:
    """Where other processes are in it too the kernel refuses; then there is no more than the one word."""
    has = (parent / "cgroup.controllers").read_text(encoding="ascii").split()
    for name in CONTROLLERS:
        if name in has:
            with suppress(OSError):
                (parent / "cgroup.subtree_control").write_text(f"+{name}", encoding="ascii")

"""CPU and memory of processes and of all that they have started, as the kernel tells in /proc."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

TICKS_S: Final = os.sysconf("SC_CLK_TCK")
PROC: Final = Path("/proc")


def cpu_s(roots: Iterable[int]) -> float:
    """Of these processes, of their descendants, and of those among them that have ended and were waited for."""
    return sum(map(_ticks, trees(roots))) / TICKS_S


def resident_mib(roots: Iterable[int]) -> float:
    """What each holds, shared pages counted once for each."""
    return sum(map(_resident_kib, trees(roots))) / 1024


def proportional_mib(pids: Iterable[int]) -> float:
    """What each of these alone holds: of a page that several share, its part (PSS)."""
    return sum(map(_proportional_kib, pids)) / 1024


def parent(pid: int) -> int:
    return int(_stat(PROC / str(pid) / "stat")[1])


def descriptors(pid: int) -> int:
    """Files, sockets and pipes that it has open."""
    try:
        return sum(1 for _ in (PROC / str(pid) / "fd").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def resident_kib(pid: int) -> int:
    """What it alone holds."""
    return _resident_kib(pid)


def trees(roots: Iterable[int]) -> list[int]:
    """These and their descendants, each once."""
    children = _children()
    found: dict[int, None] = {}
    left = list(roots)
    while left:
        pid = left.pop()
        if pid not in found:
            found[pid] = None
            left += children[pid]
    return list(found)


def _children() -> dict[int, list[int]]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for path in PROC.glob("[0-9]*/stat"):
        if len(fields := _stat(path)) > 1:
            children[int(fields[1])].append(int(path.parent.name))
    return children


def _ticks(pid: int) -> int:
    return sum(map(int, _stat(PROC / str(pid) / "stat")[11:15]))


def _resident_kib(pid: int) -> int:
    return _kib(PROC / str(pid) / "status", "VmRSS:")


def _proportional_kib(pid: int) -> int:
    return _kib(PROC / str(pid) / "smaps_rollup", "\nPss:")


def _kib(path: Path, name: str) -> int:
    try:
        said = path.read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(said.partition(name)[2].split()[0]) if name in said else 0


def _stat(path: Path) -> list[str]:
    """What stands behind its name, which may hold anything. Nothing of one that is gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []

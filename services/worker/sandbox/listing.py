"""The processes of this machine, as every POSIX system lists them: for where Linux's own files are not."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

LIST: Final = ("/bin/ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "stat=", "-o", "lstart=")


@dataclass(frozen=True, slots=True)
class Listed:
    """A process. Its number is its own as long as it has begun at the same time."""

    pid: int
    parent: int
    group: int
    began: str


def descending(now: Mapping[int, Listed], is_ours: Callable[[Listed], bool]) -> dict[int, Listed]:
    """Those that are ours, and whatever descends from them, parents before children."""
    found = {pid: each for pid, each in now.items() if is_ours(each)}
    while more := {pid: each for pid, each in now.items() if pid not in found and each.parent in found}:
        found |= more
    return found


def living() -> dict[int, Listed]:
    """All processes of this machine, but for the dead that no parent has waited for, and for who lists them."""
    lister, text = _listed()
    return {each.pid: each for each in read(text) if each.pid != lister}


def read(text: str) -> Iterator[Listed]:
    for line in text.splitlines():
        pid, parent, group, state, began = line.split(maxsplit=4)
        if not state.startswith("Z"):
            yield Listed(int(pid), int(parent), int(group), began)


def _listed() -> tuple[int, str]:
    """By POSIX's own program: it is everywhere, and what it says is the same everywhere."""
    readable, writable = os.pipe()
    with os.fdopen(readable, encoding="utf-8", errors="replace") as said:
        try:
            lister = os.posix_spawn(LIST[0], LIST, {"LC_ALL": "C"}, file_actions=[(os.POSIX_SPAWN_DUP2, writable, 1)])
        except OSError:
            return 0, ""
        finally:
            os.close(writable)
        text = said.read()
    os.waitpid(lister, 0)
    return lister, text

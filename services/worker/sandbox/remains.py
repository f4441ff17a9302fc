"""Goes through folders that somebody hostile has filled, and removes them.

Owns the steps: from folder to folder by descriptors, never by long paths, never through a link; folders that may not be
entered are opened up where they are ours; depth costs neither descriptors nor stack without end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.worker.sandbox import kernel

MOST_LEVELS: Final = 128  # no build is that deep
SHALLOW: Final = 64  # to be removed level by level; what is deeper is brought up first
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS: Final = 0o700


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A name in a folder that is open as long as the entry is looked at. `path` is below where the walk began."""

    folder: int
    name: str
    path: str
    seen: os.stat_result


def below(folder: Path | str, *, leave_out: Callable[[str], bool] | None = None) -> Iterator[FolderEntry | None]:
    """Everything below in the order of names, a folder before what is in it. Null is what lies too deep or cannot be
    looked into; a folder that is left out is not entered."""
    try:
        stack = [_Level.opened(folder)]
    except FileNotFoundError:
        return
    except OSError:
        yield None
        return
    try:
        while stack:
            name = next(stack[-1].names, None)
            if name is None:
                stack.pop().close()
            elif leave_out is None or not leave_out(stack[-1].path + name):
                yield from _at(stack, name)
    finally:
        for level in stack:
            level.close()


@dataclass(slots=True)
class _Level:
    """A folder on the way down."""

    descriptor: int
    path: str
    names: Iterator[str]

    @classmethod
    def opened(cls, name: Path | str, above: int | None = None, path: str = "") -> _Level:
        descriptor = _opened(name, above)
        return cls(descriptor, path, iter(sorted(os.listdir(descriptor))))  # noqa: PTH208 - by its descriptor

    def close(self) -> None:
        os.close(self.descriptor)


def _at(stack: list[_Level], name: str) -> Iterator[FolderEntry | None]:
    """The entry of this name; a folder is entered."""
    here = stack[-1]
    try:
        entry = FolderEntry(
            here.descriptor, name, here.path + name, os.stat(name, dir_fd=here.descriptor, follow_symlinks=False)
        )
        yield entry
        if stat.S_ISDIR(entry.seen.st_mode):
            if len(stack) == MOST_LEVELS:
                yield None
            else:
                stack.append(_Level.opened(name, here.descriptor, f"{entry.path}/"))
    except FileNotFoundError:
        return  # gone meanwhile
    except OSError:
        yield None


def _opened(name: Path | str, folder: int | None = None) -> int:
    """Opened to be looked through, also where its owner may not: an owner may always say otherwise."""
    try:
        found = os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        _open_up(name, folder)
        found = os.open(name, _FOLDER, dir_fd=folder)
    if not os.fstat(found).st_mode & stat.S_IXUSR:
        with suppress(PermissionError):
            os.fchmod(found, _OURS)
    return found


def _open_up(name: Path | str, folder: int | None) -> None:
    """By the folder itself: whatever its name may be by now, nothing else is changed."""
    if not kernel.is_linux():
        os.chmod(name, _OURS, dir_fd=folder, follow_symlinks=False)
        return
    held = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        Path(f"/proc/self/fd/{held}").chmod(_OURS)
    finally:
        os.close(held)


def clear(folder: Path) -> bool:
    """Remove it with all that is below. False where something could not be removed."""
    empty(folder)
    try:
        folder.rmdir()
    except NotADirectoryError:
        folder.unlink(missing_ok=True)
    except OSError:
        return not os.path.lexists(folder)
    return True


def empty(folder: Path) -> None:
    """Remove all that is below, as far as it can be removed."""
    try:
        top = _opened(folder)
    except OSError:
        return
    try:
        _Removal(top).run()
    finally:
        os.close(top)


class _Removal:
    """Of what lies below one folder."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._brought_up = 0

    def run(self) -> None:
        """Again as long as something was brought up from below."""
        before = -1
        while before != self._brought_up:
            before = self._brought_up
            self._empty(self._top, depth=0)

    def _empty(self, folder: int, *, depth: int) -> None:
        with suppress(PermissionError):
            os.fchmod(folder, _OURS)
        for name in os.listdir(folder):
            try:
                os.unlink(name, dir_fd=folder)
            except (IsADirectoryError, PermissionError):  # POSIX's word for a folder is the latter
                self._remove(name, folder, depth=depth)
            except OSError:
                continue

    def _remove(self, name: str, folder: int, *, depth: int) -> None:
        with suppress(OSError):
            if depth == SHALLOW:
                _open_up(name, folder)  # it is written to when it moves
                self._brought_up += 1
                os.rename(name, f"deep-{self._brought_up}", src_dir_fd=folder, dst_dir_fd=self._top)
                return
            inner = _opened(name, folder)
            try:
                self._empty(inner, depth=depth + 1)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=folder)

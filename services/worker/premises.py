"""The folder below which a worker's attempts have theirs: it is one worker's alone, and what dead workers have left
goes.

    <workspaces>/<instance>/                 locked by the worker of that name as long as it lives, however it ends
    <workspaces>/<instance>/.worker          the mark: what lies beside it was made by workers
    <workspaces>/<instance>/<job>-<attempt>/ an attempt's, removed by its worker at its end

A worker that is killed removes nothing: the next worker on this machine does it, for its own name and for others
whose lock is free. Owns that rule. Refuses to remove anything from a folder without the mark, which is made in an empty
folder alone: a setting that names a folder with other things in it costs no files.
"""

import asyncio
import dataclasses
import fcntl
import logging
import math
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.worker.errors import PremisesUnusable
from services.worker.sandbox.command import Level
from services.worker.sandbox.errors import OutOfReach, SandboxMissing
from services.worker.sandbox.reach import PASSAGE, elsewhere
from services.worker.sandbox.remains import clear
from services.worker.sandbox.watch import free_bytes

logger = logging.getLogger(__name__)

MARK: Final = ".worker"
FREE_WITHIN_S: Final = 10.0  # somebody may be clearing it right now
LOOK_AGAIN_S: Final = 0.05
ROOM_BYTES: Final = 64 * 1024 * 1024  # less than any build needs
LOOK_FOR_ROOM_S: Final = 1.0
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Premises:
    """One worker's, until its process ends. `remains` are attempts of the dead, `others` folders of other workers."""

    folder: Path
    remains: tuple[Path, ...]
    others: tuple[Path, ...]
    lock: int
    is_borrowed: bool = False  # they are where everybody has something
    _looked_s: float = -math.inf  # when there was room last

    async def room(self) -> None:
        """Until there is some on the disk, as far as is known for a moment: a worker that has none would fail one job
        after the other."""
        if time.monotonic() - self._looked_s < LOOK_FOR_ROOM_S:
            return
        said = False
        while await asyncio.to_thread(free_bytes, self.folder) < ROOM_BYTES:
            if not said:
                logger.warning("nothing is taken: the disk of %s has less than %d bytes left", self.folder, ROOM_BYTES)
            said = True
            await asyncio.sleep(LOOK_FOR_ROOM_S)
        self._looked_s = time.monotonic()

    async def clear_remains(self, stopping: asyncio.Event) -> None:
        """While the worker already works: no new attempt has the name of an old one."""
        for path in self._removable():
            if stopping.is_set():
                return
            if not await asyncio.to_thread(clear, path):
                logger.warning("something that a dead worker has left in %s could not be removed", path)

    def leave(self) -> None:
        """Nothing of ours stays where everybody has something."""
        if self.is_borrowed:
            clear(self.folder)
            with suppress(OSError):  # another worker has its own there
                self.folder.parent.rmdir()

    def _removable(self) -> Iterator[Path]:
        yield from self.remains
        for folder in self.others:
            with _locked_now(folder) as is_locked:
                yield from _beside_the_mark(folder) if is_locked else ()


async def settle(
    workspaces: Path, instance: str, *, find: Callable[[Path], Awaitable[Level]]
) -> tuple[Premises, Level]:
    """In these workspaces, or in others where the users of commands do not get to them; with the level that is found
    there. Raises PremisesUnusable and SandboxMissing, which say what to do."""
    premises = take(workspaces, instance)
    try:
        return premises, await find(premises.folder)
    except OutOfReach:
        premises = dataclasses.replace(take(elsewhere(workspaces), instance), is_borrowed=True)
    try:
        return premises, await find(premises.folder)
    except SandboxMissing:
        premises.leave()
        raise


def take(workspaces: Path, instance: str) -> Premises:
    """For this process. Raises PremisesUnusable, which says what to do."""
    folder = workspaces / instance
    try:
        _make(workspaces)
        _make(folder)
        lock = _locked(folder)
        is_marked = (folder / MARK).exists()
        if not is_marked and not any(folder.iterdir()):
            (folder / MARK).touch(mode=0o600)
        remains = _beside_the_mark(folder) if is_marked else ()
        others = tuple(each for each in sorted(workspaces.iterdir()) if each != folder and _is_a_workers(each))
    except OSError as error:
        raise PremisesUnusable(folder=folder, why=error.strerror or str(error)) from error
    return Premises(folder, remains, others, lock)


def _make(folder: Path) -> None:
    """Where others may write, as in /tmp, somebody else may have been faster."""
    with suppress(FileExistsError):
        folder.mkdir(parents=True)
        folder.chmod(PASSAGE)
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode):
        raise PremisesUnusable(folder=folder, why="it is no folder")
    if seen.st_uid not in (0, os.getuid()):
        raise PremisesUnusable(folder=folder, why="it belongs to another user")


def _locked(folder: Path) -> int:
    """The kernel lets go of it when this process ends, in whatever way."""
    descriptor = os.open(folder, _FOLDER)
    until = time.monotonic() + FREE_WITHIN_S
    while not _is_locked(descriptor):
        if time.monotonic() > until:
            os.close(descriptor)
            raise PremisesUnusable(folder=folder, why="another worker has the same HEADGATE_INSTANCE")
        time.sleep(LOOK_AGAIN_S)
    return descriptor


@contextmanager
def _locked_now(folder: Path) -> Iterator[bool]:
    """Whether it is; not where its worker lives, or somebody else clears it."""
    try:
        descriptor = os.open(folder, _FOLDER)
    except OSError:
        yield False
        return
    try:
        yield _is_locked(descriptor)
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _beside_the_mark(folder: Path) -> tuple[Path, ...]:
    return tuple(each for each in sorted(folder.iterdir()) if each.name != MARK)


def _is_a_workers(folder: Path) -> bool:
    with suppress(OSError):
        seen = folder.lstat()
        return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and (folder / MARK).is_file()
    return False

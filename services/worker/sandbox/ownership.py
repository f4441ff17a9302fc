"""Whose a workspace is: handed over to the user of a command, and taken back.

Owns two rules. A number is held by one attempt at a time, on the whole machine. And nothing is given away but folders,
files of ours with one name, and what a command's user had before: a second name might be that of a file elsewhere.
"""

import fcntl
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.worker.sandbox.errors import CommandNotRun
from services.worker.sandbox.remains import FolderEntry, below

# One place for all workers of a machine; the second where the first is read-only. No command may enter either.
LOCKS: Final = (Path("/run/headgate-users"), Path("/tmp/headgate-users"))  # noqa: S108 - whose it is is looked at


@dataclass(frozen=True, slots=True)
class User:
    """One of the range, as long as its file is locked."""

    uid: int
    lock: int

    def release(self) -> None:
        os.close(self.lock)


def take_user(uids: tuple[int, int], *, locks: tuple[Path, ...] = LOCKS) -> User:
    """The first that is free."""
    first, last = uids
    folder = _folder_of_ours(locks)
    for uid in range(first, last + 1):
        lock = os.open(folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return User(uid, lock)
    raise CommandNotRun(why=f"all users from {first} to {last} are taken; make HEADGATE_SANDBOX_UIDS a longer range")


def _folder_of_ours(locks: tuple[Path, ...]) -> Path:
    """Where locks are kept. Another user who could enter it could hold them all."""
    for folder in locks:
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            seen = folder.lstat()
        except OSError:
            continue
        if seen.st_uid == os.getuid() and stat.S_IMODE(seen.st_mode) == stat.S_IRWXU and stat.S_ISDIR(seen.st_mode):
            return folder
        raise CommandNotRun(why=f"{folder} is for locks and must be a folder that only the worker's user may enter")
    raise CommandNotRun(why=f"none of {', '.join(map(str, locks))} can be made: locks of users are kept there")


def read_range(text: str) -> tuple[int, int]:
    """From `58000-58255`. Raises ValueError with what is wrong."""
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) < 2**31):
        raise ValueError(f"{text!r} is no range of user numbers such as 58000-58255")
    taken = [each.pw_uid for each in pwd.getpwall() if int(first) <= each.pw_uid <= int(last)]
    if taken:
        raise ValueError(f"{text} holds {taken[0]}, which is the user {pwd.getpwuid(taken[0]).pw_name} of this machine")
    return int(first), int(last)


def hand_over(folder: Path, uid: int, *, uids: tuple[int, int]) -> None:
    """To this user: what is ours alone, and what was another's of the range."""
    os.chown(folder, uid, uid, follow_symlinks=False)
    for entry in below(folder):
        if entry is not None and entry.seen.st_uid != uid and _is_to_give(entry, uids):
            _give(entry, uid)


def take_back(folder: Path, uid: int) -> None:
    """To us: what is this user's."""
    for entry in below(folder):
        if entry is not None and entry.seen.st_uid == uid:
            _give(entry, os.getuid())
    os.chown(folder, os.getuid(), os.getgid(), follow_symlinks=False)


def _is_to_give(entry: FolderEntry, uids: tuple[int, int]) -> bool:
    first, last = uids
    if first <= entry.seen.st_uid <= last:
        return True
    single = stat.S_ISDIR(entry.seen.st_mode) or entry.seen.st_nlink == 1
    return entry.seen.st_uid == os.getuid() and single


def _give(entry: FolderEntry, uid: int) -> None:
    group = os.getgid() if uid == os.getuid() else uid
    try:
        os.chown(entry.name, uid, group, dir_fd=entry.folder, follow_symlinks=False)
    except FileNotFoundError:
        return

"""Calls of the kernel that Python 3.11 has no name for, by their numbers. Refuses to know what they are good for."""

import ctypes
import os
import platform
import struct
import sys
from functools import cache
from typing import Any, Final

SUBREAPER: Final = 36
PARENT_DEATH_SIGNAL: Final = 1
DUMPABLE: Final = 4
NO_NEW_PRIVILEGES: Final = 38

NEW_MOUNTS: Final = 0x0002_0000
NEW_IPC: Final = 0x0800_0000
NEW_USER: Final = 0x1000_0000
NEW_PROCESSES: Final = 0x2000_0000
NEW_NETWORK: Final = 0x4000_0000

MOUNT_SET_ATTRIBUTES: Final = 442
PIVOT_ROOT: Final = 155 if platform.machine() == "x86_64" else 41
HERE: Final = -100
BELOW: Final = 0x8000
DETACH: Final = 2

READ_ONLY: Final = 1
NO_SETUID: Final = 2
NO_DEVICES: Final = 4
BIND: Final = 4096
RECURSIVE: Final = 16384
PRIVATE: Final = 1 << 18


def is_linux() -> bool:
    """Asked when it matters, so that it can be tried as elsewhere."""
    return sys.platform == "linux"


def prctl(option: int, value: int) -> None:
    _checked(_libc().prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def prctl_pointer(option: int, value: int, address: int) -> None:
    _checked(_libc().prctl(option, ctypes.c_ulong(value), ctypes.c_void_p(address), 0, 0), "prctl")


def unshare(flags: int) -> None:
    _checked(_libc().unshare(flags), "unshare")


def mount(source: str | None, target: str, kind: str | None, *, flags: int, data: str | None = None) -> None:
    words = (word.encode() if word is not None else None for word in (source, target, kind))
    _checked(_libc().mount(*words, ctypes.c_ulong(flags), data.encode() if data else None), f"mount {target}")


def set_read_only(path: str) -> None:
    """All that is mounted here and below."""
    _set_attributes(path, set_them=READ_ONLY | NO_SETUID, recursively=True)


def set_writable(path: str) -> None:
    _set_attributes(path, clear_them=READ_ONLY)


def _set_attributes(path: str, *, set_them: int = 0, clear_them: int = 0, recursively: bool = False) -> None:
    wanted = struct.pack("4Q", set_them, clear_them, 0, 0)
    call(MOUNT_SET_ATTRIBUTES, HERE, path.encode(), BELOW if recursively else 0, ctypes.c_char_p(wanted), len(wanted))


def change_root(folder: str) -> None:
    """What was there before is no more."""
    os.chdir(folder)
    call(PIVOT_ROOT, b".", b".")
    _checked(_libc().umount2(b".", DETACH), "umount2")
    os.chdir("/")


def call(number: int, *arguments: Any) -> int:
    """A system call that has no function of its own; integers travel as long ones."""
    longs = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    return _checked(_libc().syscall(ctypes.c_long(number), *longs), f"system call {number}")


@cache
def _libc() -> ctypes.CDLL:
    if not is_linux():
        raise OSError(f"{sys.platform} has no such calls")
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result

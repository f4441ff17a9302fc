"""Landlock: what a process takes from itself and all that it starts, for ever: files, TCP ports, signals to others.

Owns the rules in the kernel's shape. It needs no right, works inside of containers, and what is confined by it can
neither read the memory nor the environment of a process that is not. A right that the kernel's version does not know
yet is left out; `levels` says what is missing then.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from services.worker.sandbox import kernel
from services.worker.sandbox.command import KNOWS_PORTS, KNOWS_SCOPES

CREATE: Final = 444
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446
BENEATH: Final = 1
PORT: Final = 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHARACTERS, _MAKE_BLOCKS = 1 << 6, 1 << 11
_MOVE, _TRUNCATE, _DEVICE_CONTROL = 1 << 13, 1 << 14, 1 << 15
_READ: Final = _EXECUTE | _READ_FILE | _READ_FOLDER
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_CONTROL
_BIND, _CONNECT = 1, 1 << 1
_SCOPES: Final = 0b11  # abstract sockets and signals

DEVICES: Final = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
)


@dataclass(frozen=True, slots=True)
class Fence:
    """What is left to a process. Ports are those it may connect to, and with them there is none it may have for itself;
    without `ports` all of them. Without `files` all files."""

    files: bool
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    ports: tuple[int, ...] | None = None


def version() -> int:
    """0 where there is none, or where it is switched off."""
    try:
        return kernel.call(CREATE, None, 0, 1)
    except OSError:
        return 0


def restrict(fence: Fence, *, version: int) -> None:
    """For this process and all it starts. Needs that no new privileges can be had."""
    known = _known(version) if version else 0
    handled = known if fence.files else 0
    ports = fence.ports is not None and version >= KNOWS_PORTS
    scopes = _SCOPES if version >= KNOWS_SCOPES else 0
    if not (handled or ports or scopes):
        return
    words = (handled, _BIND | _CONNECT if ports else 0, scopes)[
        : 1 + (version >= KNOWS_PORTS) + (version >= KNOWS_SCOPES)
    ]
    attributes = struct.pack(f"{len(words)}Q", *words)
    rules = kernel.call(CREATE, ctypes.c_char_p(attributes), len(attributes), 0)
    try:
        if fence.files:
            _allow(rules, fence.writes, known & ~(_MAKE_CHARACTERS | _MAKE_BLOCKS))
            _allow(rules, fence.reads, known & _READ)
            _allow(rules, DEVICES, known & (_WRITE_FILE | _READ_FILE | _READ_FOLDER | _TRUNCATE | _DEVICE_CONTROL))
        for port in fence.ports or () if ports else ():
            kernel.call(ADD_RULE, rules, PORT, ctypes.c_char_p(struct.pack("=QQ", _CONNECT, port)), 0)
        kernel.call(RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _known(version: int) -> int:
    """The rights over files that this version can take away."""
    newest = {1: 12, 2: 13, 3: 14, 4: 14}.get(version, 15)
    return (1 << (newest + 1)) - 1


def _allow(rules: int, paths: Iterable[str], rights: int) -> None:
    """Below each of these. What is not there, or cannot be reached, is not needed."""
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            continue
        try:
            here = rights if os.path.isdir(path) else rights & _OF_FILES  # noqa: PTH112 - strings travel here
            kernel.call(ADD_RULE, rules, BENEATH, ctypes.c_char_p(struct.pack("=Qi", here, descriptor)), 0)
        finally:
            os.close(descriptor)

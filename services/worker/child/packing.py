"""A folder as a `.tar.gz` that tells nothing of the machine it was made on, and that is the same for the same content.

Owns what may be in a result or a checkpoint: plain files and folders, their names below the folder, and whether a file
may be run. Packing leaves out links, devices, sockets and what cannot be read, and follows nothing: who unpacks a
result should not have to trust it. `unpacking`, beside it, takes out what is packed here, and refuses all else.
"""

from __future__ import annotations

import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Final

from services.worker.sandbox.remains import MOST_LEVELS, FolderEntry, below

MAX_ENTRIES: Final = 200_000
UNPACKED: Final = 20  # times the packed size, at most: text shrinks to a fifth, nothing honest to a twentieth
LEVEL: Final = 4
GZIP: Final = 16  # the container, with no time and no name
SMALL_BYTES: Final = 32 * 1024  # of a tar that is squeezed in memory
SMALL_WINDOW: Final = (GZIP + 12, 5)  # a window of 4 KiB: each page of a larger one is new to a process of one job
READ_BYTES: Final = 64 * 1024
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for ever


class ResultTooLarge(Exception):
    """It was not kept: {why}."""

    def __init__(self, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(why=why))


def pack(
    folder: Path,
    target: Path,
    *,
    max_bytes: int,
    leave_out: Callable[[PurePosixPath], bool] = lambda _: False,
    in_memory: bool = False,
) -> bytes | int | None:
    """Pack the folder into the target file; its size, or null where there is no such folder. What is small is given as
    bytes where it may stay `in_memory`, and no file is made."""
    if not folder.is_dir() or folder.is_symlink():
        return None
    tar, begun = _tar(folder, most_bytes=UNPACKED * max_bytes, leave_out=leave_out), bytearray()
    for part in tar:
        begun += part
        if len(begun) > SMALL_BYTES:
            return _squeezed_into(target, chain([bytes(begun)], tar), max_bytes=max_bytes)
    squeezed = zlib.compressobj(LEVEL, zlib.DEFLATED, *SMALL_WINDOW)
    content = squeezed.compress(begun) + squeezed.flush()
    if len(content) > max_bytes:
        raise _larger_than(max_bytes)
    return content if in_memory else target.write_bytes(content)


def _squeezed_into(target: Path, parts: Iterable[bytes], *, max_bytes: int) -> int:
    squeezed = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP + zlib.MAX_WBITS)
    with target.open("wb") as file:
        for part in parts:
            file.write(squeezed.compress(part))
            if file.tell() > max_bytes:  # what is still on its way through zlib is found at the end
                raise _larger_than(max_bytes)
        file.write(squeezed.flush())
        size = file.tell()
    if size > max_bytes:
        raise _larger_than(max_bytes)
    return size


def _larger_than(max_bytes: int) -> ResultTooLarge:
    return ResultTooLarge(f"it is larger than {max_bytes} bytes")


def _tar(folder: Path, *, most_bytes: int, leave_out: Callable[[PurePosixPath], bool]) -> Iterator[bytes]:
    """With two empty blocks at its end, and in whole records. Made by `TarInfo` alone, which costs the process of an
    attempt a third of what `TarFile` does: that is used once in its life, and all of it is pages that it copies."""
    size = 0
    for part in _entries(folder, most_bytes, leave_out):
        size += len(part)
        yield part
    end = size + 2 * tarfile.BLOCKSIZE
    yield tarfile.NUL * (end + -end % tarfile.RECORDSIZE - size)


def _entries(folder: Path, left_bytes: int, leave_out: Callable[[PurePosixPath], bool]) -> Iterator[bytes]:
    left_entries = MAX_ENTRIES
    for entry in below(folder, leave_out=lambda path: leave_out(PurePosixPath(path))):
        if entry is None:
            raise ResultTooLarge(f"it is more than {MOST_LEVELS} folders deep, or has folders that cannot be read")
        left_bytes -= yield from _entry(entry, left_bytes)
        left_entries -= 1
        if left_entries < 0:
            raise ResultTooLarge(f"it has more than {MAX_ENTRIES} files and folders")


def _entry(found: FolderEntry, left_bytes: int) -> Generator[bytes, None, int]:
    """A folder, or a file with its content; the bytes that it has."""
    entry = tarfile.TarInfo(found.path)
    entry.mode = 0o755 if found.seen.st_mode & stat.S_IXUSR else 0o644
    if stat.S_ISDIR(found.seen.st_mode):
        entry.type = tarfile.DIRTYPE
        yield _header(entry)
    elif stat.S_ISREG(found.seen.st_mode):
        try:
            descriptor = os.open(found.name, _READ, dir_fd=found.folder)
        except OSError:
            return 0
        with os.fdopen(descriptor, "rb") as content:
            seen = os.fstat(descriptor)
            if not stat.S_ISREG(seen.st_mode):
                return 0
            if seen.st_size > left_bytes:
                raise ResultTooLarge("unpacked it is far larger than what may be kept")
            entry.size = left = seen.st_size
            yield _header(entry)
            while left and (part := content.read(min(left, READ_BYTES))):
                left -= len(part)
                yield part
        if left:
            raise OSError("unexpected end of data")  # it has become shorter meanwhile
        yield tarfile.NUL * (-entry.size % tarfile.BLOCKSIZE)
    return entry.size


def _header(entry: tarfile.TarInfo) -> bytes:
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")

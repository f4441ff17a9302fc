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
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from services.worker.sandbox.remains import MOST_LEVELS, FolderEntry, below

MAX_ENTRIES: Final = 200_000
UNPACKED: Final = 20  # times the packed size, at most: text shrinks to a fifth, nothing honest to a twentieth
LEVEL: Final = 4
GZIP: Final = 16 + zlib.MAX_WBITS  # the container, with no time and no name
READ_BYTES: Final = 64 * 1024
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for ever


class ResultTooLarge(Exception):
    """It was not kept: {why}."""

    def __init__(self, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(why=why))


def pack(
    folder: Path, target: Path, *, max_bytes: int, leave_out: Callable[[PurePosixPath], bool] = lambda _: False
) -> int | None:
    """Pack the folder into the target file; its size, or null where there is no such folder."""
    if not folder.is_dir() or folder.is_symlink():
        return None
    with target.open("wb") as file:
        archive = _Archive(file)
        left_bytes, left_entries = UNPACKED * max_bytes, MAX_ENTRIES
        for entry in below(folder, leave_out=lambda path: leave_out(PurePosixPath(path))):
            if entry is None:
                raise ResultTooLarge(f"it is more than {MOST_LEVELS} folders deep, or has folders that cannot be read")
            left_bytes -= _added(archive, entry, left_bytes)
            left_entries -= 1
            if left_entries < 0:
                raise ResultTooLarge(f"it has more than {MAX_ENTRIES} files and folders")
            if file.tell() > max_bytes:  # what is still on its way through zlib is found at the end
                raise ResultTooLarge(f"it is larger than {max_bytes} bytes")
        archive.close()
    size = target.stat().st_size
    if size > max_bytes:
        raise ResultTooLarge(f"it is larger than {max_bytes} bytes")
    return size


def _added(archive: _Archive, found: FolderEntry, left_bytes: int) -> int:
    """The bytes that it has."""
    entry = tarfile.TarInfo(found.path)
    entry.mode = 0o755 if found.seen.st_mode & stat.S_IXUSR else 0o644
    if stat.S_ISDIR(found.seen.st_mode):
        entry.type = tarfile.DIRTYPE
        archive.add(entry)
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
            entry.size = seen.st_size
            archive.add(entry, content)
    return entry.size


class _Archive:
    """A tar on its way through gzip, which costs the process of an attempt a third of what `TarFile` over `GzipFile`
    does: that is used once in its life, and all of it is pages that it has to copy."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._squeezed = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        self._size = 0

    def add(self, entry: tarfile.TarInfo, content: BinaryIO | None = None) -> None:
        """A file that has become shorter meanwhile is an OSError, as it is for `TarFile`."""
        self._write(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        if content is not None:
            left = entry.size
            while left and (part := content.read(min(left, READ_BYTES))):
                left -= len(part)
                self._write(part)
            if left:
                raise OSError("unexpected end of data")
            self._write(tarfile.NUL * (-self._size % tarfile.BLOCKSIZE))

    def close(self) -> None:
        """With two empty blocks, and in whole records."""
        end = self._size + 2 * tarfile.BLOCKSIZE
        self._write(tarfile.NUL * (end + -end % tarfile.RECORDSIZE - self._size))
        self._file.write(self._squeezed.flush())

    def _write(self, part: bytes) -> None:
        self._size += len(part)
        self._file.write(self._squeezed.compress(part))

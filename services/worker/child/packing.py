"""A folder as a `.tar.gz` that tells nothing of the machine it was made on, and that is the same for the same content.

Owns what may be in a result or a checkpoint: plain files and folders, their names below the folder, and whether a file
may be run. Packing leaves out links, devices, sockets and what cannot be read, and follows nothing: whoever unpacks a
result should not have to trust it. Unpacking refuses an archive that has anything else, as a whole.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

from services.worker.sandbox.remains import MOST_LEVELS, Entry, below, empty

MAX_ENTRIES: Final = 200_000
UNPACKED: Final = 20  # times the packed size, at most: text shrinks to a fifth, nothing honest to a twentieth
LARGEST_READ: Final = 1024 * 1024  # headers are read as a whole; an honest one is a few hundred bytes
HEADERS_BYTES: Final = 4096  # for each entry, at most on average
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for ever
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ResultTooLarge(Exception):
    """It was not kept: {why}."""

    def __init__(self, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(why=why))


class ArchiveRefused(Exception):
    """The archive cannot be unpacked: {why}."""

    def __init__(self, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(why=why))


def pack(
    folder: Path, target: Path, *, max_bytes: int, leave_out: Callable[[PurePosixPath], bool] = lambda _: False
) -> int | None:
    """Pack the folder into the target file; its size, or null where there is no such folder."""
    if not folder.is_dir() or folder.is_symlink():
        return None
    with (
        target.open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="", compresslevel=4) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as archive,
    ):
        left_bytes, left_entries = UNPACKED * max_bytes, MAX_ENTRIES
        for entry in below(folder, leave_out=lambda path: leave_out(PurePosixPath(path))):
            if entry is None:
                raise ResultTooLarge(f"it is more than {MOST_LEVELS} folders deep, or has folders that cannot be read")
            left_bytes -= _added(archive, entry, left_bytes)
            left_entries -= 1
            if left_entries < 0:
                raise ResultTooLarge(f"it has more than {MAX_ENTRIES} files and folders")
            if file.tell() > max_bytes:  # what is still on its way through gzip is found at the end
                raise ResultTooLarge(f"it is larger than {max_bytes} bytes")
    size = target.stat().st_size
    if size > max_bytes:
        raise ResultTooLarge(f"it is larger than {max_bytes} bytes")
    return size


def _added(archive: tarfile.TarFile, found: Entry, left_bytes: int) -> int:
    """The bytes that it has."""
    entry = tarfile.TarInfo(found.path)
    entry.mode = 0o755 if found.seen.st_mode & stat.S_IXUSR else 0o644
    if stat.S_ISDIR(found.seen.st_mode):
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
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
            archive.addfile(entry, content)
    return entry.size


def unpack(source: Path, folder: Path, *, max_bytes: int, max_entries: int) -> None:
    """Plain files and folders, below the folder and nowhere else, no more than that; or nothing. The folder is empty,
    or it is made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with gzip.open(source) as content:
            bounded = _Bounded(content, most=max_bytes + HEADERS_BYTES * (max_entries + 1))
            with tarfile.open(fileobj=bounded, mode="r:") as archive:
                _unpack(archive, folder, max_bytes=max_bytes, max_entries=max_entries)
            while bounded.read(LARGEST_READ // 4):  # to its end, where its checksum is
                pass
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        empty(folder)
        raise ArchiveRefused(str(error) or "it is cut off") from error
    except ArchiveRefused:
        empty(folder)
        raise


def _unpack(archive: tarfile.TarFile, folder: Path, *, max_bytes: int, max_entries: int) -> None:
    left_bytes, left_entries = max_bytes, max_entries
    for entry in archive:
        left_bytes -= entry.size
        left_entries -= 1
        if left_bytes < 0 or left_entries < 0:
            raise ArchiveRefused(f"it has more than {max_bytes} bytes, or more than {max_entries} entries")
        target = folder / _name_of(entry)
        if entry.type == tarfile.DIRTYPE:
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif entry.type in {tarfile.REGTYPE, tarfile.AREGTYPE}:
            _write(archive, entry, target)
        else:
            raise ArchiveRefused(f"{entry.name!r} is neither a file nor a folder")


def _name_of(entry: tarfile.TarInfo) -> PurePosixPath:
    name = PurePosixPath(entry.name)
    if name.is_absolute() or ".." in name.parts or "\0" in entry.name or len(name.parts) > MOST_LEVELS:
        raise ArchiveRefused(f"{entry.name[:200]!r} leads out of the folder, or too deep into it")
    return name


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = archive.extractfile(entry)
    if content is None:
        raise ArchiveRefused(f"{entry.name!r} has no content")
    with os.fdopen(os.open(target, _WRITE, 0o700 if entry.mode & stat.S_IXUSR else 0o600), "wb") as file:
        while part := content.read(LARGEST_READ // 4):
            file.write(part)


class _Bounded(io.RawIOBase):
    """What is being unpacked, as far as it may go and in parts of a bounded size."""

    def __init__(self, content: gzip.GzipFile, *, most: int) -> None:
        super().__init__()
        self._content = content
        self._most = most

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LARGEST_READ or self._content.tell() + size > self._most:
            raise ArchiveRefused("a part of it is larger than anything that was packed here")
        return self._content.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET or offset > self._most:
            raise ArchiveRefused("it is larger than it may be")
        return self._content.seek(offset)

    def tell(self) -> int:
        return self._content.tell()

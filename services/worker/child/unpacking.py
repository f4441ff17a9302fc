"""A `.tar.gz` of which nothing is believed, unpacked.

Owns what may come out of an archive: plain files and folders, below the folder that was named and as many as were
allowed, for nobody but their owner, and whether a file may be run. Refuses anything else, and then the archive as a
whole: links, devices, pipes, names that lead elsewhere, more than there was to be. `tarfile` takes an archive apart and
writes none of it: its own filter is not in every Python (3.11.4 has it, 3.11.2 does not), and lets links through.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from libs.runtime.errors import ArchiveRefused

LARGEST_READ: Final = 1024 * 1024  # headers are held as a whole; an honest one is a few hundred bytes
HEADERS_BYTES: Final = 4096  # for each entry, at most on average
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """What an archive may hold."""

    size_bytes: int
    entries: int
    levels: int


def unpack(source: Path | BinaryIO, folder: Path, *, most: Most) -> None:
    """Plain files and folders, below the folder and nowhere else, no more than that; or nothing. The folder is empty,
    or it is made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with gzip.open(source) as content:
            bounded = _Bounded(content, most=most.size_bytes + HEADERS_BYTES * (most.entries + 1))
            with tarfile.open(fileobj=bounded, mode="r:") as archive:
                for entry in bounded.entries(archive, most):
                    _take_out(archive, entry, folder, levels=most.levels)
            bounded.finish()
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError) as error:
        _empty(folder)
        raise ArchiveRefused(str(error) or "it is cut off") from error
    except ArchiveRefused:
        _empty(folder)
        raise


def _empty(folder: Path) -> None:
    """Of what was unpacked: plain files, and folders that are ours to enter."""
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


def _take_out(archive: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path, *, levels: int) -> None:
    name = _name_of(entry, levels)
    if entry.type == tarfile.DIRTYPE:
        _make(folder, name)
    elif entry.type in {tarfile.REGTYPE, tarfile.AREGTYPE}:
        _make(folder, name.parent)
        _write(archive, entry, folder / name)
    else:
        raise ArchiveRefused(f"{entry.name!r} is neither a file nor a folder")


def _name_of(entry: tarfile.TarInfo, levels: int) -> PurePosixPath:
    name = PurePosixPath(entry.name)
    if name.is_absolute() or ".." in name.parts or "\0" in entry.name or len(name.parts) > levels:
        raise ArchiveRefused(f"{entry.name[:200]!r} leads out of the folder, or too deep into it")
    return name


def _make(folder: Path, name: PurePosixPath) -> None:
    """Level by level: `mkdir` would make those above for everybody."""
    for each in reversed((name, *name.parents)):
        (folder / each).mkdir(mode=0o700, exist_ok=True)


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    content = archive.extractfile(entry)
    if content is None:
        raise ArchiveRefused(f"{entry.name!r} has no content")
    with os.fdopen(os.open(target, _WRITE, 0o700 if entry.mode & stat.S_IXUSR else 0o600), "wb") as file:
        while part := content.read(LARGEST_READ // 4):
            file.write(part)


class _Bounded(io.RawIOBase):
    """What is being unpacked, as far as it may go. What `tarfile` reads without a seek, in one part or in many, are the
    headers of an entry: it holds them in memory."""

    def __init__(self, content: gzip.GzipFile, *, most: int) -> None:
        super().__init__()
        self._content = content
        self._most = most
        self._held = 0
        self._last = b""

    def entries(self, archive: tarfile.TarFile, most: Most) -> Iterator[tarfile.TarInfo]:
        left_bytes, left_entries = most.size_bytes, most.entries
        for entry in archive:
            self._held = 0
            left_bytes -= entry.size
            left_entries -= 1
            if entry.size < 0 or left_bytes < 0 or left_entries < 0:
                raise ArchiveRefused(f"it has more than {most.size_bytes} bytes, or more than {most.entries} entries")
            yield entry

    def finish(self) -> None:
        """To its end, where its checksum is. `tarfile` takes an entry that it cannot read for the end, unless it is
        the first one."""
        if any(self._last):
            raise ArchiveRefused("an entry of it cannot be read")
        while self.read(LARGEST_READ // 4):
            self._held = 0

    def read(self, size: int = -1) -> bytes:
        self._held += max(size, 0)
        if size < 0 or self._held > LARGEST_READ or self._content.tell() + size > self._most:
            raise ArchiveRefused("a part of it is larger than anything that was packed here")
        self._last = self._content.read(size)
        return self._last

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET or offset > self._most:
            raise ArchiveRefused("it is larger than it may be")
        self._held = 0
        return self._content.seek(offset)

    def tell(self) -> int:
        return self._content.tell()

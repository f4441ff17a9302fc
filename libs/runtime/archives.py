"""A `.tar.gz` of which nothing is believed, read entry by entry.

Owns what counts as an entry: plain files and folders, below the archive's own root, as many and as large as was
allowed. Refuses anything else, and then the archive as a whole: links, devices, pipes, names that lead elsewhere, more
than there was to be. `tarfile` takes an archive apart and writes none of it: its own filter is not in every Python
(3.11.4 has it, 3.11.2 does not), and lets links through. The client imports nothing of ours, and has a rule of its own
for a user's machine: `headgate/unpacking.py`.
"""

import gzip
import io
import os
import stat
import tarfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Final

from libs.runtime.errors import ArchiveRefused

LARGEST_READ: Final = 1024 * 1024  # headers are held as a whole; an honest one is a few hundred bytes
HEADERS_BYTES: Final = 4096  # for each entry, at most on average
UNREADABLE: Final = (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """What an archive may hold."""

    size_bytes: int
    entries: int
    levels: int


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A file or a folder. Its content can be read until the next entry is asked for."""

    path: PurePosixPath
    found: tarfile.TarInfo
    archive: tarfile.TarFile

    @property
    def is_folder(self) -> bool:
        return self.found.type == tarfile.DIRTYPE

    @property
    def size(self) -> int:
        return self.found.size

    @property
    def may_be_run(self) -> bool:
        return bool(self.found.mode & stat.S_IXUSR)

    def content(self) -> IO[bytes]:
        content = self.archive.extractfile(self.found)
        if content is None:
            raise ArchiveRefused(f"{self.found.name!r} has no content")
        return content


def entries_of(source: Path | BinaryIO, *, most: Most) -> Iterator[ArchiveEntry]:
    """Each entry in order. An archive is whole, and its checksum right, when the last one has been given."""
    with refusing(), gzip.open(source) as content:
        bounded = _Bounded(content, most=most.size_bytes + HEADERS_BYTES * (most.entries + 1))
        with tarfile.open(fileobj=bounded, mode="r:") as archive:
            for entry in bounded.entries(archive, most):
                yield ArchiveEntry(_path_of(entry, most.levels), entry, archive)
        bounded.finish()


@contextmanager
def refusing() -> Generator[None]:
    """Whatever goes wrong while an archive is read is the archive's fault."""
    try:
        yield
    except UNREADABLE as error:
        raise ArchiveRefused(str(error) or "it is cut off") from error


def _path_of(entry: tarfile.TarInfo, levels: int) -> PurePosixPath:
    path = PurePosixPath(entry.name)
    if path.is_absolute() or ".." in path.parts or "\0" in entry.name or len(path.parts) > levels:
        raise ArchiveRefused(f"{entry.name[:200]!r} leads out of the folder, or too deep into it")
    if entry.type not in {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE} or entry.issparse():
        raise ArchiveRefused(f"{entry.name!r} is neither a file nor a folder")
    return path


class _Bounded(io.RawIOBase):
    """What is being read, as far as it may go. What `tarfile` reads without a seek, in one part or in many, are the
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

"""A result of which nothing is believed, unpacked below one folder.

Owns what may come out of it: plain files and folders, as many and as large as any result may be, below the folder by
their names and by whatever links that already holds. Refuses anything else, and then the result as a whole: it is
unpacked into a folder beside the one that was named, or within it where that is there, and moved when it was good to
its end. Modes keep nothing but whether a file may be run.
"""

import gzip
import io
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final
from uuid import uuid4

from headgate.errors import NotStored, UnsafeArchive

MOST_BYTES: Final = 4 * 1024**3  # of the archive, unpacked
MOST_ENTRIES: Final = 200_000
MOST_LEVELS: Final = 128
MOST_HELD: Final = 1024 * 1024  # of an entry's headers, which `tarfile` has in memory: an honest one's are some hundred
PIECE_BYTES: Final = 256 * 1024


def forbidden_on(system: str) -> frozenset[str]:
    """Characters of no name. The last two lead elsewhere on Windows; anywhere else they are letters like any other."""
    return frozenset("\0\\:" if system == "nt" else "\0")


FORBIDDEN = forbidden_on(os.name)


def unpack(archive: BinaryIO, folder: Path) -> tuple[Path, ...]:
    """The files, each where it is now. A folder that was not there is there with all of it, or not at all. In one that
    was, files of the same name are replaced, one after the other: who is stopped in the middle of that has some new and
    some old ones, each whole. OSError where this machine does not take it."""
    base = Path(os.path.realpath(folder))
    was_there = base.is_dir()
    home = base if was_there else base.parent
    home.mkdir(parents=True, exist_ok=True)
    stage = home / f".{uuid4().hex}.part"
    stage.mkdir()
    try:
        folders, files = _taken_out(archive, stage)
        if was_there:
            _move(stage, base, folders, files)
        else:
            stage.rename(base)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return tuple(folder / name for name in files)


def checked_name(entry: tarfile.TarInfo) -> PurePosixPath:
    """Where it goes, below the folder."""
    name = PurePosixPath(entry.name)
    if name.is_absolute() or ".." in name.parts or FORBIDDEN & set(entry.name) or len(name.parts) > MOST_LEVELS:
        raise UnsafeArchive(f"{entry.name[:200]!r} leads out of the folder, or too deep into it")
    if entry.type not in {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE} or entry.issparse():
        raise UnsafeArchive(f"{entry.name[:200]!r} is neither a file nor a folder")
    if not entry.name or not (name.parts or entry.isdir()):
        raise UnsafeArchive("something in the result has no name")
    return name


# ── out of the archive ────────────────────────────────────────────────────────


def _taken_out(archive: BinaryIO, stage: Path) -> tuple[list[PurePosixPath], list[PurePosixPath]]:
    """Its folders and its files, which are in the stage now."""
    folders, files = list[PurePosixPath](), list[PurePosixPath]()
    try:
        with gzip.open(archive) as content:
            bounded = _Bounded(content)
            with tarfile.open(fileobj=bounded, mode="r:") as entries:
                for entry in bounded.counted(entries):
                    name = checked_name(entry)
                    _put(entries, entry, stage / name)
                    (folders if entry.isdir() else files).append(name)
                bounded.require_end()
    except (tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError, ValueError, RecursionError) as error:
        raise UnsafeArchive(f"the result is no .tar.gz that can be unpacked: {error}") from error
    return folders, files


def _put(entries: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    try:
        if entry.isdir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(entries, entry, target)
    except (FileExistsError, NotADirectoryError) as error:
        raise UnsafeArchive(f"{entry.name[:200]!r} is in the result twice, or both a file and a folder") from error


def _write(entries: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    source = entries.extractfile(entry)
    assert source is not None
    with source, target.open("xb") as file:
        while piece := source.read(PIECE_BYTES):
            file.write(piece)
    if entry.mode & stat.S_IXUSR:
        target.chmod(target.stat().st_mode | 0o111)


class _Bounded(io.RawIOBase):
    """The archive as `tarfile` reads it: forwards, no further than any result goes, and of headers, which are what it
    reads without a seek, no more than fits in memory."""

    def __init__(self, content: gzip.GzipFile) -> None:
        super().__init__()
        self._content = content
        self._held = 0
        self._last = b""

    def require_end(self) -> None:
        """`tarfile` takes whatever it cannot read, behind the first entry, for the end of the archive."""
        if any(self._last):
            raise UnsafeArchive("an entry of the result cannot be read")

    def counted(self, entries: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        for number, entry in enumerate(entries):
            if number >= MOST_ENTRIES or not 0 <= entry.size <= MOST_BYTES:
                raise UnsafeArchive(f"the result has more than {MOST_ENTRIES} entries, or one of {entry.size} bytes")
            self._held = 0
            yield entry

    def read(self, size: int = -1) -> bytes:
        self._held += size
        if size < 0 or self._held > MOST_HELD or self.tell() + size > MOST_BYTES:
            raise UnsafeArchive("the result is larger than any may be, or a part of it is")
        self._last = self._content.read(size)
        return self._last

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET or not self.tell() <= offset <= MOST_BYTES:
            raise UnsafeArchive("the result is larger than any may be, or leads back into itself")
        self._held = 0
        return self._content.seek(offset)

    def tell(self) -> int:
        return self._content.tell()


# ── into a folder that is there ───────────────────────────────────────────────


def _move(stage: Path, base: Path, folders: Iterable[PurePosixPath], files: Iterable[PurePosixPath]) -> None:
    """Each place is looked at before the first file is moved."""
    made = {*folders, *(name.parent for name in files)}
    for name in made:
        if not Path(os.path.realpath(base / name)).is_relative_to(base):
            raise UnsafeArchive(f"{str(name)!r} leads out of the folder by a link that is in it")
    for name in files:
        if (base / name).is_dir() and not (base / name).is_symlink():
            raise NotStored(f"{base / name} is a folder, and a file in the result")
    for name in made:
        (base / name).mkdir(parents=True, exist_ok=True)
    for name in files:
        (stage / name).replace(base / name)

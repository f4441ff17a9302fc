"""A result of which nothing is believed, unpacked below one folder.

The rules are those of `tarfile`'s `data` filter, which not every Python 3.11 has, and one more: plain files and folders
only, as links are in no result. Names stay below the folder; modes keep nothing but whether a file may be run.
"""

from __future__ import annotations

import stat
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from headgate.errors import UnsafeArchive

MOST_BYTES: Final = 4 * 1024**3
PIECE_BYTES: Final = 256 * 1024


def unpack(archive: BinaryIO, folder: Path) -> tuple[Path, ...]:
    """The files, each where it is now. One that was there before is replaced; where one name is refused, nothing is."""
    try:
        with tarfile.open(fileobj=archive, mode="r:gz") as entries:
            names = {entry: checked_name(entry) for entry in entries}
            if sum(entry.size for entry in names) > MOST_BYTES:
                raise UnsafeArchive(f"the result holds more than {MOST_BYTES} bytes")
            folder.mkdir(parents=True, exist_ok=True)
            for entry, name in names.items():
                _put(entries, entry, folder / name)
            return tuple(folder / name for entry, name in names.items() if not entry.isdir())
    except (tarfile.TarError, zlib.error, EOFError, ValueError) as error:
        raise UnsafeArchive(f"the result is no .tar.gz that can be unpacked: {error}") from error


def checked_name(entry: tarfile.TarInfo) -> PurePosixPath:
    """Where it goes, below the folder."""
    name = PurePosixPath(entry.name)
    if name.is_absolute() or ".." in name.parts or "\0" in entry.name or "\\" in entry.name:
        raise UnsafeArchive(f"{entry.name[:200]!r} leads out of the folder")
    if not (entry.isreg() or entry.isdir()):
        raise UnsafeArchive(f"{entry.name[:200]!r} is neither a file nor a folder")
    return name


def _put(entries: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    if entry.isdir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        _write(entries, entry, target)


def _write(entries: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    source = entries.extractfile(entry)
    assert source is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    with source, target.open("xb") as file:
        while piece := source.read(PIECE_BYTES):
            file.write(piece)
    if entry.mode & stat.S_IXUSR:
        target.chmod(target.stat().st_mode | 0o111)

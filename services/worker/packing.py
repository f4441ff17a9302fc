"""A folder as a `.tar.gz` that tells nothing of the machine it was made on, and that is the same for the same content.

Owns what may be in a result: plain files and folders, their names below the folder, and whether a file may be run.
Leaves out links, devices and sockets: whoever unpacks a result should not have to trust it.
"""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path


class ResultTooLarge(Exception):
    """The result is larger than {max_bytes} bytes. It was not kept."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__((type(self).__doc__ or "").format(max_bytes=max_bytes))


def pack(folder: Path, target: Path, *, max_bytes: int) -> int | None:
    """Pack the folder into the target file; its size, or null where there is no such folder."""
    if not folder.is_dir() or folder.is_symlink():
        return None
    with (
        target.open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as archive,
    ):
        for path in _inside(folder):
            _add(archive, path, str(path.relative_to(folder)))
            if file.tell() > max_bytes:  # what is still on its way through gzip is found at the end
                raise ResultTooLarge(max_bytes)
    size = target.stat().st_size
    if size > max_bytes:
        raise ResultTooLarge(max_bytes)
    return size


def _inside(folder: Path) -> Iterator[Path]:
    """Everything below, folders before what is in them, in the order of names."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        yield Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _inside(Path(entry.path))


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    seen = path.lstat()
    entry = tarfile.TarInfo(name)
    entry.mode = 0o755 if seen.st_mode & stat.S_IXUSR else 0o644
    if stat.S_ISDIR(seen.st_mode):
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    elif stat.S_ISREG(seen.st_mode):
        entry.size = seen.st_size
        with path.open("rb") as content:
            archive.addfile(entry, content)

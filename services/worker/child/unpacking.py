"""A `.tar.gz` of which nothing is believed, unpacked.

Owns what may come out of an archive (`libs.runtime.archives` says what may be in it): plain files and folders, below
the folder that was named, for their owner alone, and whether a file may be run; or nothing.
"""

import os
import shutil
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from libs.runtime.archives import LARGEST_READ, ArchiveEntry, Most, entries_of, refusing
from libs.runtime.errors import ArchiveRefused

_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def unpack(source: Path | BinaryIO, folder: Path, *, most: Most) -> None:
    """Plain files and folders, below the folder and nowhere else, no more than that; or nothing. The folder is empty,
    or it is made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with refusing():
            for entry in entries_of(source, most=most):
                _take_out(entry, folder)
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


def _take_out(entry: ArchiveEntry, folder: Path) -> None:
    if entry.is_folder:
        _make(folder, entry.path)
    else:
        _make(folder, entry.path.parent)
        _write(entry, folder / entry.path)


def _make(folder: Path, name: PurePosixPath) -> None:
    """Level by level: `mkdir` would make those above for everybody."""
    for each in reversed((name, *name.parents)):
        (folder / each).mkdir(mode=0o700, exist_ok=True)


def _write(entry: ArchiveEntry, target: Path) -> None:
    content = entry.content()
    with os.fdopen(os.open(target, _WRITE, 0o700 if entry.may_be_run else 0o600), "wb") as file:
        while part := content.read(LARGEST_READ // 4):
            file.write(part)

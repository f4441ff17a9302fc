"""Whether a disk is full: then what fails on it is nobody's fault but the machine's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FULL_BYTES: Final = 1024 * 1024  # a write that failed may have left as much


def free_bytes(folder: str | Path) -> int:
    seen = os.statvfs(folder)
    return seen.f_bavail * seen.f_frsize


def is_full(folder: str | Path) -> bool:
    """Of bytes or of names. Some systems of files have no limit on names, and say 0 of 0."""
    seen = os.statvfs(folder)
    return seen.f_bavail * seen.f_frsize < FULL_BYTES or (seen.f_files > 0 and seen.f_favail == 0)

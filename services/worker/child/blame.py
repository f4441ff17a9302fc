"""An author's exception in the job's log: where it was raised, and nothing of where the server keeps its files."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from pathlib import Path


def traceback_of(error: BaseException, *, workspace: Path) -> str:
    """The traceback, with each file below the folder that it was imported from."""
    text = "".join(traceback.format_exception(error))
    for root in _roots((str(workspace), *sys.path, sys.prefix, sys.base_prefix)):
        text = text.replace(f"{root}/", "")
    return text


def _roots(folders: Iterable[str]) -> list[str]:
    """As they are named and as they really are, the longest first."""
    named = {folder.rstrip("/") for folder in folders}
    real = {str(Path(folder).resolve()) for folder in named if folder}
    return sorted((named | real) - {""}, key=len, reverse=True)

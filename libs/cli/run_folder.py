"""A folder for one run of the system. What is said of a run that failed names files in it, so it stays then."""

import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from libs.cli.errors import Interrupted, reader_is_gone


@contextmanager
def run_folder(prefix: str) -> Generator[Path]:
    """Gone at the end, unless the run failed; then it is said where it is."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    except BaseException as end:
        if isinstance(end, Interrupted) or reader_is_gone(end) or not any(folder.iterdir()):
            _remove(folder)
        else:
            sys.stderr.write(f"headgate: what this run has left is in {folder}\n")
        raise
    _remove(folder)


def _remove(folder: Path) -> None:
    """With what its jobs have written, who may have taken the right to do so from folders of their own."""
    for parent, names, _ in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            with suppress(OSError):
                if not path.is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        sys.stderr.write(f"headgate: {folder} could not be removed\n")

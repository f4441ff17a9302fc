"""Whether the users that commands run as get to what a command needs, and what is put where they do.

Only where a command sees the machine's own files as another user: with namespaces it is shown what it needs, wherever
that is. Nothing of the worker's is opened up for it: a folder on the way that is closed stays as it is, and
what is behind it is copied to where everybody passes.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from services.worker.sandbox.errors import OutOfReach

PASSAGE: Final = 0o711  # others go through, and see nothing on the way
OPEN: Final = 0o755
READABLE: Final = stat.S_IROTH
ENTERED: Final = stat.S_IROTH | stat.S_IXOTH
COPIES: Final = "programs-"
SHARED: Final = (Path("/var/tmp"), Path("/tmp"))  # noqa: S108 - what is made there is looked at before it is used


def make_passage(folder: Path) -> None:
    """Whatever the mask is."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(PASSAGE)


def barrier(path: Path) -> Path | None:
    """The first folder on the way to it that lets no other user through."""
    ways = (Path(os.path.abspath(path)), path.resolve())  # noqa: PTH100 - by its name, links and all
    return next((folder for way in ways for folder in reversed(way.parents) if not _lets(folder, stat.S_IXOTH)), None)


def is_readable(path: Path) -> bool:
    """By every user, with all that is in it."""
    return barrier(path) is None and _is_open(path) and all(_is_open(each) for each in path.rglob("*"))


def elsewhere(workspaces: Path) -> Path:
    """Where those who cannot come to these workspaces can have theirs: one place for one name."""
    name = hashlib.sha256(os.fsencode(workspaces)).hexdigest()[:12]
    shared = next((each for each in (Path(tempfile.gettempdir()), *SHARED) if _is_passed(each)), SHARED[-1])
    return shared.resolve() / f"headgate-workspaces-{os.getuid()}-{name}"


def made_readable(paths: Iterable[Path], folder: Path) -> dict[str, str]:
    """Where each of them is found that others cannot read where it is: our Python's own is the one that it was made
    from, everything else a copy below this folder. Raises OutOfReach."""
    if (closed := barrier(folder / "any")) is not None:
        raise OutOfReach(what=folder, closed=closed)
    found = {sys.executable: str(_python())} if not is_readable(Path(sys.executable)) else {}
    missing = [path for path in paths if path.exists() and not is_readable(path)]
    copies = Path(tempfile.mkdtemp(prefix=COPIES, dir=folder)) if missing else folder
    for path in missing:
        found[str(path)] = str(_copied(path, copies / path.name))
    if missing:
        copies.chmod(PASSAGE)
    return found


def _python() -> Path:
    """The one that an environment of ours stands on."""
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (base, Path(os.__file__)):
        if not is_readable(path):
            raise OutOfReach(what=path, closed=barrier(path) or path)
    return base


def _copied(path: Path, to: Path) -> Path:
    if path.is_dir():
        shutil.copytree(path, to, copy_function=shutil.copyfile)
    else:
        shutil.copyfile(path, to)
    for each in (to, *to.rglob("*")):
        each.chmod(OPEN)
    return to


def _is_passed(folder: Path) -> bool:
    return barrier(folder / "any") is None and os.access(folder, os.W_OK)


def _is_open(path: Path) -> bool:
    return _lets(path, ENTERED if path.is_dir() else READABLE)


def _lets(path: Path, others: int) -> bool:
    """Folders that have more rules than their mode are taken by the mode alone."""
    with suppress(OSError):
        return path.stat().st_mode & others == others
    return False

"""The project as a value: its files in memory, read from a folder and written to one.

Owns what may be in a project: plain text files below it, their names, their number and size. Commands of the job have
written into the folder, so it is read as a stranger's: links and devices are not followed and not kept, and writing
begins with an empty folder of our own making.
"""

import os
import re
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from services.worker.sandbox.remains import FolderEntry, below, clear

MAX_FILES: Final = 200
MAX_FILE_BYTES: Final = 256 * 1024
MAX_TREE_BYTES: Final = 2 * 1024 * 1024
MAX_DEPTH: Final = 6
MAX_ENTRIES: Final = 10_000  # looked at, of whatever kind, before reading gives up

IGNORED: Final = ".gitignore"  # the one hidden file that a project has

Tree = Mapping[str, str]  # path below the project, with slashes → text

# What the checks read their rules from: it is rendered, so that no answer can switch the checks off.
CONFIGURATION: Final = frozenset(
    {
        ".ruff.toml",
        "pyproject.toml",
        "pytest.ini",
        "pytest.toml",
        "ruff.toml",
        "setup.cfg",
        "setup.py",
        "tox.ini",
        "uv.lock",
        "uv.toml",
    }
)
SUFFIXES: Final = frozenset(
    {
        ".css",
        ".csv",
        ".html",
        ".ini",
        ".js",
        ".json",
        ".md",
        ".py",
        ".sql",
        ".toml",
        ".tsv",
        ".txt",
        ".xml",
        ".yaml",
        ".yml",
    }
)
_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_LEFT_OUT: Final = frozenset({"__pycache__", "env", "node_modules"})


class TreeRefused(Exception):
    """{why}"""

    def __init__(self, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(why=why))


def checked_path(path: str, *, package: str) -> str:
    """The path if an author may write there: the package, its tests, the README. Otherwise `TreeRefused` says why."""
    parts = path.split("/")
    if not all(_PART.fullmatch(part) and not part.endswith(".") for part in parts):
        raise TreeRefused(f"{path[:200]!r} is no plain path below the project")
    if len(parts) > MAX_DEPTH:
        raise TreeRefused(f"{path!r} lies deeper than {MAX_DEPTH} folders")
    if parts[-1].lower() in CONFIGURATION:
        raise TreeRefused(f"{path} is written by the build itself; needed packages are named with NEEDS")
    if PurePosixPath(path).suffix not in SUFFIXES:
        raise TreeRefused(f"{path} has an ending that is not allowed; allowed are {', '.join(sorted(SUFFIXES))}")
    if path != "README.md" and parts[:1] != ["tests"] and parts[:2] != ["src", package]:
        raise TreeRefused(f"{path} is outside of src/{package}/ and tests/")
    return path


def checked_tree(tree: Tree) -> Tree:
    """The tree if it is within its bounds. Otherwise `TreeRefused` says which."""
    if len(tree) > MAX_FILES:
        raise TreeRefused(f"{len(tree)} files are more than {MAX_FILES}")
    sizes = {path: len(text.encode()) for path, text in tree.items()}
    for path, size in sizes.items():
        if size > MAX_FILE_BYTES:
            raise TreeRefused(f"{path} has {size} bytes, more than {MAX_FILE_BYTES}")
    if sum(sizes.values()) > MAX_TREE_BYTES:
        raise TreeRefused(f"all files together have {sum(sizes.values())} bytes, more than {MAX_TREE_BYTES}")
    folders = {parent.as_posix() for path in tree for parent in PurePosixPath(path).parents}
    for path in sorted(folders & tree.keys()):
        raise TreeRefused(f"{path} is a file and a folder at once")
    return tree


def read_tree(folder: Path) -> dict[str, str]:
    """The plain text files below; what is too large, too much, hidden, linked or no text is left out."""
    tree: dict[str, str] = {}
    room = MAX_TREE_BYTES
    for entry in islice(below(folder, leave_out=_is_left_out), MAX_ENTRIES):
        text = _text_of(entry) if entry is not None and len(tree) < MAX_FILES else None
        if entry is not None and text is not None and len(text.encode()) <= room:
            tree[entry.path] = text
            room -= len(text.encode())
    return tree


def write_tree(folder: Path, tree: Tree) -> None:
    """The folder holds this tree, and nothing of what was there before."""
    clear(folder)
    folder.mkdir()
    for path, text in checked_tree(tree).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")


def _is_left_out(path: str) -> bool:
    name = path.rpartition("/")[2]
    return path != IGNORED and (name in _LEFT_OUT or not _PART.fullmatch(name))


def _text_of(entry: FolderEntry) -> str | None:
    if not stat.S_ISREG(entry.seen.st_mode) or entry.seen.st_size > MAX_FILE_BYTES:
        return None
    try:
        descriptor = os.open(entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=entry.folder)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_FILE_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return None

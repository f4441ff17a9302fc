"""Machines as a newcomer has them, each with a fresh clone of what is committed, on a path with a space.

Container   an image of a supported Python, and make; no right but what the engine gives to everybody
Newcomer    a user of this machine with an empty home: made for the row where we are root, else we ourselves
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Final

OLDEST: Final = "python:3.11-slim-bookworm"
NEWEST: Final = "python:3.14-slim"
ENDS_WITHIN_S: Final = 540
WITH_MAKE: Final = "FROM {image}\nRUN apt-get -qq update && apt-get -qq install --yes --no-install-recommends make\n"
CLONED: Final = ('test -e "$FOLDER/head gate" || cp -r "$SOURCE" "$FOLDER/head gate"', 'cd "$FOLDER/head gate"')
# Ordinary for a user, and hard for a program.
HARD: Final = ("umask 077", "ulimit -n 1024")
# Who was started in the background is deaf to it, and so is all that it starts.
LISTENING_TO_CTRL_C: Final = ("/usr/bin/env", "--default-signal=INT")
# What a network may ask of everybody. No other variable of ours reaches a row.
OF_THE_NETWORK: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_INDEX_URL", "UV_DEFAULT_INDEX")


@dataclass(frozen=True, slots=True)
class Ended:
    """As a shell has it: 130 is what Ctrl-C ended, 137 what was killed because it never did."""

    status: int
    said: str


@dataclass(frozen=True, slots=True)
class Container:
    image: str
    source: Path
    options: tuple[str, ...] = ()

    def runs(self, command: str, *, before: tuple[str, ...] = (), within_s: int = ENDS_WITHIN_S) -> Ended:
        name = f"headgate-fresh-{secrets.token_hex(4)}"
        variables = [
            f"--env={key}={value}" for key, value in (_network() | {"SOURCE": "/source", "FOLDER": "/tmp"}).items()
        ]
        options = [f"--name={name}", f"--volume={self.source}:/source:ro", *variables, *self.options]
        words = ["docker", "run", "--rm", "--init", *options, _with_make(self.image)]
        try:
            return ended(
                _begun([*words, "sh", "-c", _script(command, before)], environment=dict(os.environ)), within_s=within_s
            )
        finally:
            subprocess.run(["docker", "rm", "--force", name], check=False, capture_output=True)


@dataclass(frozen=True, slots=True)
class Newcomer:
    source: Path
    home: Path
    name: str | None
    path: str = "/usr/local/bin:/usr/bin:/bin"

    def runs(self, command: str, *, before: tuple[str, ...] = (), folder: str = ".") -> Ended:
        return ended(self.begins(command, before=before, folder=folder))

    def begins(self, command: str, *, before: tuple[str, ...] = (), folder: str = ".") -> subprocess.Popen[str]:
        told = {"HOME": str(self.home), "PATH": self.path, "TERM": "xterm"}
        places = {"SOURCE": str(self.source), "FOLDER": str(self.home / folder)}
        words = [*LISTENING_TO_CTRL_C, "/bin/sh", "-c", _script(command, before)]
        return _begun(words, environment=_network() | told | places, user=self.name)

    def left(self) -> list[str]:
        """What still runs of a user who was made for the row."""
        if self.name is None:
            return []
        found = subprocess.run(["pgrep", "-u", self.name, "-a"], check=False, capture_output=True, text=True)
        return found.stdout.splitlines()


@contextmanager
def newcomer(source: Path) -> Iterator[Newcomer]:
    if os.geteuid():
        with TemporaryDirectory(prefix="headgate-fresh-") as home:
            yield Newcomer(source, Path(home), None)
        return
    name = f"fresh-{secrets.token_hex(4)}"
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
    try:
        yield Newcomer(source, Path("/home", name), name)
    finally:
        subprocess.run(["pkill", "-KILL", "-u", name], check=False)
        rmtree(Path("/home", name), ignore_errors=True)  # userdel would lock out all others for as long
        subprocess.run(["userdel", "--force", "--remove", name], check=True, capture_output=True)


def ended(begun: subprocess.Popen[str], *, within_s: int = ENDS_WITHIN_S) -> Ended:
    try:
        said, _ = begun.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        os.killpg(begun.pid, signal.SIGKILL)
        said, _ = begun.communicate()
    return Ended(begun.returncode if begun.returncode >= 0 else 128 - begun.returncode, said)


def _begun(words: list[str], *, environment: dict[str, str], user: str | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        cwd="/",
        env=environment,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _script(command: str, before: tuple[str, ...]) -> str:
    return "\n".join(["set -e", *before, *CLONED, f"exec {command}"])


def _network() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key.upper() in OF_THE_NETWORK}


@cache
def _with_make(image: str) -> str:
    built = subprocess.run(
        ["docker", "build", "--quiet", "-"],
        input=WITH_MAKE.format(image=image),
        check=True,
        capture_output=True,
        text=True,
    )
    return built.stdout.split()[-1]

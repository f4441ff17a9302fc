"""Which Python the environment is made with. Programs of a few lines stand for the Pythons that a machine may have."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SHIM: Final = "echo 'pyenv: command not found' >&2; exit 127"
WITHOUT_VENV: Final = "echo 'ensurepip is not available'; exit 1"
MAKES_ONE: Final = """
mkdir -p .venv/bin
echo $0 > .venv/by
echo "$XDG_CACHE_HOME" > .venv/keeps
printf '#!/bin/sh\\necho "$@" > .venv/asked; touch .venv/bin/uv\\n' > .venv/bin/python
chmod +x .venv/bin/python
"""


class Machine:
    """A folder of programs that is all of a path, with the tools of the system behind it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._programs = folder / "programs"
        self._programs.mkdir()
        for tool in ("sh", "mkdir", "touch", "chmod", "make", "awk", "echo", "rm"):
            self._programs.joinpath(tool).symlink_to(_found(tool))

    def has(self, name: str, version: str = "", *, venv: str = MAKES_ONE) -> None:
        """A Python of that version; without one it does not run."""
        says = f'case "$1" in -c) echo {version} ;; *) {venv} ;; esac' if version else SHIM
        program = self._programs / name
        program.write_text(f"#!/bin/sh\n{says}\n")
        program.chmod(0o755)

    def set_up(
        self, *words: str, home: Path | None = None, made: str = ".venv/bin/uv"
    ) -> subprocess.CompletedProcess[str]:
        command = ("make", "-f", str(ROOT / "Makefile"), made, *words)
        environ = {"PATH": str(self._programs)} | ({"HOME": str(home)} if home else {})
        return subprocess.run(command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - our own words

    @property
    def taken(self) -> str:
        return Path((self.folder / ".venv" / "by").read_text().strip()).name

    @property
    def keeps(self) -> str:
        """Where it is told to keep what it fetches; empty: where it does by itself."""
        return (self.folder / ".venv" / "keeps").read_text().strip()


def _found(tool: str) -> Path:
    return next(path for folder in os.defpath.split(":") if folder and (path := Path(folder) / tool).exists())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_newest_that_is_supported_is_taken(machine: Machine) -> None:
    for version in ("3.10", "3.11", "3.13", "3.15"):
        machine.has(f"python{version}", version)
    machine.has("python3", "3.11")

    assert machine.set_up().returncode == 0

    assert machine.taken == "python3.13"
    assert "--require-hashes" in (machine.folder / ".venv" / "asked").read_text()


def test_a_name_that_nothing_runs_under_is_passed_over(machine: Machine) -> None:
    machine.has("python3.14")
    machine.has("python3.12")
    machine.has("python3", "3.12")

    assert machine.set_up().returncode == 0

    assert machine.taken == "python3"


def test_one_that_makes_no_environments_is_passed_over(machine: Machine) -> None:
    machine.has("python3.13", "3.13", venv=WITHOUT_VENV)
    machine.has("python3.11", "3.11")

    assert machine.set_up().returncode == 0

    assert machine.taken == "python3.11"


def test_where_none_makes_environments_it_is_said_what_to_install(machine: Machine) -> None:
    machine.has("python3.13", "3.13", venv=WITHOUT_VENV)
    machine.has("python3", "3.13", venv=WITHOUT_VENV)

    said = machine.set_up()

    assert said.returncode != 0
    assert "ensurepip is not available" in said.stderr
    assert "python3.13 cannot make environments: install its venv module (Debian: python3.13-venv)." in said.stderr


@pytest.mark.parametrize("version", ["2.7", "3.10", "3.15"])
def test_a_python_that_is_not_supported_is_told_which_are(machine: Machine, version: str) -> None:
    machine.has("python3", version)

    said = machine.set_up()

    assert said.returncode != 0
    assert f"runs on Python 3.11 to 3.14, and none was found; python3 is {version}: install one" in said.stderr
    assert not (machine.folder / ".venv").exists()


def test_where_there_is_none_it_is_said_which_to_install(machine: Machine) -> None:
    said = machine.set_up()

    assert said.returncode != 0
    assert "runs on Python 3.11 to 3.14, and none was found: install one" in said.stderr


def test_one_may_be_named(machine: Machine) -> None:
    machine.has("python3.13", "3.13")
    machine.has("mine", "3.12")

    assert machine.set_up("PYTHON=mine").returncode == 0

    assert machine.taken == "mine"


def test_what_is_fetched_is_kept_beside_the_environment_where_there_is_no_home(machine: Machine) -> None:
    machine.has("python3", "3.13")

    assert machine.set_up().returncode == 0

    assert machine.keeps == str(machine.folder / ".venv" / "cache")


def test_what_is_fetched_is_kept_at_home_where_there_is_one(machine: Machine, tmp_path: Path) -> None:
    machine.has("python3", "3.13")

    assert machine.set_up(home=tmp_path).returncode == 0

    assert machine.keeps == ""


@pytest.mark.parametrize("ends", [0, 2])
def test_while_one_waits_for_the_libraries_it_is_said_what_comes(machine: Machine, ends: int) -> None:
    for name in (
        "pyproject.toml",
        "contracts/pyproject.toml",
        "libs/client/pyproject.toml",
        "libs/pipeline/pyproject.toml",
        "uv.lock",
        ".bootstrap.txt",
        ".venv/bin/uv",
    ):
        (machine.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (machine.folder / name).touch()
    says = "echo 'Downloading ruff (10.1MiB)' >&2; echo ' + ruff==0.17.5' >&2"
    (machine.folder / ".venv/bin/uv").write_text(f"#!/bin/sh\n{says}\nexit {ends}\n")
    (machine.folder / ".venv/bin/uv").chmod(0o755)

    made = machine.set_up(made=".venv/.synced")

    said = made.stdout.splitlines()
    assert said[0].startswith("set-up: the libraries as locked")
    assert said[1:2] == ["Downloading ruff (10.1MiB)"]
    assert "+ ruff" not in made.stdout
    assert (made.returncode == 0) is (machine.folder / ".venv/.synced").exists() is (ends == 0)


def test_of_the_installer_it_is_said_how_much_comes(machine: Machine) -> None:
    machine.has("python3", "3.13")

    assert "set-up: the installer, 17 MB" in machine.set_up().stdout

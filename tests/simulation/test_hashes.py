"""The same seed is the same log: whatever the order of hashes, in any process, on each Python of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Final

import pytest

from tests.simulation.drawing import plan_of
from tests.simulation.run import simulate

ROOT: Final = Path(__file__).parents[2]
OURS: Final = tuple(ROOT / each for each in ("contracts", "libs/client", "libs/pipeline"))  # beside what is in ROOT
SEEDS: Final = 4
PYTHONS: Final = tuple(f"python3.{minor}" for minor in range(11, 15))
HERE: Final = f"python3.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def hashes() -> list[str]:
    return [f"{seed} {simulate(plan_of(seed)).log_sha256}" for seed in range(1, SEEDS + 1)]


def said_by(python: str, *, hash_seed: str = "0") -> list[str]:
    """The hashes, as another process comes by them."""
    command = [python, "-m", "tests.simulation", "--seeds", str(SEEDS), "--hashes"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(map(str, OURS))}
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return said.stdout.splitlines()


def found(name: str) -> str | None:
    """Also where pyenv keeps it: a name of pyenv's own need not lead to a Python."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    places = kept.glob(f"{name.removeprefix('python')}.*/bin/{name}")
    return next(map(str, sorted(places)), None) or which(name)


def environment_of(python: str, folder: Path) -> Path | None:
    """The libraries as locked, for another Python; null where they are not kept here."""
    command = [
        str(ROOT / ".venv/bin/uv"),
        "sync",
        "--locked",
        "--offline",
        "--no-install-workspace",
        "--python",
        python,
    ]
    told = {"UV_PROJECT_ENVIRONMENT": str(folder), "UV_PYTHON_DOWNLOADS": "never"}
    made = subprocess.run(command, cwd=ROOT, env={**os.environ, **told}, capture_output=True, check=False)  # noqa: S603
    return None if made.returncode else folder / "bin/python"


def test_the_same_seed_is_the_same_log_whatever_the_order_of_hashes(hashes: list[str]) -> None:
    assert said_by(sys.executable, hash_seed="4711") == hashes


@pytest.mark.parametrize("python", [each for each in PYTHONS if each != HERE])
def test_the_same_seed_is_the_same_log_on_each_python_of_this_machine(
    python: str, hashes: list[str], tmp_path: Path
) -> None:
    path = found(python)
    other = environment_of(path, tmp_path) if path else None
    if other is None:
        pytest.skip(f"no {python} with the libraries here: the newest is tried in a container, by `make test-pythons`")

    assert said_by(str(other)) == hashes

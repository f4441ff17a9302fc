"""A worker that is root where no namespace can be made, as containers have it: commands run as other users, and get to
what they need though the worker's own folders are closed to them, and to nothing else of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from services.worker.equipment import installer
from services.worker.sandbox import kernel
from services.worker.sandbox.remains import clear
from tests.fixtures.pythons import python_for

DRIVER: Final = Path(__file__).parents[1] / "fixtures" / "closed.py"
STRANGER: Final = 57_999  # a user that nobody is
DROP_FROM_ALL: Final = 24  # PR_CAPBSET_DROP
NAMESPACES: Final = 21  # CAP_SYS_ADMIN, which no container has by itself
MOUNTS_AND_NETWORKS: Final = (12, NAMESPACES)


@pytest.fixture
def home() -> Iterator[Path]:
    """Root's own, with all of the worker in it: its Python, its tools, its secrets."""
    if os.getuid() != 0:
        pytest.skip("commands are other users where the worker is root")
    folder = Path(tempfile.mkdtemp(prefix="closed-"))  # 0700
    subprocess.run([python_for(STRANGER), "-m", "venv", "--without-pip", str(folder / "env")], check=True)  # noqa: S603
    shutil.copy(installer(), folder / "uv")
    (folder / "uv").chmod(0o700)
    (folder / "wheels").mkdir(mode=0o700)
    (folder / "wheels" / "one.whl").write_text("a wheel\n")
    (folder / "state").mkdir(mode=0o700)
    (folder / "state" / "passwords.json").write_text("a secret")
    yield folder
    clear(folder)


def settled(home: Path, *ways: list[str]) -> dict[str, Any]:
    told = {
        "workspaces": str(home / "state" / "workspaces"),
        "uv": str(home / "uv"),
        "wheels": str(home / "wheels"),
        "ways": ways,
    }
    driver = subprocess.run(  # noqa: S603 - ours
        [str(home / "env" / "bin" / "python"), "-I", "-B", str(DRIVER)],
        input=json.dumps(told) + "\n",
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        preexec_fn=_as_in_a_container,
    )
    assert driver.returncode == 0, driver.stderr
    return json.loads(driver.stdout)


def _as_in_a_container() -> None:
    for right in MOUNTS_AND_NETWORKS:
        kernel.prctl(DROP_FROM_ALL, right)


def test_commands_get_to_what_they_need_and_to_nothing_of_the_workers(home: Path) -> None:
    uv, wheels = str(home / "uv"), str(home / "wheels")

    told = settled(
        home,
        [uv, "venv", "--quiet", "--no-project", "--no-config", "--no-cache", "--python", "python", "env"],
        ["env/bin/python", "-c", "import os, tempfile; tempfile.mkdtemp(); print(os.getuid() >= 58000)"],
        ["ls", wheels],
        ["cat", str(home / "state" / "passwords.json")],
        ["ls", str(home)],
    )

    made, ran, listed, stolen, looked = told["ran"]
    assert made[0] == 0, made
    assert ran == [0, "True\n"]
    assert listed == [0, "one.whl\n"]
    assert (stolen[0], "Permission denied" in stolen[1]) == (1, True)
    assert (looked[0], "Permission denied" in looked[1]) == (2, True)
    assert "users 58000 to 58255" in told["line"]


def test_nothing_of_the_workers_is_opened_up_or_left(home: Path) -> None:
    before = _modes(home)

    told = settled(home, ["true"])

    assert {path: mode for path, mode in _modes(home).items() if path in before} == before
    assert not Path(told["in"]).is_relative_to(home)
    assert not Path(told["in"]).parent.exists()


def _modes(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mode for path in (folder, *folder.rglob("*"))}

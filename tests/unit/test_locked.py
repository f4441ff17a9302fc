"""What the locks name is there as a wheel for every Python and system that is promised: nobody needs a compiler."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename

from services.worker.build.template import LOCK

ROOT: Final = Path(__file__).parents[2]
UV: Final = Path(sys.executable).parent / "uv"
PROJECTS: Final = (ROOT, LOCK.parent)
SYSTEMS: Final = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("darwin", "x86_64")]
PYTHONS: Final = ["3.11", "3.12", "3.13", "3.14"]
GLIBC: Final = range(36, 16, -1)  # up to Debian 12's 2.36, which is the oldest that is tried
MACOS: Final = (13, 0)


def the_lock_of(project: Path) -> dict[tuple[str, str], list[str]]:
    """The names of each package's wheels."""
    lock = tomllib.loads((project / "uv.lock").read_text(encoding="utf-8"))
    return {
        (each["name"], each["version"]): [wheel["url"].rpartition("/")[2] for wheel in each.get("wheels", [])]
        for each in lock["package"]
    }


def asked_of(project: Path) -> list[Requirement]:
    """Everything that set-up may install, each with the systems and Pythons that need it."""
    words = ("--frozen", "--offline", "--all-groups", "--no-config", "--no-hashes", "--no-header", "--no-annotate")
    command = (str(UV), "export", "--quiet", *words, "--no-emit-workspace", "--project", str(project))
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own words
    return [Requirement(line) for line in done.stdout.splitlines()]


def tags_of(system: str, machine: str, python: str) -> set[Tag]:
    """What an installer takes there."""
    version = (3, int(python.removeprefix("3.")))
    if system == "darwin":
        platforms = list(mac_platforms(MACOS, machine))
    else:
        named = ("manylinux2014", "manylinux2010", "manylinux1")
        platforms = [f"{each}_{machine}" for each in (*(f"manylinux_2_{minor}" for minor in GLIBC), *named)]
    generic = compatible_tags(version, f"cp3{version[1]}", platforms)
    return {*cpython_tags(version, platforms=platforms), *generic}


def is_needed(asked: Requirement, system: str, machine: str, python: str) -> bool:
    there = {"sys_platform": system, "platform_machine": machine, "python_version": python}
    full = {"python_full_version": f"{python}.0", "platform_python_implementation": "CPython"}
    return asked.marker is None or asked.marker.evaluate(there | full)


@pytest.mark.parametrize("project", PROJECTS, ids=["headgate", "toolchain"])
def test_every_package_has_a_wheel_on_every_system_and_python(project: Path) -> None:
    wheels, asked = the_lock_of(project), asked_of(project)

    lacking = {
        (each.name, system, machine, python)
        for (system, machine), python in product(SYSTEMS, PYTHONS)
        for takes in [tags_of(system, machine, python)]
        for each in asked
        if is_needed(each, system, machine, python)
        and not any(parse_wheel_filename(wheel)[3] & takes for wheel in wheels[each.name, version_of(each)])
    }

    assert len(asked) > 5
    assert lacking == set()


def version_of(asked: Requirement) -> str:
    [only] = asked.specifier
    return only.version


def test_those_pythons_are_the_ones_that_are_promised() -> None:
    ours, builds = (told_of(project / "pyproject.toml")["requires-python"] for project in PROJECTS)
    make = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert [f"3.{minor}" for minor in range(20) if f"3.{minor}" in SpecifierSet(ours)] == PYTHONS
    assert all(python in SpecifierSet(builds) for python in PYTHONS)
    assert f"PYTHONS := {' '.join(reversed(PYTHONS))}\n" in make


def told_of(file: Path) -> dict[str, str]:
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]

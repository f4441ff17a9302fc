"""The wheel that applications install: httpx and pydantic below it, and nothing else of ours.

Its quick start runs in `tests/integration/test_client_system.py`, from the same wheel against a running system.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.fixtures.wheels import ALONE, CLIENT, QUICK_START, ROOT, built, installed_alone

IMPORTS = """
import pkgutil, sys
sys.path[:0] = sys.argv[1:]
import headgate
for module in pkgutil.iter_modules(headgate.__path__, "headgate."):
    __import__(module.name)
assert headgate.__file__.startswith(sys.argv[1])
print("\\n".join(sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(CLIENT, tmp_path_factory.mktemp("wheels"))


def test_it_asks_for_httpx_and_pydantic_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        [metadata] = [name for name in files.namelist() if name.endswith("METADATA")]
        told = files.read(metadata).decode()

    assert set(re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", told, flags=re.MULTILINE)) == {"httpx", "pydantic"}
    assert re.findall(r"^Requires-Dist: ([\w-]+).*; extra == '(\w+)'", told, flags=re.MULTILINE) == [
        ("headgate-server", "testing")
    ]


def test_it_runs_on_every_python_that_the_server_runs_on() -> None:
    asked = [tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in (CLIENT, ROOT)]

    assert asked[0]["requires-python"] == asked[1]["requires-python"]


def test_it_imports_nothing_else_of_ours(wheel: Path, tmp_path: Path) -> None:
    alone = installed_alone(wheel, "headgate", tmp_path / "alone")

    done = subprocess.run((*ALONE, IMPORTS, str(alone)), capture_output=True, text=True, check=False, cwd=tmp_path)  # noqa: S603 - our own interpreter

    assert done.returncode == 0, done.stderr
    assert {"headgate", "httpx", "pydantic"} <= set(done.stdout.split())
    assert not {"libs", "services", "headgate_contracts", "nats", "redis"} & set(done.stdout.split())


def test_it_brings_its_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        assert "headgate/py.typed" in files.namelist()


def test_the_server_has_none_of_it_and_asks_for_the_one_that_it_is_released_with(tmp_path: Path) -> None:
    with zipfile.ZipFile(built(ROOT, tmp_path)) as files:
        names = files.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        told = files.read(metadata).decode()

    assert not [name for name in names if name.startswith(("headgate/", "libs/client"))]
    assert "libs/cli/__main__.py" in names
    version = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nRequires-Dist: headgate=={version}\n" in told


def test_the_quick_start_of_the_package_is_that_of_its_module() -> None:
    lines = [line.strip() for line in QUICK_START.splitlines() if "hg" in line or "event" in line]

    for line in lines:
        assert line.partition("  #")[0] in " ".join((CLIENT / "headgate" / "__init__.py").read_text().split("\n")), line

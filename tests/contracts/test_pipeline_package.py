"""The wheel that authors of pipelines install: pydantic and the contracts below it, and nothing else of ours."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.fixtures.wheels import ALONE, OFFLINE, PIPELINE, ROOT, built, installed_alone, ran

IMPORTS = """
import pkgutil, sys
sys.path[:0] = sys.argv[1:]
import headgate_pipeline
for module in pkgutil.iter_modules(headgate_pipeline.__path__, "headgate_pipeline."):
    __import__(module.name)
assert headgate_pipeline.__file__.startswith(sys.argv[1])
print("\\n".join(sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(PIPELINE, tmp_path_factory.mktemp("wheels"))


def test_an_author_installs_nothing_else_of_ours_but_the_contracts(wheel: Path, tmp_path: Path) -> None:
    contracts = built(ROOT / "contracts", tmp_path / "wheels")
    ran("pip", "install", *OFFLINE, "--no-deps", "--target", str(tmp_path / "alone"), str(contracts))
    alone = installed_alone(wheel, "headgate-pipeline", tmp_path / "alone")

    done = subprocess.run((*ALONE, IMPORTS, str(alone)), capture_output=True, text=True, check=False, cwd=tmp_path)  # noqa: S603 - our own interpreter

    assert done.returncode == 0, done.stderr
    assert {"headgate_contracts", "headgate_pipeline", "pydantic"} <= set(done.stdout.split())
    assert not {"libs", "services", "headgate", "nats", "redis"} & set(done.stdout.split())


def test_it_brings_its_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        assert "headgate_pipeline/py.typed" in files.namelist()


def test_it_runs_on_every_python_that_the_server_runs_on() -> None:
    asked = [tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in (PIPELINE, ROOT)]

    assert asked[0]["requires-python"] == asked[1]["requires-python"]
    assert f"headgate-pipeline=={asked[0]['version']}" in asked[1]["dependencies"]


def test_the_server_has_none_of_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(built(ROOT, tmp_path)) as files:
        assert not [name for name in files.namelist() if name.startswith(("headgate_pipeline/", "libs/pipeline"))]


def test_the_pipeline_of_its_readme_passes_the_test_of_its_readme(tmp_path: Path) -> None:
    pipeline, test = re.findall(r"```python\n(.*?)```", (PIPELINE / "README.md").read_text(), flags=re.DOTALL)
    (tmp_path / "greeting.py").write_text(pipeline, encoding="utf-8")
    (tmp_path / "test_greeting.py").write_text(test + "\n\ntest_ann_is_greeted()\n", encoding="utf-8")

    done = subprocess.run(
        (sys.executable, "test_greeting.py"), capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert done.returncode == 0, done.stderr

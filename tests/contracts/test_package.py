"""The package that other teams install: pydantic and nothing else."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pydantic

from headgate_contracts.generate import HERE

IMPORTS = """
import sys
sys.path[:0] = sys.argv[1:]
import headgate_contracts, pkgutil
for module in pkgutil.iter_modules(headgate_contracts.__path__, "headgate_contracts."):
    __import__(module.name)
print("\\n".join(sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)))
"""
OF_PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}


def test_it_asks_for_pydantic_alone() -> None:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]

    assert [name.partition(">")[0] for name in project["dependencies"]] == ["pydantic"]


def test_it_imports_nothing_but_pydantic() -> None:
    """In a Python of its own that sees the standard library, the package and the installed libraries."""
    libraries = Path(pydantic.__file__).parents[1]

    run = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-I", "-S", "-c", IMPORTS, str(HERE), str(libraries)],
        capture_output=True,
        text=True,
        check=True,
    )

    seen = {name for name in run.stdout.split() if not name.startswith("_")}
    assert seen == {"headgate_contracts"} | OF_PYDANTIC

"""`make wheels`: every wheel of ours into `dist/`, and each tried by the oldest and the newest Python that is here.

Owns what "tried" is. Each wheel is installed alone in a clean environment, as its users do it: beside it lie only the
other wheels, all else comes from the index. The server's runs `headgate demo` in an empty folder, with no clone on any
path. `requirements.txt` beside them names what the server was tested with, by hashes; it is tried too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.fixtures.wheels import ROOT, UV

DIST: Final = ROOT / "dist"
SERVER: Final = "headgate-server"
# What each is asked in its environment: a command that ends with 0.
TRIED: Final = {
    "headgate": ("python", "-c", "import headgate; headgate.Headgate, headgate.SyncHeadgate"),
    "headgate-contracts": ("python", "-c", "import headgate_contracts; headgate_contracts.parse_event"),
    "headgate-pipeline": ("python", "-c", "import headgate_pipeline; headgate_pipeline.Pipeline"),
    SERVER: ("headgate", "demo"),
}
PLACES: Final = (*os.get_exec_path(), *(str(path) for path in (Path.home() / ".pyenv" / "versions").glob("*/bin")))


def main(versions: Sequence[str]) -> None:
    """Build, then try. A fault is the command that failed, with what it said."""
    found = list(_pythons(versions))
    if not found:
        raise SystemExit(f"wheels: none of the Pythons {', '.join(versions)} is here")
    _build()
    for python in dict.fromkeys((found[-1], found[0])):
        for name, asked in TRIED.items():
            _try(python, name, asked)
        _try_as_locked(python)
    _say(f"{len(list(DIST.glob('*.whl')))} wheels and requirements.txt are in {DIST.relative_to(ROOT)}/")


def _build() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    _run("build", "--quiet", "--wheel", "--no-build-isolation", "--all-packages", "--out-dir", str(DIST), str(ROOT))
    listed = ("--quiet", "--frozen", "--no-dev", "--no-emit-workspace", "--no-annotate", "--no-header")
    _run("export", *listed, "--project", str(ROOT), "--output-file", str(DIST / "requirements.txt"))
    built = {wheel.name.partition("-")[0].replace("_", "-") for wheel in DIST.glob("*.whl")}
    if built != TRIED.keys():
        raise SystemExit(f"wheels: built {sorted(built)}, and how to try {sorted(TRIED)} is known")


def _try(python: str, name: str, asked: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="headgate-wheels-") as folder:
        environment = _environment(python, Path(folder))
        _run("pip", "install", "--quiet", "--python", environment, "--find-links", str(DIST), name)
        _carried_out(Path(folder), asked)
    _say(f"{name} is all that it needs on {Path(python).name}")


def _try_as_locked(python: str) -> None:
    with tempfile.TemporaryDirectory(prefix="headgate-wheels-") as folder:
        environment = _environment(python, Path(folder))
        into = ("--quiet", "--python", environment)
        _run("pip", "install", *into, "--require-hashes", "--requirement", str(DIST / "requirements.txt"))
        _run("pip", "install", *into, "--no-deps", "--offline", *(str(wheel) for wheel in sorted(DIST.glob("*.whl"))))
        _run("pip", "check", *into)
        _carried_out(Path(folder), ("headgate", "--help"))
    _say(f"{SERVER} with all of requirements.txt on {Path(python).name}")


def _environment(python: str, folder: Path) -> str:
    _run("venv", "--quiet", "--python", python, str(folder / "environment"))
    (folder / "empty").mkdir()
    return str(folder / "environment")


def _carried_out(folder: Path, asked: Sequence[str]) -> None:
    shell = {"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8", "TMPDIR": str(folder)}
    program = str(folder / "environment" / "bin" / asked[0])
    _ended(subprocess.run((program, *asked[1:]), cwd=folder / "empty", env=shell, capture_output=True, check=False))  # noqa: S603 - ours


def _run(*words: str) -> None:
    """Of uv, which trusts what the machine trusts."""
    told = {"UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1"}
    _ended(subprocess.run((UV, "--no-config", *words), env=told | os.environ, capture_output=True, check=False))  # noqa: S603 - our own uv


def _ended(ran: subprocess.CompletedProcess[bytes]) -> None:
    if ran.returncode:
        said = (ran.stdout + ran.stderr).decode(errors="replace")
        raise SystemExit(f"wheels: {' '.join(ran.args)} ended with {ran.returncode}\n{said}")


def _pythons(versions: Sequence[str]) -> Iterator[str]:
    """Those of these versions that run, in this order. pyenv has names of Pythons that are not there."""
    for version in versions:
        for place in PLACES:
            program = Path(place) / f"python{version}"
            with suppress(OSError, subprocess.CalledProcessError):
                subprocess.run((program, "-c", ""), capture_output=True, check=True)  # noqa: S603 - found by its name
                yield str(program)
                break


def _say(text: str) -> None:
    sys.stdout.write(f"wheels: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

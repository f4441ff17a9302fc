"""The first commands where something is missing, taken or interrupted: a sentence says what, and no traceback does."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from libs.runtime.eventually import eventually
from tests.fixtures.backend import missing
from tests.fresh.company import company
from tests.fresh.conftest import Verdict
from tests.fresh.machines import ENDS_WITHIN_S, NEWEST, OLDEST, Container, Ended, Newcomer, ended

pytestmark = pytest.mark.timeout(600)
MAKE_FAILED = 2
INTERRUPTED = 130
# Debian's python3 is without it before its package python3-venv is installed.
WITHOUT_VENV = """rm -r "$(python3 -c 'import ensurepip; print(*ensurepip.__path__)')\""""
# Each is there when a step of set-up begins: the environment, its pip, the packages by uv, the wheels of builds.
LANDMARKS: Final = ("pyvenv.cfg", "bin/pip", "bin/uv", "wheels.txt")
# As its administrators do it: in the store of the machine, and in no variable.
TRUSTING_THE_COMPANY: Final = ("update-ca-certificates >/dev/null", "unset SSL_CERT_FILE PIP_CERT")
OTHERS: Final = ("3.10", "3.9", "3.8", "3.15", "3.16")


def test_a_python_that_makes_no_environments_is_told(engine: None, source: Path, ends: Verdict) -> None:
    told = Container(OLDEST, source).runs("make setup", before=(WITHOUT_VENV,))

    ends(told, MAKE_FAILED)
    assert "install its venv module (Debian: python3.11-venv)" in told.said
    assert "Traceback" not in told.said


def test_a_machine_with_another_python_is_told_which_are_supported(source: Path, tmp_path: Path, ends: Verdict) -> None:
    told = Newcomer(source, tmp_path, None).runs(f"make setup PYTHON={_unsupported()}")

    ends(told, MAKE_FAILED)
    assert "Headgate runs on Python 3.11 to 3.14" in told.said
    assert "Traceback" not in told.said


async def test_set_up_goes_on_after_ctrl_c(ann: Newcomer, ends: Verdict) -> None:
    environment = ann.home / "head gate" / ".venv"

    for landmark in LANDMARKS:
        interrupted = await _interrupted(ann.begins("make setup"), at=environment / landmark)

        assert "Traceback" not in interrupted.said
        assert interrupted.status in {INTERRUPTED, MAKE_FAILED}, (landmark, interrupted.said)

    ends(ann.runs("make setup"), 0)
    assert (environment / "bin" / "headgate").exists()


def test_a_port_that_is_taken_is_told(ann: Newcomer, taken_port: int, ends: Verdict) -> None:
    told = ann.runs("make up")

    ends(told, MAKE_FAILED)
    assert f"Port {taken_port} is in use" in told.said
    assert "Traceback" not in told.said
    assert ann.left() == []


async def test_set_up_passes_a_companys_proxy(engine: None, source: Path, tmp_path: Path, ends: Verdict) -> None:
    async with company(tmp_path) as proxy:
        options = (
            "--network=host",
            f"--env=HTTPS_PROXY=http://127.0.0.1:{proxy.port}",
            f"--volume={proxy.authority}:/usr/local/share/ca-certificates/company.crt:ro",
        )
        machine = Container(NEWEST, source, options)
        told = await asyncio.to_thread(machine.runs, "make setup", before=TRUSTING_THE_COMPANY)

    ends(told, 0)
    assert "files.pythonhosted.org" in proxy.opened


async def _interrupted(set_up: subprocess.Popen[str], *, at: Path) -> Ended:
    """By Ctrl-C, as soon as that is there."""
    await eventually(lambda: at.exists() or set_up.poll() is not None, within_s=ENDS_WITHIN_S)
    with suppress(ProcessLookupError):
        os.killpg(set_up.pid, signal.SIGINT)
    return ended(set_up)


def _unsupported() -> Path:
    """Some Python that Headgate does not run on."""
    places = [*os.get_exec_path(), *(str(each / "bin") for each in (Path.home() / ".pyenv" / "versions").glob("*"))]
    for minor in OTHERS:
        found = shutil.which(f"python{minor}", path=os.pathsep.join(places[::-1]))
        if found:
            return Path(found)
    return missing(f"of the Pythons {', '.join(OTHERS)} none is here")

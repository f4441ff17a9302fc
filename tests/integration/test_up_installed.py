"""The wheel of the server, without a clone: installed alone, `headgate up` in an empty folder, a build, its result."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from libs.runtime.eventually import eventually
from tests.fixtures.homes import Home, home
from tests.fixtures.wheels import ROOT

pytestmark = pytest.mark.up
READY_WITHIN_S = 90.0  # a machine under full load, and nothing compiled yet; an idle one needs 8
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return home(tmp_path_factory.mktemp("home"))


async def test_in_an_empty_folder_it_starts_builds_and_stops(installed: Home, tmp_path: Path) -> None:
    """What builds are made of is in the state folder, as an earlier start has fetched it; nothing else is."""
    shell = installed.shell(HEADGATE_INDEX="", HTTPS_PROXY=NOWHERE, HTTP_PROXY=NOWHERE, NO_PROXY="127.0.0.1")
    shutil.copytree(Path(sys.prefix) / "wheels", tmp_path / ".headgate" / "wheels")
    asked = (installed.command, "up", "--port", "0", "--workers", "1")
    with (tmp_path / "said").open("wb") as said:
        up = await asyncio.create_subprocess_exec(
            *asked, cwd=tmp_path, env=shell, stdout=said, stderr=subprocess.STDOUT
        )

    def is_ready() -> bool:
        assert up.returncode is None, (tmp_path / "said").read_text()
        return "\nready http" in (tmp_path / "said").read_text()

    async def headgate(*words: str) -> str:
        ran = await asyncio.create_subprocess_exec(
            *(installed.command, *words), cwd=tmp_path, env=shell, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await ran.communicate()
        assert ran.returncode == 0, err.decode() + out.decode()
        return out.decode()

    try:
        await eventually(is_ready, within_s=READY_WITHIN_S, every_s=0.1)
        followed = await headgate("submit", "a URL shortener", "--project", "shop", "--follow", "--json")
        await headgate("jobs", "result", json.loads(followed.splitlines()[0])["job_id"], "--output", "result.tar.gz")
    finally:
        up.send_signal(signal.SIGINT)
        ended = await up.wait()

    assert ended == 0
    assert "Headgate has stopped" in (tmp_path / "said").read_text()
    with tarfile.open(tmp_path / "result.tar.gz") as result:
        assert any(name.endswith("/shortener.py") for name in result.getnames())
    assert str(ROOT) not in "".join(path.read_text() for path in (tmp_path / ".headgate" / "logs").iterdir())

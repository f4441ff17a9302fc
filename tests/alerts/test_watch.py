"""`make watch`: it says where to look, scrapes what `make up` has written down, and says what to install."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from libs.local.errors import ProgramMissing
from libs.local.monitoring.servers import AlertmanagerServer, found
from libs.local.up_file import RunningService, UpFile
from libs.runtime.eventually import eventually
from tests.fixtures.backend import missing

READY_WITHIN_S = 30.0
MODULE = "libs.local.monitoring.watch"


@pytest.fixture(autouse=True)
def _installed() -> None:
    try:
        found("prometheus")
        found(*AlertmanagerServer.programs)
    except ProgramMissing as fault:
        missing(str(fault))


async def test_what_is_written_down_is_watched_until_it_is_told_to_stop(tmp_path: Path) -> None:
    command = (sys.executable, "-m", MODULE)
    watch = await asyncio.create_subprocess_exec(
        *command, env={"HEADGATE_STATE": str(tmp_path), "PATH": "/usr/bin"}, stdout=subprocess.PIPE
    )
    assert watch.stdout
    async with asyncio.timeout(READY_WITHIN_S):
        said = (await watch.stdout.readuntil(b"Ctrl-C")).decode()
    [pages] = re.findall(r"(http://\S+)/alerts", said)
    url = pages.removesuffix("/classic")
    write_up_file(tmp_path / "up.json")

    async with httpx.AsyncClient(timeout=30) as http:
        await eventually(lambda: targets(http, url), within_s=READY_WITHIN_S, every_s=0.2)
        rules = (await http.get(f"{url}/api/v1/rules")).json()["data"]["groups"]
        shown = [(await http.get(f"{pages}/{page}")).status_code for page in ("alerts", "graph", "targets")]
        scraped = (await http.get(f"{url}/api/v1/targets")).json()["data"]["activeTargets"]
    watch.send_signal(signal.SIGINT)

    assert "it is watched once `make up` says that it is ready" in said
    assert shown == [200, 200, 200]
    assert {group["name"].partition("-")[0] for group in rules} == {"headgate"}
    [labels] = [each["labels"] for each in scraped]
    assert labels == {"job": "headgate", "service": "worker", "instance": "worker-2"}
    assert await watch.wait() == 0


def test_who_has_no_prometheus_is_told_what_to_install(tmp_path: Path) -> None:
    environ = {"HEADGATE_STATE": str(tmp_path), "PATH": str(tmp_path)}

    ran = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", MODULE], env=environ, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 1
    assert "apt install prometheus prometheus-alertmanager" in ran.stderr
    assert "Traceback" not in ran.stderr


async def targets(http: httpx.AsyncClient, url: str) -> bool:
    return bool((await http.get(f"{url}/api/v1/targets")).json()["data"]["activeTargets"])


def write_up_file(path: Path) -> None:
    UpFile(
        url="http://127.0.0.1:1",
        user_token="",
        operator_token="",
        tokens_expire_at=datetime(2030, 1, 1, tzinfo=UTC),
        nats_url="",
        redis_url="",
        services=(RunningService(name="worker-2", pid=1, url="http://127.0.0.1:1"),),
        servers=(),
    ).write(path)

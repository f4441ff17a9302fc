"""A fresh machine is a row: what ran, with which exit code it ended, and whether that is the one it should have."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from libs.local.settings import UpSettings
from tests.fixtures.backend import missing
from tests.fixtures.compose import run
from tests.fresh.machines import Ended, Newcomer, newcomer

ROOT: Final = Path(__file__).parents[2]
DEFAULT_PORT: Final = UpSettings.model_fields["port"].default

Verdict = Callable[[Ended, int], None]


@pytest.fixture(scope="session")
def source() -> Iterator[Path]:
    """What is committed, for every user to read."""
    with TemporaryDirectory(prefix="headgate-fresh-") as folder:
        Path(folder).chmod(0o755)
        clone = Path(folder, "source")
        subprocess.run(
            ["git", "clone", "--quiet", "--no-local", "--depth=1", str(ROOT), str(clone)], check=True, umask=0o022
        )
        yield clone


@pytest.fixture(scope="session")
def engine() -> None:
    if shutil.which("docker") is None or run(["docker", "info"]).returncode:
        missing("no Docker engine answers")


@pytest.fixture
def ann(source: Path) -> Iterator[Newcomer]:
    with newcomer(source) as user:
        yield user


@pytest.fixture
def taken_port() -> Iterator[int]:
    """Somebody else has the port that `make up` would take."""
    with socket.socket() as theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # another program of this machine has it
            theirs.bind(("127.0.0.1", DEFAULT_PORT))
            theirs.listen()
        yield DEFAULT_PORT


@pytest.fixture
def ends(record_property: Callable[[str, object], None]) -> Verdict:
    """The verdict of a row."""

    def judge(ended: Ended, expected: int) -> None:
        record_property("exit", ended.status)
        record_property("expected", expected)
        assert ended.status == expected, ended.said[-20_000:]

    return judge


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [
        report
        for outcome in ("passed", "failed", "skipped", "error")
        for report in terminalreporter.getreports(outcome)
        if "tests/fresh" in report.nodeid and (report.when == "call" or not report.passed)
    ]
    if rows:
        terminalreporter.section("fresh machines")
    for report in rows:
        told = dict(report.user_properties)
        name = report.nodeid.partition("::test_")[2].replace("_", " ")
        exits = f"{told.get('exit', '–')} of {told.get('expected', '–')}"
        terminalreporter.write_line(f"{name:<75} {exits:>10} {report.duration:5.0f} s  {report.outcome}")

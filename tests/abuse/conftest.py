"""The scene that all rows share, and the table of what they came to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.abuse.cases import CASES
from tests.abuse.results import page, table
from tests.abuse.scene import Scene, a_scene

ROW = "test_nothing_comes_through["


@pytest_asyncio.fixture(scope="session")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    async with a_scene(tmp_path_factory.mktemp("abuse")) as scene:
        yield scene


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proof", type=Path, help="where to write what all rows came to, if all were tried")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Where some rows were tried alone there is no table: it would say of the others that they held."""
    held, through = (
        {report.nodeid.partition(ROW)[2][:-1] for report in terminalreporter.getreports(kind) if ROW in report.nodeid}
        for kind in ("passed", "failed")
    )
    if len(held | through) < len(CASES):
        return
    came = [case for case in CASES if str(case) in through]
    terminalreporter.write_line("\n".join(table(came)))
    if proof := config.getoption("proof"):
        proof.parent.mkdir(parents=True, exist_ok=True)
        proof.write_text(page(came), encoding="utf-8")

"""The whole system where nothing can be contained, as on macOS: started, told, killed.

What Linux alone has is taken from every process of it (`tests/fixtures/foreign.py`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.local.up_file import read_up_file
from libs.runtime.eventually import eventually
from tests.fixtures.foreign import prelude
from tests.fixtures.terminal import Terminal
from tests.fixtures.worker_system import lives

LOUD = "NOTHING IS CONTAINED"


def environment(folder: Path, **told: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
    return ours | {"TMPDIR": str(folder), "HEADGATE_STATE": str(folder / "state"), "HEADGATE_PORT": "0"} | told


def headgate(word: str, report: Path) -> tuple[str, ...]:
    run = "import sys; from libs.cli.__main__ import main; sys.exit(main(sys.argv[1:]))"
    return (sys.executable, "-c", prelude(report) + run, word)


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "of linux alone"
    yield path
    assert not path.exists(), path.read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["demo", "up"])
def test_a_model_and_nothing_that_contains_its_code_is_refused_before_anything_starts(
    tmp_path: Path, report: Path, word: str
) -> None:
    told = environment(tmp_path, HEADGATE_PROVIDERS="ollama")

    ended = subprocess.run(  # noqa: S603 - ours
        headgate(word, report), env=told, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1
    assert "darwin cannot contain what jobs run" in ended.stderr
    assert "HEADGATE_SANDBOX=trusted" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.up
def test_the_demo_builds_where_nothing_is_contained_and_says_so(tmp_path: Path, report: Path) -> None:
    with Terminal(headgate("demo", report), environment(tmp_path)) as terminal:
        code = terminal.ended()
        left = terminal.left()

    assert (code, left) == (0, []), terminal.said
    assert LOUD in terminal.said


@pytest.mark.up
def test_a_model_is_allowed_by_a_word_of_the_users_and_named(tmp_path: Path, report: Path) -> None:
    told = environment(tmp_path, HEADGATE_PROVIDERS="ollama", HEADGATE_SANDBOX="trusted")
    with Terminal(headgate("up", report), told, size=(40, 300)) as terminal:
        terminal.until("ready http")
        terminal.press()
        terminal.ended()
        left = terminal.left()

    assert left == []
    assert "code that a model writes too" in terminal.said


@pytest.mark.up
async def test_what_was_started_ends_with_a_supervisor_that_is_killed(tmp_path: Path, report: Path) -> None:
    """No system ends it there, and two servers on one log would spoil it."""
    with Terminal(headgate("up", report), environment(tmp_path)) as terminal:
        terminal.until("ready http")
        running = read_up_file(tmp_path / "state" / "up.json")
        assert running is not None
        processes = (*running.servers, *running.services)
        pids = [process.pid for process in processes]
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.ended()
        await eventually(lambda: not any(map(lives, pids)))

    assert {each.name for each in processes} >= {"nats", "valkey", "scheduler", "worker", "admission", "notifier"}

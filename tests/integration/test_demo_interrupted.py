"""The demo told to end in each of its parts: the terminal is as it was, and nothing stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.fixtures.terminal import HIDDEN, Terminal
from tests.integration.test_up_interrupted import environment

pytestmark = pytest.mark.up


@pytest.mark.parametrize(
    ("part", "presses"),
    [
        ("It is ready on", 2),
        (HIDDEN, 3),
        ("● code", 1),
        ("Its own tests", 3),
        ("That was it", 3),
    ],
)
def test_ctrl_c_in_any_part_of_the_demo_leaves_nothing(tmp_path: Path, part: str, presses: int) -> None:
    with Terminal((sys.executable, "-m", "libs.cli", "demo"), environment(tmp_path)) as terminal:
        terminal.until(part)
        for _ in range(presses):
            terminal.press()
        code = terminal.ended()
        left = terminal.left()

    assert (code, left, list(tmp_path.glob("headgate-[dr]*"))) == (130, [], []), terminal.said
    assert terminal.cursor_is_shown
    assert terminal.said.count("Stopping.") == 1
    assert "Traceback" not in terminal.said


def test_a_demo_whose_terminal_is_closed_leaves_nothing(tmp_path: Path) -> None:
    with Terminal((sys.executable, "-m", "libs.cli", "demo"), environment(tmp_path)) as terminal:
        terminal.until("● code")
        terminal.hang_up()
        code = terminal.ended()
        left = terminal.left()

    assert (code, left, list(tmp_path.glob("headgate-[dr]*"))) == (129, [], [])


def test_a_demo_that_is_terminated_leaves_nothing(tmp_path: Path) -> None:
    with Terminal((sys.executable, "-m", "libs.cli", "demo"), environment(tmp_path)) as terminal:
        terminal.until("● code")
        terminal.process.terminate()
        code = terminal.ended()
        left = terminal.left()

    assert (code, left, list(tmp_path.glob("headgate-[dr]*"))) == (143, [], []), terminal.said
    assert terminal.cursor_is_shown

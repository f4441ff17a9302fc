"""`headgate up` and the demo told to end in the middle of starting, with a real terminal: nothing of them stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.fixtures.terminal import Terminal


def environment(folder: Path) -> dict[str, str]:
    """Of nobody else: what a demo leaves is found in the folder."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
    return ours | {"TMPDIR": str(folder), "HEADGATE_STATE": str(folder / "state"), "HEADGATE_PORT": "0"}


@pytest.mark.parametrize(("moment", "presses"), [("nats/nats.conf", 3), ("logs/worker.log", 1)])
def test_a_start_that_is_interrupted_leaves_no_process(tmp_path: Path, moment: str, presses: int) -> None:
    with Terminal((sys.executable, "-m", "libs.cli", "up"), environment(tmp_path)) as terminal:
        terminal.until_it((tmp_path / "state" / moment).exists)
        for _ in range(presses):
            terminal.press()
        code = terminal.ended()
        left = terminal.left()

    assert (code, left) == (130, []), terminal.said
    assert "Stopping." in terminal.said
    assert "Traceback" not in terminal.said
    assert not (tmp_path / "state" / "up.json").exists()


def test_a_demo_that_is_interrupted_leaves_no_folder(tmp_path: Path) -> None:
    with Terminal((sys.executable, "-m", "libs.cli", "demo"), environment(tmp_path)) as terminal:
        terminal.until_it(lambda: list(tmp_path.glob("headgate-demo-*/logs/worker.log")))
        for _ in range(3):
            terminal.press()
        code = terminal.ended()
        left = terminal.left()

    assert (code, left, list(tmp_path.glob("headgate-[dr]*"))) == (130, [], []), terminal.said
    assert terminal.cursor_is_shown
    assert "Traceback" not in terminal.said

"""Runs the tests, and sees to it that no process outlives them: `python -m tests.outliving pytest ...`.

On Linux whatever loses its parent in a run becomes a child of this process, so what is left at the end is what the
kernel says. It is named and ended, and the run has failed. Elsewhere the command takes this one's place.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from services.worker.sandbox import kernel
from services.worker.sandbox.tree import ProcessTree

ENDING_S: Final = 30.0  # what is about to end may do so, on a busy machine too; it costs nothing where nothing is left
SHOWN: Final = 200


def run(command: Sequence[str]) -> int:
    """The command's exit code, or 1 where something outlived it."""
    kernel.prctl(kernel.SUBREAPER, 1)
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C reaches the command as well, which ends in its own way
    running = subprocess.Popen(command)  # noqa: S603 - what make tells
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(running.pid, number))
    tree = ProcessTree(running.pid)
    while tree.status is None:
        _bury_one(tree)
    code = os.waitstatus_to_exitcode(tree.status)
    if tree.wait(ENDING_S):
        return code if code >= 0 else 128 - code
    for pid in tree.members():
        sys.stderr.write(f"outlived the tests, and was ended: {pid} {_shown(pid)}\n")
    tree.kill()
    return code or 1


def _bury_one(tree: ProcessTree) -> None:
    """Of whatever has ended, or has fallen to us and then ended; the command itself among them."""
    pid, status = os.waitpid(-1, 0)
    if pid == tree.first:
        tree.status = status


def _shown(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ")[:SHOWN]
    except OSError:
        return "(gone)"


def main(words: Sequence[str]) -> int:
    if sys.platform != "linux":
        os.execvp(words[0], list(words))  # noqa: S606 - in its place
    return run(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Ends what a process has started when that process is gone: Linux does it itself, elsewhere the tether does.

    supervisor ──"+pid", "-pid", then the end of the pipe, however it came──► tether ──SIGKILL──► what is still held

Run as a program of its own, in a session of its own: it hears no Ctrl-C, and outlives whom it watches by a moment.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial


class Tether:
    """This process's own. It is there as long as it holds something."""

    def __init__(self) -> None:
        self._held = set[int]()
        self._process: subprocess.Popen[bytes] | None = None

    def hold(self, pid: int) -> None:
        """Until it is let go."""
        self._process = self._process or _started()
        self._held.add(pid)
        self._say(f"+{pid}\n")

    def let_go(self, pid: int) -> None:
        """It has ended. May be said twice."""
        if pid not in self._held:
            return
        self._held.remove(pid)
        self._say(f"-{pid}\n")
        if not self._held and self._process is not None:
            self._process.communicate()
            self._process = None

    def _say(self, word: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # it has been killed: then nothing is held any more
                self._process.stdin.write(word.encode())
                self._process.stdin.flush()


def is_linux() -> bool:
    """It alone ends a process with its parent."""
    return sys.platform == "linux"


def ending_with_parent() -> Callable[[], object]:
    """For a child of ours, before anything else: SIGKILL when our process ends in whatever way, so that nothing is left
    behind.

    Linux counts the thread that started the child: start servers from the main thread, where the event loop runs.
    """
    pr_set_pdeathsig = 1
    return partial(ctypes.CDLL(None).prctl, pr_set_pdeathsig, signal.SIGKILL)  # loaded here, called there


def _started() -> subprocess.Popen[bytes]:
    run = f"import runpy; runpy.run_path({__file__!r}, run_name='__main__')"
    return subprocess.Popen(  # noqa: S603 - this very file
        [sys.executable, "-I", "-S", "-B", "-c", run], stdin=subprocess.PIPE, cwd="/", env={}, start_new_session=True
    )


@cache  # it watches a process, and so there is one for each
def tether() -> Tether:
    return Tether()


def main() -> None:
    held = set[int]()
    for word in sys.stdin:
        (held.add if word[0] == "+" else held.discard)(int(word[1:]))
    for pid in held:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()

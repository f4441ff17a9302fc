"""What the system does for processes that belong together: who adopts whom, who ends with whom, who
ends first, and who may read what a process remembers.

Linux alone does any of it. Elsewhere nothing is done here, and the code that relies on it has a second way: a socket
that ends with its other side, a group that is ended as a whole.
"""

import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from services.worker.sandbox import kernel


def adopts_orphans() -> bool:
    """Whether what a process of ours lets go becomes a child of who called `adopt_orphans`."""
    return kernel.is_linux()


def adopt_orphans() -> None:
    """From now on what a descendant of ours lets go becomes our child."""
    if adopts_orphans():
        kernel.prctl(kernel.SUBREAPER, 1)


def end_with_parent() -> None:
    """SIGKILL when our parent ends, in whatever way."""
    if kernel.is_linux():
        kernel.prctl(kernel.PARENT_DEATH_SIGNAL, signal.SIGKILL)


def end_before_others(of_1000: int) -> None:
    """Where memory runs out: the more, the earlier."""
    if kernel.is_linux():
        adjustment = Path("/proc/self/oom_score_adj")
        with contextlib.suppress(OSError):
            worst = max(of_1000, int(adjustment.read_text(encoding="ascii")))
            adjustment.write_text(str(worst), encoding="ascii")


@contextlib.contextmanager
def child_ends() -> Iterator[socket.socket]:
    """A socket that can be read when a child has ended."""
    readable, writable = socket.socketpair()
    readable.setblocking(False)
    writable.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writable.fileno(), warn_on_full_buffer=False)
    with readable, writable:
        try:
            yield readable
        finally:
            signal.set_wakeup_fd(-1)


def keep_private() -> None:
    """For this process and all it forks, until they become another program."""
    if kernel.is_linux():
        kernel.prctl(kernel.DUMPABLE, 0)


def allow_reading() -> None:
    """Undo it, for what is about to become another program: its own files in /proc are its own again."""
    if kernel.is_linux():
        kernel.prctl(kernel.DUMPABLE, 1)

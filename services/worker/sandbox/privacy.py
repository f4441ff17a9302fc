"""Keeps what a process remembers to itself: nobody of the same user may read its memory or its environment.

Linux alone can be told so.
"""

from services.worker.sandbox import kernel


def keep_private() -> None:
    """For this process and all it forks, until they become another program."""
    if kernel.is_linux():
        kernel.prctl(kernel.DUMPABLE, 0)


def allow_reading() -> None:
    """Undo it, for what is about to become another program: its own files in /proc are its own again."""
    if kernel.is_linux():
        kernel.prctl(kernel.DUMPABLE, 1)

"""The signals that tell a command to end: Ctrl-C, SIGTERM, and SIGHUP of a terminal that is closed.

Apart from `interrupts`, which is slow to import: until then a signal must already do the right thing.
"""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NoReturn

Handler = Callable[[int, FrameType | None], object]

SHOW_CURSOR: Final = b"\x1b[?25h"


def handle(handler: Handler) -> Mapping[int, Any]:
    """From now on, by this; and what was done before. Where SIGHUP is ignored that stays: so `nohup` asks for it.

    They come to the main thread alone: in another there is nothing to handle.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    hears_hangup = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    numbers = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hears_hangup else ()))
    return {number: signal.signal(number, handler) for number in numbers}


def end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """Where it stands: for a command that has made nothing which would stay."""
    with suppress(OSError):
        if os.isatty(1):
            os.write(1, SHOW_CURSOR)
        os.write(2, b"\nheadgate: interrupted\n")
    os._exit(exit_code(number))


def ignore() -> None:
    """From now on: what could be cleared up is, and the exit code is settled. Python's own end would undo a handler."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def exit_code(number: int) -> int:
    """As a shell counts it."""
    return 128 + number

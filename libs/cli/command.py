"""One command: its words are read, it is carried out, and how it ended is said."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from libs.cli import signals
from libs.cli.arguments import parse
from libs.cli.errors import CliError, Interrupted, reader_is_gone
from libs.runtime.terminal import plain


def carried_out(words: Sequence[str] | None) -> int:
    """The exit code. What is expected to go wrong is one message; anything else is a fault of ours and shows itself."""
    args: Any = parse(words)
    try:
        output = import_module("libs.cli.output")  # slow to import; neither help nor the version needs it
        return args.run(args, output.Output(as_json=args.json))
    except CliError as error:
        sys.stderr.write(f"headgate: {plain(str(error))}\n")
        return error.exit_code
    except Interrupted as told:
        if words is None:
            signals.ignore()
        _let_go()
        return told.exit_code
    except OSError as error:
        if not reader_is_gone(error):
            raise
        _let_go()
        return (
            0 if error.errno == errno.EPIPE else signals.exit_code(signal.SIGHUP)
        )  # it has seen enough, or was closed


def _let_go() -> None:
    """Of output that nobody takes any more: the last flush would be a fault of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

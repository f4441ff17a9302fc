"""The command `headgate`, from its first moment on.

Importing what a command needs takes most of a second, so what a signal does is settled before anything is imported.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

from libs.cli import signals


def main(words: Sequence[str] | None = None) -> int:
    """The exit code. Without words they are the process's own, and so are the signals."""
    if words is None:
        signals.handle(signals.end_at_once)
    code: int = import_module("libs.cli.command").carried_out(words)
    return code


if __name__ == "__main__":
    sys.exit(main())

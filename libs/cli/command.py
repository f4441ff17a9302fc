"""One command: its words are read, it is carried out, and how it ended is said."""

import errno
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from libs.cli import signals
from libs.cli.arguments import parse
from libs.cli.errors import CliError, Interrupted, Refused, Usage, reader_is_gone
from libs.runtime.terminal import plain

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
HALF: Final = "surrogate"  # of a pair: what a byte that is no UTF-8 is read as, and no request can say


def carried_out(words: Sequence[str] | None) -> int:
    """The exit code. What is expected to go wrong is one message; anything else is a fault of ours and shows itself."""
    given = sys.argv[1:] if words is None else words
    try:
        return _run(words)
    except CliError as error:
        if isinstance(error, Refused) and HALF in str(error) and not all(map(_is_text, given)):
            return _no_text()
        sys.stderr.write(f"headgate: {plain(str(error))}\n")
        return error.exit_code
    except Interrupted as told:
        if words is None:
            signals.ignore()
        _let_go()
        return told.exit_code
    except UnicodeEncodeError:
        if all(map(_is_text, given)):
            raise
        return _no_text()
    except OSError as error:
        _let_go()
        return _unwritten(error)


def _run(words: Sequence[str] | None) -> int:
    args: Any = parse(words)
    output = import_module("libs.cli.output")  # slow to import; neither help nor the version needs it
    code: int = args.run(args, output.Output(as_json=args.json))
    print(end="", flush=True)  # what is left of it may have no room: better now than at the very end
    return code


def up(args: Any, out: Any) -> int:
    return _beside_the_services("up", args, out)


def demo(args: Any, out: Any) -> int:
    return _beside_the_services("demo", args, out)


def _beside_the_services(name: str, args: Any, out: Any) -> int:
    """Another process begins to load the services, then what the command itself needs is imported, as slow a thing."""
    forks = import_module("libs.local.forks").launched()
    code: int = getattr(import_module(f"libs.cli.{name}"), name)(args, out, forks)
    return code


def _unwritten(fault: OSError) -> int:
    """Nobody reads on, as they have seen enough or their terminal was closed; or what is printed has no room."""
    if reader_is_gone(fault):
        return 0 if fault.errno == errno.EPIPE else signals.exit_code(signal.SIGHUP)
    if fault.errno not in NO_ROOM or fault.filename is not None:
        raise fault
    sys.stderr.write(f"headgate: What is to be printed cannot be written ({fault.strerror}).\n")
    return CliError.exit_code


def _no_text() -> int:
    """What the file system takes as a name no request can say."""
    sys.stderr.write("headgate: A word of the command holds bytes that are no UTF-8.\n")
    return Usage.exit_code


def _is_text(word: str) -> bool:
    return word.isascii() or word.encode(errors="replace").decode() == word


def _let_go() -> None:
    """Of output that nobody takes any more: the last flush would be a fault of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

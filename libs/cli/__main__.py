"""The command `headgate`: reads the words, carries the command out, and says with which code it ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from libs.cli.arguments import parse
from libs.cli.errors import CliError
from libs.cli.output import Output

INTERRUPTED = 130  # as a shell counts it


def main(words: Sequence[str] | None = None) -> int:
    """The exit code. What is expected to go wrong is one message; anything else is a fault of ours and shows itself."""
    args: Any = parse(words)
    try:
        return args.run(args, Output(as_json=args.json))
    except CliError as error:
        sys.stderr.write(f"headgate: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())

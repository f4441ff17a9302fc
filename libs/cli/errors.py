"""What a command may end with, beside success. Each kind has its exit code.

CliError            1  failed
├── NobodyAnswers   1
├── NoHeadgate      1
├── ServerFault     1
├── NotUp           1
├── NoArchive       1
├── Failed          1
├── Usage           2
├── Busy            3  try again later
└── Refused         4  the same again is refused again

Interrupted         130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP
"""

import errno

from libs.cli.calling import called
from libs.cli.signals import exit_code


class Interrupted(Exception):
    """Told to end by a signal, and all is cleared up: there is nothing left to say but the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = exit_code(number)


class CliError(Exception):
    """The command failed."""

    exit_code = 1

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        text = " ".join((type(self).__doc__ or "").split())
        super().__init__(text.format(headgate=called(), **facts))


class NobodyAnswers(CliError):
    """Nobody answers at {url} ({reason}). Start Headgate with `{headgate} up`, or set HEADGATE_URL to where it
    runs."""


class NoHeadgate(CliError):
    """Something else than Headgate answers at {url}. Set HEADGATE_URL to {where}."""


class NotUp(CliError):
    """No Headgate runs on {folder}. Start it with `{headgate} up`, or set {instead}."""


class ServerFault(CliError):
    """Headgate failed: {detail}. Try again in a while; ask with debug_id {debug_id} if it stays."""


class NoArchive(CliError):
    """What came is no .tar.gz. Fetch it with `-o -` to look at it."""


class Failed(CliError):
    """{reason}"""


class Usage(CliError):
    """{what}"""

    exit_code = 2


class Busy(CliError):
    """{detail}. Nothing was changed."""

    exit_code = 3


class Refused(CliError):
    """{detail}"""

    exit_code = 4


def reader_is_gone(fault: BaseException) -> bool:
    """Of our output: a pipe that was closed, or a terminal. No file of ours says either."""
    return isinstance(fault, OSError) and fault.errno in {errno.EPIPE, errno.EIO}

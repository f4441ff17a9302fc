"""What can go wrong around a command. What goes wrong inside of it is its own, and a `Ran`.

SandboxError
├── SandboxMissing        at start: do what its text says, then start again
│   └── OutOfReach        the same; or have it where other users get to
└── CommandNotRun         not the command's fault
    └── MachineGaveOut    no room, no memory, no process: another attempt may succeed, here or elsewhere
"""

import errno
from typing import Final

# What a machine says when it is used up, to any caller.
USED_UP: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.ENFILE, errno.EIO})


class SandboxError(Exception):
    """The sandbox cannot do this."""

    def __init__(self, **facts: object) -> None:
        super().__init__(" ".join((type(self).__doc__ or "").split()).format(**facts))


class SandboxMissing(SandboxError):
    """Commands cannot be contained as HEADGATE_SANDBOX={wanted} asks: {why}"""


class OutOfReach(SandboxMissing):
    """The users that commands run as do not get to {what}: {closed} is closed to them. Let them pass (chmod o+x), have
    it elsewhere, or run the worker as a user that is not root."""


class CommandNotRun(SandboxError):
    """The command could not be started: {why}"""

    def __init__(self, why: str) -> None:
        super().__init__(why=why)
        self.why = why


class MachineGaveOut(CommandNotRun):
    """The machine gave out under the command: {why}"""

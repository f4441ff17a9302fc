"""What can go wrong around a command. What goes wrong inside of it is its own, and a `Ran`.

SandboxError
├── SandboxMissing    at start: do what its text says, then start again
└── CommandNotRun     the machine's fault, not the command's: another attempt may succeed
"""


class SandboxError(Exception):
    """The sandbox cannot do this."""

    def __init__(self, **facts: object) -> None:
        super().__init__((type(self).__doc__ or "").format(**facts))


class SandboxMissing(SandboxError):
    """Commands cannot be contained as HEADGATE_SANDBOX={wanted} asks: {why}"""


class CommandNotRun(SandboxError):
    """The command could not be started: {why}"""

    def __init__(self, why: str) -> None:
        super().__init__(why=why)
        self.why = why

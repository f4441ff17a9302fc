"""What a worker needs from outside, and nothing more."""

from enum import Enum, auto
from typing import Protocol

from headgate_contracts.commands import (
    AcquireLease,
    Beat,
    BeatReply,
    LeaseReply,
    LogLine,
    ProviderShut,
    ShutProvider,
)


class Unheard(Enum):
    """Why a question to the schedulers has no answer."""

    NOBODY = auto()  # there is no connection, or nobody at its other end: nobody can have given anything away either
    SILENT = auto()  # somebody may be there


class Scheduler(Protocol):
    """Any replica of the scheduler, asked over NATS."""

    async def beat(self, beat: Beat) -> BeatReply | Unheard: ...
    async def acquire(self, wanted: AcquireLease) -> LeaseReply | Unheard: ...
    async def give_up(self, lease: str) -> None: ...
    async def shut(self, pause: ShutProvider) -> ProviderShut | Unheard: ...


class LinesOut(Protocol):
    """Where lines of job logs go."""

    async def put(self, line: LogLine, *, line_id: str) -> bool:
        """Whether it was kept. The same line with the same id is kept once."""
        ...

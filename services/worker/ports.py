"""What a worker needs from outside, and nothing more."""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from headgate_contracts import Job, JobEvent
from headgate_contracts.commands import (
    AcquireLease,
    Beat,
    BeatReply,
    JobProgress,
    LeaseReply,
    LogLine,
    ProviderShut,
    ShutProvider,
)
from libs.eventlog import Appended, Conflicted, Record


class Unheard(Enum):
    """Why a question to the schedulers has no answer."""

    NOBODY = auto()  # there is no connection, or nobody at its other end: nobody can have given anything away either
    SILENT = auto()  # somebody may be there


class Log(Protocol):
    async def append(
        self, event: JobEvent, *, after: Job | None, traceparent: str | None = None
    ) -> Appended | Conflicted: ...
    async def read(self, job_id: str, *, after: int = 0) -> list[Record]: ...


class Dispatch(Protocol):
    """A message of the pool."""

    @property
    def record(self) -> Record: ...
    async def ack(self) -> None: ...
    async def nak(self) -> None: ...


class Dispatches(Protocol):
    async def next(self) -> Dispatch: ...


class Inputs(Protocol):
    async def get(self, job_id: str, /) -> bytes | None: ...


class Results(Protocol):
    async def put(self, name: str, content: bytes, /) -> None: ...


class Workspaces(Protocol):
    async def put(self, name: str, content: bytes, /) -> None: ...
    async def get(self, name: str, /) -> bytes | None: ...
    async def delete(self, name: str, /) -> None: ...


class Scheduler(Protocol):
    """Any replica of the scheduler, asked over NATS."""

    async def beat(self, beat: Beat) -> BeatReply | Unheard: ...
    async def acquire(self, wanted: AcquireLease) -> LeaseReply | Unheard: ...
    async def give_up(self, lease: str) -> None: ...
    async def shut(self, pause: ShutProvider) -> ProviderShut | Unheard: ...


class ProgressOut(Protocol):
    """Where it is told how far a job is."""

    async def report(self, said: JobProgress) -> None: ...


class LinesOut(Protocol):
    """Where lines of job logs go."""

    async def put(self, line: LogLine, *, line_id: str) -> bool:
        """Whether it was kept. The same line with the same id is kept once."""
        ...

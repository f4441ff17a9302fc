"""What the scheduler needs of others. Of the view it needs nearly all, so that is `libs.capacity.ports.View` itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate_contracts.commands import LeaseReply
from libs.capacity.lead import Lead
from libs.capacity.ports import View
from libs.eventlog.values import Appended, Conflicted, Entry, Fill, Mark, Page, Record
from libs.runtime.clock import Clock
from libs.runtime.lifecycle import Health
from libs.runtime.telemetry import Telemetry


class Log(Protocol):
    """The part of the log that the scheduler reads and writes."""

    async def append_batch(self, entries: Sequence[Entry]) -> Appended | Conflicted: ...
    async def last(self, subject_filter: str) -> Record | None: ...
    def follow(self, *, after: int) -> AsyncGenerator[Page, None]: ...
    async def mark(self) -> Mark: ...
    async def fill(self) -> Fill: ...


class Ends(Protocol):
    """How it ended with a job that the fold has forgotten."""

    async def last(self, subject_filter: str) -> Record | None: ...


class Snapshots(Protocol):
    """Where folds of the log are kept."""

    async def put(self, data: bytes, *, mark: Mark) -> None: ...
    async def newest(self, epoch: str) -> tuple[Mark, bytes] | None: ...


class History(Protocol):
    """What became of jobs that the fold has forgotten."""

    async def read(self, job_id: str, *, after: int = 0) -> list[Record]: ...


class Workspaces(Protocol):
    """The work of finished stages, as workers leave it."""

    async def names(self, prefix: str = "") -> list[str]: ...
    async def delete(self, name: str) -> None: ...


class Inputs(Protocol):
    """What jobs are made from, as admission keeps it."""

    async def names(self) -> list[str]: ...
    async def revision(self) -> int: ...
    async def purge(self, name: str, *, through: int | None = None) -> None: ...


class Leads(Protocol):
    """Whether this replica decides now."""

    @property
    def leads(self) -> bool: ...


class Commands(Protocol):
    """The connection that heartbeats and lease requests come by."""

    async def answers(self) -> bool:
        """Whether a worker could be heard now."""
        ...

    async def send(self, address: str, reply: LeaseReply) -> None:
        """Send what a waiter has waited for. It may be lost: the waiter asks again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """What reaches out of the process."""

    log: Log
    view: View
    lead: Lead
    commands: Commands
    snapshots: Snapshots
    telemetry: Telemetry
    health: Health
    clock: Clock
    new_id: Callable[[], str]

"""What the notifier needs from outside, and nothing more."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from headgate_contracts.commands import JobProgress, PositionChanged, TicketRedeemed
from libs.eventlog import Page, Record, Wanted
from libs.eventlog.lines import LinePage


class Log(Protocol):
    @property
    def epoch(self) -> str: ...
    async def read(self, job_id: str, *, after: int = 0) -> list[Record]: ...
    async def last(self, subject_filter: str) -> Record | None: ...


class FollowedLog(Protocol):
    def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[Page, None]: ...


class FollowedLines(Protocol):
    def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[LinePage]: ...


class Lines(Protocol):
    async def last(self, job_id: str) -> int: ...
    def of(self, job_id: str, *, after: int = 0) -> AsyncGenerator[LinePage]: ...


class Tickets(Protocol):
    async def redeem(self, ticket: str) -> TicketRedeemed | None:
        """What the ticket stood for, once; null where nobody can say at the moment."""
        ...


class KeptProgress(Protocol):
    async def of(self, ids: Sequence[str], /) -> dict[str, JobProgress]: ...


class Titles(Protocol):
    async def of(self, ids: Sequence[str], /) -> dict[str, str]: ...


class Positions(Protocol):
    async def ask(self, job_id: str) -> PositionChanged | None:
        """Where the job stands; null where nobody can say at the moment."""
        ...

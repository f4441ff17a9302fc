"""What the notifier needs from outside, and nothing more."""

from __future__ import annotations

from typing import Protocol

from headgate_contracts.commands import PositionChanged, TicketRedeemed
from libs.eventlog import Record


class Log(Protocol):
    @property
    def epoch(self) -> str: ...
    async def read(self, job_id: str, *, after: int = 0) -> list[Record]: ...
    async def last(self, subject_filter: str) -> Record | None: ...


class Tickets(Protocol):
    async def redeem(self, ticket: str) -> TicketRedeemed | None:
        """What the ticket stood for, once; null where nobody can say at the moment."""
        ...


class Positions(Protocol):
    async def ask(self, job_id: str) -> PositionChanged | None:
        """Where the job stands; null where nobody can say at the moment."""
        ...

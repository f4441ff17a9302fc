"""What the notifier needs from outside, and nothing more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from headgate_contracts.commands import PositionChanged, TicketRedeemed
from libs.eventlog import Wanted
from libs.eventlog.lines import LinePage


class FollowedLines(Protocol):
    def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[LinePage]: ...


class Tickets(Protocol):
    async def redeem(self, ticket: str) -> TicketRedeemed | None:
        """What the ticket stood for, once; null where nobody can say at the moment."""
        ...


class Positions(Protocol):
    async def ask(self, job_id: str) -> PositionChanged | None:
        """Where the job stands; null where nobody can say at the moment."""
        ...

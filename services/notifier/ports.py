"""What the notifier needs from outside, and nothing more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from headgate_contracts.commands import PositionChanged
from libs.eventlog import Wanted
from libs.eventlog.lines import LinePage


class FollowedLines(Protocol):
    def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[LinePage]: ...


class Positions(Protocol):
    async def ask(self, job_id: str) -> PositionChanged | None:
        """Where the job stands; null where nobody can say at the moment."""
        ...

"""What the notifier needs from outside, and nothing more."""

from typing import Protocol

from headgate_contracts.commands import PositionChanged


class Positions(Protocol):
    async def ask(self, job_id: str) -> PositionChanged | None:
        """Where the job stands; null where nobody can say at the moment."""
        ...

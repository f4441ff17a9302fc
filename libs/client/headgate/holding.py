"""A slot that is held for as long as a block of code runs: when it is extended, and when it is lost. Pure.

Owns the one rule: a holder counts from when it asked, by its own clock, so it never takes a lease for longer than the
server does. A third of the time is left to ask again after each extension that nobody answers.
"""

from dataclasses import dataclass
from datetime import datetime

from headgate.errors import HeadgateError, Rejected
from headgate.overseen import LeaseState

EXTENDED_WITHIN_S = 5.0
AGAIN_S = 1.0  # after an extension that nobody answered


@dataclass(slots=True)
class Tenure:
    """How long a slot is held, as its holder knows it. Moments are those of a monotonic clock."""

    lease: str
    ttl_s: float = 0.0
    asked_s: float = 0.0
    expires_at: datetime | None = None
    is_lost: bool = False

    def extended(self, state: LeaseState, *, asked_s: float) -> None:
        self.ttl_s, self.asked_s, self.expires_at = state.ttl_s, asked_s, state.expires_at

    @property
    def ends_s(self) -> float:
        return self.asked_s + self.ttl_s

    def within_s(self, now_s: float) -> float:
        """For how long an extension may take: a slot that has ended needs none."""
        return max(0.1, min(EXTENDED_WITHIN_S, self.ends_s - now_s))

    @property
    def due_s(self) -> float:
        """When it should be extended."""
        return self.asked_s + self.ttl_s / 3

    def failed(self, fault: HeadgateError, *, now_s: float) -> float | None:
        """How long to wait before it is tried again; null: it is lost."""
        if isinstance(fault, Rejected) or now_s >= self.ends_s:
            self.is_lost = True
            return None
        return min(AGAIN_S, self.ends_s - now_s)

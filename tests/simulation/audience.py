"""Who reads along in a seed. Data alone, like the rest of a plan. Only seeds with readers have a notifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NOTIFIERS: Final = ("notifier-1", "notifier-2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Follows a job, or all jobs of a user, until it has seen their ends."""

    name: str
    at_s: float
    user: str
    order: str | None  # null: all jobs of the user
    replay: bool = False  # wants everything from the beginning
    cut_share: float = 0.0  # of its connections that break, at any byte
    slow_share: float = 0.0  # of them in which it takes nothing for a while

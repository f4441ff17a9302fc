"""How the daily cap spreads jobs: each takes a place of a day, and those of a later day enter the queue as it begins.

The first day on which the user has a free place is taken with the reservation (`lua/shared/days.lua`). When in that day
the job enters is decided here, by the one rule that admission and scheduler share.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

EPOCH_DAY: Final = date(1970, 1, 1)  # day 0, in UTC


@dataclass(frozen=True, slots=True)
class DayPlace:
    """A place of a user's day: how many of it were taken before, of how many there are."""

    day: int  # since `EPOCH_DAY`
    before: int
    per_day: int


def release_at(user: str, place: DayPlace, *, spread_s: int, run_at: datetime | None = None) -> datetime:
    """The job's own `run_at`, where that is not before the day. Else a user's jobs enter in the order in which they
    took their places: from a moment in the first half of the spread, which is the user's on that day, to its end."""
    opens = datetime.combine(EPOCH_DAY + timedelta(days=place.day), time(), UTC)
    if run_at is not None and run_at >= opens:
        return run_at
    digest = hashlib.sha256(f"{place.day} {user}".encode()).digest()
    begin_s = int.from_bytes(digest[:4], "big") % (spread_s // 2 + 1)
    return opens + timedelta(seconds=begin_s + (spread_s - begin_s) * min(place.before, place.per_day) // place.per_day)

"""Days, as decisions count them, and when a job that waits for its day enters the queue.

Owns the one rule that admission and scheduler share, so that a job scheduled by either is released alike.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

EPOCH_DAY: Final = date(1970, 1, 1)  # day 0, in UTC


def release_at(job_id: str, day: int, *, spread_s: int, run_at: datetime | None = None) -> datetime:
    """The job's own `run_at`, where that is not before the day; else spread over the day's first hour by its id.

    `day` counts from `EPOCH_DAY`.
    """
    opens = datetime.combine(EPOCH_DAY + timedelta(days=day), time(), UTC)
    if run_at is not None and run_at >= opens:
        return run_at
    digest = hashlib.sha256(job_id.encode()).digest()
    return opens + timedelta(seconds=int.from_bytes(digest[:4], "big") % (spread_s + 1))

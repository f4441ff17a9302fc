"""An estimate in words: "45 seconds", "17 minutes-32 minutes", "1h 5m-2h 10m".

Pure. Each end of an interval is said in its own unit and rounded down to it. Below a minute, where the upper end is
near as well, an interval would tell nobody more than the estimate itself.
"""

from __future__ import annotations

from typing import Any, Final

from headgate_contracts.events import Estimate
from libs.runtime.wording import counted

MINUTE_S: Final = 60
HOUR_S: Final = 3600
NEAR_S: Final = 2 * MINUTE_S
UNKNOWN: Final = "no estimate yet"


def estimate_message(estimate: Estimate) -> str:
    """What a waiting user reads."""
    if estimate.estimate_seconds < MINUTE_S and estimate.upper_bound < NEAR_S:
        return duration_text(estimate.estimate_seconds)
    lower, upper = duration_text(estimate.lower_bound), duration_text(estimate.upper_bound)
    return lower if lower == upper else f"{lower}-{upper}"


def duration_text(seconds: int) -> str:
    """A duration in its own unit: `45 seconds`, `17 minutes`, `1h 5m`."""
    if seconds < MINUTE_S:
        return counted(seconds, "second")
    if seconds < HOUR_S:
        return counted(seconds // MINUTE_S, "minute")
    return f"{seconds // HOUR_S}h {seconds % HOUR_S // MINUTE_S}m"


def estimate_fields(estimate: Estimate | None, *, starts: bool = True) -> dict[str, Any]:
    """The part of `QueuePart` that tells the estimate. `starts`: something will start the job as things stand."""
    if estimate is None:
        return {"message": UNKNOWN} if starts else {}
    return {**estimate.model_dump(), "message": estimate_message(estimate)}

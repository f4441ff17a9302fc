"""What ended jobs leave, when they themselves are forgotten: as sums, and as names that somebody may still need.

    inputs    (user, hour of the end) → bytes, until `retention.inputs_days` after it
    lent      workspace of an earlier job → the last end of a job that went on from it

A job that was submitted again may be once more, so the workspace that it began with stays for as long as its own would.
Owns nothing of a job that has not ended. Grows with users and hours, and with retries of one day.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from headgate_contracts import Job
from libs.capacity.projection import epoch_ms
from libs.capacity.rooms import held_bytes
from libs.policy import Retention

HOUR_MS: Final = 3_600_000

UserHour = tuple[str, int]  # hours since 1970


@dataclass(slots=True)
class Remnants:
    """Sums over ended jobs, and the names of theirs that may still be needed."""

    inputs: Counter[UserHour] = field(default_factory=Counter[UserHour])
    lent: dict[str, datetime] = field(default_factory=dict[str, datetime])  # the one needed longest stands last

    def end(self, job: Job) -> None:
        """The job has ended."""
        work = job.submission.checkpoint
        if work is not None:
            self.lent.pop(work, None)
            self.lent[work] = job.updated_at

    def take(self, job: Job) -> None:
        """The job has left the ledger."""
        size = held_bytes(job.submission.input_bytes)
        if size:
            self.inputs[job.user_id, epoch_ms(job.updated_at) // HOUR_MS] += size

    def forget(self, now: datetime, kept: Retention) -> None:
        """What is asked about no more."""
        while self.lent and next(iter(self.lent.values())) < now - timedelta(days=kept.workspaces_days):
            del self.lent[next(iter(self.lent))]
        while self.inputs and leaves(next(iter(self.inputs))[1], kept) * HOUR_MS <= epoch_ms(now):
            del self.inputs[next(iter(self.inputs))]

    def leaving(self, kept: Retention) -> dict[UserHour, int]:
        """By which hour how many bytes of a user have gone."""
        return {(user, leaves(hour, kept)): size for (user, hour), size in self.inputs.items()}


def leaves(hour: int, kept: Retention) -> int:
    """At the beginning of which hour the inputs of those that ended in this one have all gone."""
    return hour + 24 * kept.inputs_days + 1

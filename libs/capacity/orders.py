"""What holds for more than one job: set by operators and by first submissions, as the log tells it.

A user's tier is known as long as any job of theirs is: their next submission brings it again. So is the limit that a
submission brings for a group as long as any unfinished job names that group: whoever invents groups leaves none behind.
An operator's stands above it until it is taken back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from headgate_contracts import Job
from headgate_contracts.events import LeaseReleased, LimitSet, LimitUnset, QueuePaused, QueueResumed
from libs.capacity.projection import epoch_ms
from libs.capacity.rows import FreeLease, OperatorOrder, Pause, Resume, SetLimit, UnsetLimit
from libs.capacity.scopes import scopes_of_job


@dataclass(slots=True)
class Orders:
    """Who is of which tier, what is limited to how much, what is paused."""

    arrivals: int = 0
    tiers: dict[str, str] = field(default_factory=dict[str, str])
    limits: dict[str, int] = field(default_factory=dict[str, int])  # of operators
    brought: dict[str, int] = field(default_factory=dict[str, int])  # of submissions
    asked: Counter[str] = field(default_factory=Counter[str])  # group → unfinished jobs that name it
    pauses: dict[str, Pause] = field(default_factory=dict[str, Pause])
    jobs: Counter[str] = field(default_factory=Counter[str])  # user → jobs that the ledger knows

    def fold(self, act: object, at: datetime) -> OperatorOrder | None:
        """An operator's act, as an order to the view; null where it is none."""
        match act:
            case QueuePaused():
                pause = Pause(act.scope, act.by, act.reason, epoch_ms(at))
                self.pauses[act.scope] = pause
                return pause
            case QueueResumed():
                self.pauses.pop(act.scope, None)
                return Resume(act.scope)
            case LimitSet():
                self.limits[act.group] = act.limit
                return SetLimit(act.group, act.limit)
            case LimitUnset():
                self.limits.pop(act.group, None)
                brought = self.brought.get(act.group)
                return UnsetLimit(act.group) if brought is None else SetLimit(act.group, brought)
            case LeaseReleased():
                return FreeLease(act.group, act.lease)
            case _:
                return None

    def begin(self, job: Job, defaults: dict[str, int]) -> None:
        """A job's first event: its user's tier, and the limits it brings where none is set."""
        self.tiers[job.user_id] = job.submission.tier.value
        for group in job.submission.groups:
            short = f"group/{group.name.rpartition(':')[2]}"
            if group.limit is not None and group.name not in defaults and short not in defaults:
                self.brought.setdefault(group.name, group.limit)

    def in_force(self) -> dict[str, int]:
        """What holds instead of policy."""
        return self.brought | self.limits

    def come(self, job: Job) -> None:
        """The ledger knows one more."""
        self.jobs[job.user_id] += 1
        if not job.status.is_end:
            self.asked.update(_groups_of(job))

    def end(self, job: Job) -> tuple[str, ...]:
        """The job has ended; the groups that no other names, and whose limit is gone with it."""
        self.asked.subtract(_groups_of(job))
        unused = [group for group in _groups_of(job) if not self.asked[group]]
        for group in unused:
            del self.asked[group]
        return tuple(group for group in unused if self.brought.pop(group, None) and group not in self.limits)

    def forget(self, job: Job) -> None:
        """The job has left the ledger."""
        self.jobs[job.user_id] -= 1
        if not self.jobs[job.user_id]:
            del self.jobs[job.user_id]
            self.tiers.pop(job.user_id, None)

    def is_paused(self, job: Job) -> bool:
        """Whether anything keeps the job from being started that a resume would end."""
        return bool(self.pauses) and not self.pauses.keys().isdisjoint(scopes_of_job(job))


def _groups_of(job: Job) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group.name for group in job.submission.groups))

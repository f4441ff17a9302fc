"""What holds for more than one job: set by operators and by first submissions, as the log tells it.

A user's tier is known as long as any job of theirs is: their next submission brings it again. So is the limit that a
submission brings for a group as long as any unfinished job names that group: invented groups leave nothing behind.
An operator's stands above it until it is taken back. A lease outside jobs brings one too, as long as such leases are
spoken of: nothing else tells whether any is held.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headgate_contracts import Job
from headgate_contracts.events import GroupLeased, LeaseReleased, LimitSet, LimitUnset, QueuePaused, QueueResumed
from libs.capacity.projection import epoch_ms
from libs.capacity.rows import FreeLease, OperatorOrder, Pause, Resume, SetLimit, UnsetLimit
from libs.capacity.scopes import scopes_of_job

LEASED_FOR = timedelta(days=1)  # twice as long as admission waits until it says it again


@dataclass(slots=True)
class Orders:
    """Who is of which tier, what is limited to how much, what is paused."""

    arrivals: int = 0
    tiers: dict[str, str] = field(default_factory=dict[str, str])
    limits: dict[str, int] = field(default_factory=dict[str, int])  # of operators
    brought: dict[str, int] = field(default_factory=dict[str, int])  # of submissions, and of leases outside jobs
    leased: dict[str, datetime] = field(default_factory=dict[str, datetime])  # group → when it was said last; in order
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
            if group.limit is not None and not _is_named(group.name, defaults):
                self.brought.setdefault(group.name, group.limit)

    def lease(self, act: GroupLeased, at: datetime, defaults: dict[str, int]) -> SetLimit | None:
        """Slots of the group are held outside jobs; the limit that this sets, where no job's stands above it."""
        group, before = act.group, self.brought.get(act.group)
        self.leased.pop(group, None)
        self.leased[group] = at
        stands = before is not None and self.asked[group] > 0
        if act.limit is None or act.limit == before or stands or _is_named(group, defaults):
            return None
        self.brought[group] = act.limit
        return None if group in self.limits else SetLimit(group, act.limit)

    def forget_leased(self, now: datetime) -> tuple[str, ...]:
        """Groups of which no lease outside jobs can be left; those whose limit is gone with them."""
        over = list[str]()
        for group, at in self.leased.items():
            if at + LEASED_FOR > now:
                break
            over.append(group)
        for group in over:
            del self.leased[group]
        return self._unbring(group for group in over if not self.asked[group])

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
        return self._unbring(group for group in unused if group not in self.leased)

    def _unbring(self, groups: Iterable[str]) -> tuple[str, ...]:
        return tuple(group for group in groups if self.brought.pop(group, None) and group not in self.limits)

    def forget(self, job: Job) -> None:
        """The job has left the ledger."""
        self.jobs[job.user_id] -= 1
        if not self.jobs[job.user_id]:
            del self.jobs[job.user_id]
            self.tiers.pop(job.user_id, None)

    def is_paused(self, job: Job) -> bool:
        """Whether anything keeps the job from being started that a resume would end."""
        return bool(self.pauses) and not self.pauses.keys().isdisjoint(scopes_of_job(job))


def _is_named(group: str, defaults: dict[str, int]) -> bool:
    """By policy, in full or by its last part."""
    return group in defaults or f"group/{group.rpartition(':')[2]}" in defaults


def _groups_of(job: Job) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group.name for group in job.submission.groups))

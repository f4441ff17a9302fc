"""Whose jobs take a place of which day by the log, and who has slipped past the cap of one.

Admission reserves a day before it writes (`policy/daily_cap.py` has that rule). Where the reservation was lost (the
view was, or admission was held up past its end), a job may take a place that there is not. That follows from the log
alone: when its event was folded, its user's day was full by the cap that the event names. A day that was reserved
stays, whatever becomes of tier and policy.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date

from headgate_contracts import Job, Status

UserDay = tuple[str, date]


@dataclass(slots=True)
class Days:
    """(user, day) → the jobs that take a place of it, and how many do that are known no more. `over`: those that took
    one when none was left, and how many there were to be."""

    by_day: dict[UserDay, set[str]] = field(default_factory=dict[UserDay, set[str]])
    used: Counter[UserDay] = field(default_factory=Counter[UserDay])
    over: dict[str, int] = field(default_factory=dict[str, int])
    _since: date = field(default=date.min, compare=False)  # no place of an earlier day is counted any more

    def fold(self, before: Job | None, job: Job, *, cap: int) -> None:
        """The job takes a place of this day now, of another one, or none. `cap`: how many places a new one had."""
        was, now = before and _day_of(before), _day_of(job)
        if was != now:
            self._leave(job.id, was)
            if now is not None and self._taken(now) >= cap:
                self.over[job.id] = cap
            self._take(job.id, now)
        if job.status.is_end:
            self.over.pop(job.id, None)

    def restore(self, job: Job) -> None:
        """As a snapshot holds it: `over` is known."""
        self._take(job.id, _day_of(job))

    def forget(self, job: Job) -> None:
        """The job has left the ledger; its place stays taken."""
        day = _day_of(job)
        if day is not None:
            if day[1] >= self._since:
                self.used[day] += 1
            self._discard(job.id, day)

    def forget_before(self, day: date) -> None:
        """Days that are over are asked about no more. Called with each record, it looks through them when the day
        changes."""
        if day <= self._since:
            return
        self._since = day
        for name in [name for name in self.used if name[1] < day]:
            del self.used[name]

    def slipped(self, jobs: Mapping[str, Job]) -> Iterator[Job]:
        """Those of them that wait in the queue; what has begun is let go on."""
        waiting = (jobs[name] for name in self.over)
        return (job for job in waiting if job.status is Status.QUEUED and not job.attempt)

    def _take(self, job_id: str, day: UserDay | None) -> None:
        if day is not None:
            self.by_day.setdefault(day, set()).add(job_id)

    def _leave(self, job_id: str, day: UserDay | None) -> None:
        """A place that is given back puts right a job that took one too many."""
        self.over.pop(job_id, None)
        if day is None:
            return
        members = self._discard(job_id, day)
        for name in self.over.keys() & members:
            if self._taken(day) <= self.over[name]:
                del self.over[name]

    def _discard(self, job_id: str, day: UserDay) -> set[str]:
        members = self.by_day[day]
        members.discard(job_id)
        if not members:
            del self.by_day[day]
        return members

    def _taken(self, day: UserDay) -> int:
        return len(self.by_day.get(day, ())) + self.used[day]


def _day_of(job: Job) -> UserDay | None:
    return None if job.quota_day is None else (job.user_id, job.quota_day)

"""What is to be done because something else happened, and what has to be asked of the view before it can be.

    forced     an operator forced a slot of it free                given back, once no worker runs it any more
    slipped    it took a place of a day that had none left         a place of another day
    doomed     an earlier phase failed or was cancelled            cancelled
    phase      the phase before it is ready                        a place in the queue

All of it follows from the ledger, so a new leader finds the same. Owns in which order those are asked who wait for room
in the queue: the one that was asked longest ago goes first, so that the one whom the view lets in next is never left
out. Refuses to decide: `domain` does, by the answers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Final

from headgate_contracts import Job, Status
from libs.capacity import answers
from libs.capacity.ledger import Ledger
from libs.capacity.ports import View
from libs.policy import Policy
from libs.policy.daily_cap import EPOCH_DAY, DayPlace
from services.scheduler.domain import Due, Placement, urgency
from services.scheduler.folding import Folding

ENTERING: Final = frozenset({Status.SCHEDULED, Status.WAITING})


@dataclass(slots=True)
class Duties:
    """The leader's list, and its questions. `stopped`: attempts that their workers say they have ended. `refused`: who
    was told that there is no room, or no day, in that order."""

    view: View
    ledger: Ledger
    policy: Policy
    folding: Folding
    stopped: set[str] = field(default_factory=set[str])
    refused: dict[str, int] = field(default_factory=dict[str, int])
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def listed(self, *, again: bool) -> Iterator[answers.DueTimer]:
        """What the ledger says is to be done. `again`: also by those who were told that there is no room, or no day."""
        ledger = self.ledger
        for job_id in ledger.forced:
            if ledger.jobs[job_id].worker is None or ledger.jobs[job_id].holder in self.stopped:
                yield answers.DueTimer(Due.FORCED, job_id, 0)
        for job in ledger.days.slipped(ledger.jobs):
            if again or job.id not in self.refused:
                yield answers.DueTimer(Due.SLIPPED, job.id, 0)
        for job_id in ledger.phases.doomed:
            yield answers.DueTimer(Due.DOOMED, job_id, 0)
        free = [job_id for job_id in ledger.phases.free if again or job_id not in self.refused]
        for job_id in sorted(free, key=lambda job_id: ledger.jobs[job_id].first_seq):  # older workflows first
            yield answers.DueTimer(Due.PHASE, job_id, 0)

    def kind_of(self, due: answers.DueTimer) -> str:
        """A worker that is gone before it gave a forced attempt back was not lost by the job's doing."""
        return Due.FORCED if due.kind == Due.LEASE and due.job in self.ledger.forced else due.kind

    @property
    def to_stop(self) -> tuple[str, ...]:
        """Attempts that are to be given back and that somebody runs."""
        jobs = (self.ledger.jobs[job_id] for job_id in self.ledger.forced)
        run = (job.holder for job in jobs if job.holder and job.worker is not None)
        return tuple(holder for holder in run if holder not in self.stopped)

    def cause(self, kind: str, job: Job) -> str:
        """Why, in words for the event."""
        match kind:
            case Due.FORCED:
                return f"its slot was forced free by {self.ledger.forced.get(job.id, 'an operator')}"
            case Due.DOOMED:
                return self.ledger.phases.doomed.get(job.id, "")
            case _:
                return ""

    def turn_of(self, due: answers.DueTimer) -> tuple[int, int]:
        """A lower one comes first: what is urgent, and the one that was refused last goes last. What could not be put
        right before is as urgent as what waits for room: however many they are, they hold nothing else up."""
        refused = self.refused.get(due.job, 0)
        return max(urgency(due.kind), urgency(Due.RELEASE) if refused else 0), refused

    def forget(self) -> None:
        """A job that is not about to enter the queue any more was not told anything."""
        jobs = self.ledger.jobs
        self.refused = {
            job_id: number
            for job_id, number in self.refused.items()
            if job_id in jobs and (jobs[job_id].status in ENTERING or job_id in self.ledger.days.over)
        }

    async def place(self, job: Job) -> Placement | None:
        """A place in the queue, held until its event is folded; null where there is no room."""
        request = answers.Release(
            job=job.id,
            cap=self.policy.queue.cap,
            passed_bound=self.policy.order.max_passed,
            lapse_ms=self._lapse_ms,
        )
        await self.folding.over()
        match await self.view.release(request):
            case answers.Reserved(arrival, place, passed, position):
                self.refused.pop(job.id, None)
                return Placement(arrival, place, passed, position)
            case _:
                self.refused[job.id] = next(self._numbers)
                return None

    async def day(self, job: Job, *, now: datetime) -> DayPlace | None:
        """A place of the first later day that has one, held likewise; null where none has."""
        tomorrow = (now.date() - EPOCH_DAY).days + 1  # what was put right never starts today
        per_day = self.policy.tier_limits(job.submission.tier).jobs_per_day
        deferral = answers.Deferral(
            job=job.id,
            user=job.user_id,
            first_day=tomorrow,
            per_day=per_day,
            horizon_days=self.policy.queue.horizon_days,
            lapse_ms=self._lapse_ms,
        )
        await self.folding.over()
        match await self.view.defer(deferral):
            case answers.Deferred(day):
                self.refused.pop(job.id, None)
                return DayPlace(day, await self.view.day_used(job.user_id, day) - 1, per_day)
            case _:
                self.refused[job.id] = next(self._numbers)
                return None

    @property
    def _lapse_ms(self) -> int:
        return round(self.policy.submissions.reservation_s * 1000)

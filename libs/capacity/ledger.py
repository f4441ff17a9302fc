"""The fold of the whole log, held in memory: what every process that folds the view knows by itself.

Owns the jobs that are unfinished or ended lately, what operators ordered, and all that follows from both: phases that
may go on, days that are over their cap, attempts to be given back, whose turn it is, how long jobs take. `apply` turns
one record of the log into the change it makes to the view. It never raises on a strange record: one bad record must
not halt the queue, so it is stepped over and complained of. Refuses to ask anybody anything: the log and the policy are
all it knows.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol, cast

from headgate_contracts import ContractError, Event, Holder, Job, JobEvent, UnknownEvent, advance, step_over
from headgate_contracts.events import (
    GroupLeased,
    JobData,
    JobDispatched,
    JobQueued,
    JobScheduled,
    LeaseReleased,
    PolicyReloaded,
    QueuePaused,
    QueueResumed,
    SchedulerCommitted,
)
from libs.capacity.days import Days
from libs.capacity.orders import Orders
from libs.capacity.paces import Pace, Paces, Wait
from libs.capacity.patience import Patience
from libs.capacity.phases import Phases
from libs.capacity.projection import defaults_of, epoch_ms, row_of
from libs.capacity.remnants import Remnants
from libs.capacity.roster import Roster
from libs.capacity.rows import Change, Row, Seed, StandingOrders
from libs.capacity.spacing import Places
from libs.capacity.turns import Turns
from libs.policy import Policy, PolicyError, PolicyInForce
from libs.policy.daily_cap import EPOCH_DAY
from libs.policy.reloading import refused_here

GONE_AT_ONCE = 20  # each record ends one job at most, so it is fast enough, and no record takes long
CLOCKS_APART = timedelta(days=1)  # a day is over for this clock and not yet for another
EARLY_KEPT = timedelta(hours=1)  # a reservation is long gone by then, so its job will never begin


class LogRecord(Protocol):
    """One message of the log, decoded. What is neither event nor unknown event could not be read."""

    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> datetime: ...
    @property
    def event(self) -> object: ...


@dataclass(slots=True)
class Ledger:
    """The log, added up to `applied`."""

    policy: Policy  # its own from here on: a reload changes it
    applied: int = 0
    jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    roster: Roster = field(default_factory=Roster)  # the unfinished ones of them
    passed: dict[str, int] = field(default_factory=dict[str, int])
    early: dict[str, tuple[int, datetime]] = field(default_factory=dict[str, tuple[int, datetime]])
    orders: Orders = field(default_factory=Orders)
    forced: dict[str, str] = field(default_factory=dict[str, str])  # running job → who forced a slot of it free
    days: Days = field(default_factory=Days)
    turns: Turns = field(default_factory=Turns)
    patience: Patience = field(default_factory=Patience)
    learned: Paces = field(default_factory=Paces)
    phases: Phases = field(default_factory=Phases)
    places: Places = field(default_factory=Places)
    remnants: Remnants = field(default_factory=Remnants)
    policy_seq: int = 0  # the record of the last reload
    policy_refused: str = ""  # why the one after that cannot be in force here
    _ended: deque[tuple[datetime, str]] = field(default_factory=deque[tuple[datetime, str]])
    _defaults: dict[str, int] = field(init=False)
    _in_force: PolicyInForce = field(init=False)

    def __post_init__(self) -> None:
        self.policy = self._in_force = PolicyInForce.of(self.policy)
        self._defaults = defaults_of(self.policy)
        for job in self.jobs.values():
            self.roster.fold(None, job)
            self.orders.come(job)
            self.places.fold(None, job)
            self.days.restore(job)
            self.turns.restore(job, paused=self.orders.is_paused(job))
        ended = sorted((job.updated_at, job.id) for job in self.jobs.values() if job.status.is_end)
        self._ended.extend(ended)

    @property
    def paces(self) -> dict[str, Pace]:
        """How long jobs of each tier take; a tier of which none has ended yet is not there."""
        return self.learned.by_tier

    @property
    def waits(self) -> deque[Wait]:
        """The last first starts, oldest first."""
        return self.learned.waits

    def apply(self, record: LogRecord) -> Change:
        """Advance by one record; what it does to the view."""
        prev, self.applied = self.applied, record.seq
        gone = self._forget(record.at)
        change = self._change(record, prev)
        unleased = (
            self.orders.forget_leased(record.at) if change.order is None else ()
        )  # an order is folded after those
        if unleased:
            change = replace(change, unused=(*change.unused, *unleased))
        return replace(change, gone=gone) if gone else change

    def _change(self, record: LogRecord, prev: int) -> Change:
        event = record.event
        try:
            match event:
                case Event(data=JobData()):
                    return self._fold_job(cast(JobEvent, event), record, prev)
                case Event(data=SchedulerCommitted()):
                    return Change(seq=record.seq, prev=prev)
                case Event(data=act):
                    return self._fold_act(act, record, prev)
                case UnknownEvent(job_id=str(job_id)):
                    before = self.jobs.get(job_id)
                    job = step_over(before, event, seq=record.seq, at=record.at)
                    return Change(seq=record.seq, prev=prev, row=self._keep(before, job))
                case _:
                    return Change(seq=record.seq, prev=prev, complaint=f"stepped over: {event}")
        except (ContractError, PolicyError) as error:
            return Change(seq=record.seq, prev=prev, complaint=f"no legal event, stepped over: {error}")

    def seeds(self) -> Iterator[Seed]:
        """Every job as a new view needs it."""
        for job in tuple(self.jobs.values()):
            yield Seed(row_of(job, self.policy), self.passed.get(job.id, 0))

    def standing(self) -> StandingOrders:
        """Everything else a new view needs."""
        orders = self.orders
        return StandingOrders(
            arrivals=orders.arrivals,
            tiers=dict(orders.tiers),
            limits=orders.in_force(),
            defaults=self._defaults,
            pauses=tuple(orders.pauses.values()),
            used={(user, (day - EPOCH_DAY).days): count for (user, day), count in self.days.used.items()},
            leaving=self.remnants.leaving(self.policy.retention),
        )

    # ── jobs ──────────────────────────────────────────────────────────────────

    def _fold_job(self, event: JobEvent, record: LogRecord, prev: int) -> Change:
        data = event.data
        before = self.jobs.get(data.job_id)
        job = advance(before, event, seq=record.seq, at=record.at)
        passed_before = 0
        if before is None:
            passed_before = self._begin(job)
        else:
            earlier_s = self._finished_before_s(before) if before.status.is_running else 0.0
            self.learned.learn(before, data, at=record.at, policy=self.policy, earlier_s=earlier_s)
        passed = data.passed if isinstance(data, JobQueued) else ()
        if isinstance(data, JobQueued):
            self._count_passed(data, record.at)
        row = self._keep(before, job, cap=data.quota_cap if isinstance(data, JobQueued | JobScheduled) else None)
        unused = self.orders.end(job) if job.status.is_end and before is not None else ()
        if before is not None and isinstance(data, JobDispatched):
            self.turns.start(before.priority.class_number, at_ms=epoch_ms(record.at), starved=data.starved)
        return Change(seq=record.seq, prev=prev, row=row, passed=passed, passed_before=passed_before, unused=unused)

    def _finished_before_s(self, job: Job) -> float | None:
        """How long workers had the jobs that this one goes on from; null where one of them is forgotten."""
        asked = job.submission
        if not asked.finished_stages:
            return 0.0
        first = self.jobs.get(asked.retry_of or "")
        before_s = None if first is None else self._finished_before_s(first)
        if first is None or before_s is None:
            return None
        last_s = (first.updated_at - first.claimed_at).total_seconds() if first.claimed_at else 0.0
        return before_s + first.worked_s + max(0.0, last_s)

    def _begin(self, job: Job) -> int:
        """A job's first event: what it brings for others, and how often it was passed already."""
        self.orders.begin(job, self._defaults)
        passed, _ = self.early.pop(job.id, (0, None))
        if passed:
            self.passed[job.id] = passed
        return passed

    def _count_passed(self, data: JobQueued, at: datetime) -> None:
        self.orders.arrivals = max(self.orders.arrivals, data.arrival)
        for job_id in data.passed:
            job = self.jobs.get(job_id)
            if job is None:
                count, _ = self.early.get(job_id, (0, at))
                self.early[job_id] = (count + 1, at)
            elif not job.status.is_end:
                self.passed[job_id] = self.passed.get(job_id, 0) + 1

    def _keep(self, before: Job | None, job: Job, *, cap: int | None = None) -> Row:
        self.jobs[job.id] = job
        self.roster.fold(before, job)
        if before is None:
            self.orders.come(job)
        self.days.fold(before, job, cap=self._cap_of(job) if cap is None else cap)
        self.places.fold(before, job)
        self.phases.fold(job)
        self._fold_pauses(job, at_ms=epoch_ms(job.updated_at))
        if not job.status.is_running:
            self.forced.pop(job.id, None)
        if job.status.is_end and not (before and before.status.is_end):
            self.passed.pop(job.id, None)
            self.remnants.end(job)
            self._ended.append((job.updated_at, job.id))
        return row_of(job, self.policy)

    def _cap_of(self, job: Job) -> int:
        """For an event that does not name the cap it was decided by: today's."""
        return self.policy.tier_limits(job.submission.tier).jobs_per_day

    def _forget(self, now: datetime) -> tuple[str, ...]:
        """By the log's own clock, so that every fold of the same records holds the same jobs."""
        kept, gone = self.policy.retention, list[str]()
        before = now - timedelta(seconds=kept.ended_s)
        while self._ended and len(gone) < GONE_AT_ONCE:
            if self._ended[0][0] >= before and len(self._ended) <= kept.ended_jobs:
                break
            gone.append(self._let_go(self._ended.popleft()[1]))
        self.remnants.forget(now, kept)
        self.days.forget_before(now.date() - CLOCKS_APART)
        for job_id in [job_id for job_id, (_, at) in self.early.items() if at < now - EARLY_KEPT]:
            del self.early[job_id]
        return tuple(gone)

    def _let_go(self, job_id: str) -> str:
        job = self.jobs.pop(job_id)
        self.orders.forget(job)
        self.days.forget(job)
        self.remnants.take(job)
        return job_id

    # ── acts ──────────────────────────────────────────────────────────────────

    def _fold_act(self, act: object, record: LogRecord, prev: int) -> Change:
        order = self.orders.fold(act, record.at)
        match act:
            case QueuePaused() | QueueResumed():
                at_ms = epoch_ms(record.at)
                for job in self.roster.queued.values():  # no other has a turn
                    self._fold_pauses(job, at_ms=at_ms)
            case LeaseReleased() if self._force(act):
                order = None  # it is held until its attempt has ended
            case GroupLeased():
                order = self.orders.lease(act, record.at, self._defaults)
            case PolicyReloaded():
                self.reload(act, record.seq)
            case _:
                pass
        return Change(seq=record.seq, prev=prev, order=order)

    def reload(self, act: PolicyReloaded, seq: int) -> None:
        """From record `seq` on this holds. Raises PolicyError, and changes nothing, where it cannot."""
        try:
            self._in_force.take(act.sections)
        except PolicyError as error:
            self.policy_refused = refused_here(seq, error)
            raise
        self._defaults, self.policy_seq, self.policy_refused = defaults_of(self.policy), seq, ""

    def _fold_pauses(self, job: Job, *, at_ms: int) -> None:
        paused = self.orders.is_paused(job)
        self.turns.fold(job, paused=paused, at_ms=at_ms)
        self.patience.fold(job, paused=paused, at_ms=at_ms)

    def _force(self, act: LeaseReleased) -> bool:
        """Whether it is a running attempt's, its own slot or one that its stage holds: that is to be given back."""
        holder = Holder.of_lease(act.lease)
        job = holder and self.jobs.get(holder.job)
        if job is None or job.holder != str(holder):
            return False
        if act.lease == job.holder and act.group not in (*job.groups, f"pool:{job.submission.pool}"):
            return False
        self.forced[job.id] = act.by
        return True

"""A history under a policy: the same jobs come at the same moments and stay as long, the rules do the rest.

    comes ──reserve──► queued ──plan──► stays in its slots ──► over, or away and back at its old place
              │ ▲
              │ └── release, at its day
              └───► scheduled, or refused: the queue is full

Owns what admission and scheduler do around the view. Deterministic. Refuses to invent: a job that was refused when it
was recorded is in no history, and one that is refused here does not come again.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from headgate_contracts.envelope import utc
from headgate_contracts.vocabulary import Priority, Tier
from libs.capacity.answers import Deferred, Release, Request, Reserved
from libs.capacity.projection import defaults_of, epoch_ms
from libs.capacity.rows import Row, StandingOrders
from libs.capacity.scopes import owners_of
from libs.forecast.lives import Life, RecordedPast, Stay
from libs.forecast.machine import FOREVER_MS, Happening, Machine, answer
from libs.forecast.run import Holds
from libs.policy import Policy
from libs.policy.daily_cap import DayPlace, release_at

DAY_MS: Final = 86_400_000
PRIORITIES: Final = {priority.class_number: priority.value for priority in Priority}


@dataclass(frozen=True, slots=True)
class Started:
    """The first start of a job."""

    job: str
    tier: str
    priority: str
    at_ms: int
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of it. `unstarted` were in the queue, or not yet, when nothing more happened."""

    starts: tuple[Started, ...]
    refused: tuple[str, ...]
    deferred: tuple[str, ...]
    unstarted: tuple[str, ...]


class Observer:
    """Somebody who watches, as the services would. This one does nothing with what it sees."""

    def entering(self, machine: Machine, row: Row, *, position: int) -> None: ...
    def started(self, row: Row, *, at_ms: int) -> None: ...
    def freed(self, row: Row, stay: Stay) -> None: ...


class Replay:
    """One history, once. `holds` deals stays to the jobs that were never seen to start."""

    def __init__(
        self, history: RecordedPast, policy: Policy, *, holds: Holds, observer: Observer | None = None
    ) -> None:
        self._history = history
        self._policy = policy
        self._holds = holds
        self._observer = observer or Observer()
        self._lives = {life.job: life for life in history.lives}
        self._next_phases = {life.after: life.job for life in history.lives if life.after in self._lives}
        self._stays: dict[str, deque[Stay]] = {}
        self._places: dict[str, int | None] = {}
        self._room: deque[str] = deque()  # released, and there was none
        self._starts: dict[str, Started] = {}
        self._refused: list[str] = []
        self._deferred: list[str] = []
        self._handlers: Mapping[str, Callable[[str], None]] = {
            "come": self._come,
            "release": self._room.append,
            "leave": self._leave,
            "end": self._end,
            "back": self._back,
            "rank": self._rank,
            "act": lambda number: self._machine.order(history.acts[int(number)].order),
            "staff": lambda number: self._machine.employ([history.staffed[int(number)].slots]),
        }
        self._machine = self._begin()

    def run(self, told: Callable[[int], None] = lambda _: None) -> Replayed:
        """To the end. `told` hears now and then how many jobs have started."""
        machine = self._machine
        while machine.agenda.next_ms is not None:
            for happening in machine.advance():
                self._handlers[happening.what](happening.job)
            self._fill()
            while started := machine.start():
                for row in started:
                    self._start(row)
                self._fill()
            told(len(self._starts))
        return Replayed(
            starts=tuple(self._starts.values()),
            refused=tuple(self._refused),
            deferred=tuple(self._deferred),
            unstarted=tuple(job for job in self._lives if job not in self._starts and job not in self._refused),
        )

    def _begin(self) -> Machine:
        history = self._history
        machine = Machine(self._policy, min((life.at_ms for life in history.lives), default=0))
        machine.begin(StandingOrders(defaults=defaults_of(self._policy)))
        for number, staffed in enumerate(history.staffed):
            machine.agenda.set(staffed.at_ms, Happening("staff", str(number)))
        for number, act in enumerate(history.acts):
            machine.agenda.set(act.at_ms, Happening("act", str(number)))
        for life in history.lives:
            if life.after not in self._lives:
                machine.agenda.set(life.at_ms, Happening("come", life.job))
            for at_ms, priority in life.ranks:
                machine.agenda.set(at_ms, Happening("rank", f"{life.job} {Priority(priority).class_number}"))
        return machine

    # ── into the queue ────────────────────────────────────────────────────────

    def _come(self, job: str) -> None:
        life = self._lives[job]
        row = _row(life, self._policy)
        match answer(self._machine.view.reserve(self._request(life, row))):
            case Reserved() as reserved:
                self._enter(row, reserved)
            case Deferred(day):
                self._deferred.append(job)
                self._machine.put(replace(row, status="scheduled", quota_day=day))
                self._machine.agenda.set(self._release_ms(life, day), Happening("release", job))
            case _:
                self._refused.append(job)
                self._next_phase(job)

    def _enter(self, row: Row, reserved: Reserved) -> None:
        entered = self._machine.entered(row, reserved)
        self._observer.entering(self._machine, entered, position=reserved.position)
        self._machine.put(entered, passed=reserved.passed)
        self._places[row.id] = reserved.place
        patience_s = self._lives[row.id].patience_s
        if patience_s is not None:
            self._machine.agenda.set(self._machine.now_ms + round(patience_s * 1000), Happening("leave", row.id))

    def _fill(self) -> None:
        """Jobs that wait for room come in, in order, as far as there is some."""
        while self._room:
            row = self._machine.rows[self._room[0]]
            release = Release(
                job=row.id,
                cap=self._policy.queue.cap,
                passed_bound=self._policy.order.max_passed,
                lapse_ms=FOREVER_MS,
            )
            reserved = answer(self._machine.view.release(release))
            if not isinstance(reserved, Reserved):
                return
            self._room.popleft()
            self._enter(row, reserved)

    def _back(self, job: str) -> None:
        """To its old place. The time it was away does not count as waiting."""
        row = self._machine.rows[job]
        timers = {"age": self._machine.now_ms + self._machine.ageing_ms}
        self._machine.put(replace(row, status="queued", place=self._places[job], timers=timers))

    # ── in the slots, and out of them ─────────────────────────────────────────

    def _start(self, row: Row) -> None:
        machine, life = self._machine, self._lives[row.id]
        if row.id not in self._starts:
            wait_s = (machine.now_ms - (row.entered_ms or machine.now_ms)) / 1000
            self._starts[row.id] = Started(row.id, row.tier, PRIORITIES[row.class_number], machine.now_ms, wait_s)
            self._observer.started(row, at_ms=machine.now_ms)
            self._stays[row.id] = deque(life.stays or [Stay(self._holds.hold_s(row.id, row.tier))])
        stay = self._stays[row.id][0]
        machine.agenda.set(machine.now_ms + max(1, round(stay.hold_s * 1000)), Happening("end", row.id))

    def _end(self, job: str) -> None:
        stay, row = self._stays[job].popleft(), self._machine.rows[job]
        self._observer.freed(row, stay)
        if self._stays[job]:
            self._machine.end(job, "awaiting_confirmation")
            self._machine.agenda.set(self._machine.now_ms + round((stay.away_s or 0) * 1000), Happening("back", job))
        else:
            self._over(job)

    def _leave(self, job: str) -> None:
        if job not in self._starts:
            self._over(job)

    def _over(self, job: str) -> None:
        refunded = self._lives[job].refunded
        if refunded:
            self._machine.put(replace(self._machine.rows[job], quota_day=None))
        self._machine.end(job)
        self._next_phase(job)

    def _next_phase(self, job: str) -> None:
        follower = self._next_phases.get(job)
        if follower is not None:
            self._machine.agenda.set(self._machine.now_ms, Happening("come", follower))

    # ── what was asked for ────────────────────────────────────────────────────

    def _rank(self, change: str) -> None:
        """Somebody gave a job another priority: in the new class too it stands by its arrival."""
        job, number = change.split(" ")
        row = self._machine.rows.get(job)
        if row is not None:
            self._machine.put(replace(row, class_number=int(number)))

    def _request(self, life: Life, row: Row) -> Request:
        policy, tier = self._policy, self._policy.tier_limits(Tier(life.tier))
        today, run_at_day = self._machine.now_ms // DAY_MS, (life.run_at_ms or 0) // DAY_MS
        return Request(
            job=life.job,
            user=life.user,
            project=life.project,
            pool=life.pool,
            class_number=row.class_number,
            boost=row.boost,
            workflow=life.workflow,
            takes_day=life.after is None,
            first_day=max(today, run_at_day),
            run_at_ms=life.run_at_ms,
            per_day=tier.jobs_per_day,
            horizon_days=policy.queue.horizon_days,
            cap=policy.queue.cap,
            user_share=policy.queue.user_share,
            passed_bound=policy.order.max_passed,
            lapse_ms=FOREVER_MS,
        )

    def _release_ms(self, life: Life, day: int) -> int:
        run_at = None if life.run_at_ms is None else utc(life.run_at_ms)
        spread_s = self._policy.queue.release_spread_s
        taken = answer(self._machine.view.day_used(life.user, day))
        place = DayPlace(day, taken - 1, self._policy.tier_limits(Tier(life.tier)).jobs_per_day)
        return epoch_ms(release_at(life.user, place, spread_s=spread_s, run_at=run_at))


def _row(life: Life, policy: Policy) -> Row:
    """The job before it has a place."""
    own = (*owners_of(life.user, life.project), *(("workflows",) if life.workflow else ()))
    return Row(
        id=life.job,
        status="waiting",
        seq=1,
        first_seq=1,
        attempt=0,
        user=life.user,
        project=life.project,
        workflow=life.workflow,
        pool=life.pool,
        tier=life.tier,
        class_number=Priority(life.priority).class_number,
        boost=policy.tier_limits(Tier(life.tier)).boost,
        arrival=None,
        place=None,
        entered_ms=None,
        groups=tuple(dict.fromkeys((*own, *(name for name, _ in life.groups)))),
        limits={name: limit for name, limit in life.groups if limit is not None},
    )

"""Who may run, worked out in the process that decides.

    the ledger's changes ──► take ────────┐
    workers' words ────────► staff ───────┼─► State ──► plan: who may run now
    what the border said ──► learn ───────┘

The state is the twin's, and so is every rule: nothing is decided here that `memory` does not decide. It holds
unfinished jobs alone, and of them only what a plan looks at. It stands where the ledger stands, always.

Owns no slot: a plan gives no job anything, and what was written by a stale one is refused by the log. What the log does
not tell, who holds slots inside of jobs and outside any and what is shut, it learns where it was refused, and forgets
when somebody has had a word about it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import inf
from typing import Final, Self

from libs.capacity.answers import Folded, Plan
from libs.capacity.ledger import Ledger
from libs.capacity.memory import life, slots
from libs.capacity.memory.blocking import owe_groups
from libs.capacity.memory.planning import plan
from libs.capacity.memory.state import SlotLease
from libs.capacity.projection import row_of
from libs.capacity.rows import Change, Row, Seed, StandingOrders
from libs.capacity.staff import Staff

NO_TIME_MS: Final = 0  # how long leases last here: a plan asks who holds slots, and never until when
NAMELESS: Final = ""  # it has no generations, and is of one log for as long as it lives


class Engine:
    """One replica's. `clock` tells the moments that leases and workers are told by, in milliseconds."""

    def __init__(
        self, standing: StandingOrders, seeds: Iterable[Seed], *, applied: int, clock: Callable[[], int]
    ) -> None:
        self._clock = clock
        self._state = life.begin(NAMELESS, generation=NAMELESS, applied=applied, standing=standing)
        self.staff = Staff(self._state, clock)
        self._learned: dict[str, list[str]] = {}  # group → leases that stand for slots of which the log does not tell
        self._pauses: dict[str, int] = {}  # provider → until when, as it was said
        self._seed(seeds)

    @classmethod
    def of(cls, ledger: Ledger, *, clock: Callable[[], int]) -> Self:
        """Where this ledger stands."""
        return cls(ledger.standing(), _seeds_of(ledger), applied=ledger.applied, clock=clock)

    def renew(self, ledger: Ledger) -> None:
        """Where this ledger stands, whose policy is another one. Workers are known as before; what was learned of slots
        is learned again where somebody is refused."""
        before = self._state
        self._state = life.begin(NAMELESS, generation=NAMELESS, applied=ledger.applied, standing=ledger.standing())
        self._state.workers, self._state.expiries = before.workers, before.expiries
        self._seed(_seeds_of(ledger))

    def _seed(self, seeds: Iterable[Seed]) -> None:
        unfinished = (replace(seed, row=_planned(seed.row)) for seed in seeds if seed.row.status not in life.ENDS)
        life.seed(self._state, unfinished, lease_ms=NO_TIME_MS, now_ms=self._clock())

    @property
    def now_ms(self) -> int:
        return self._clock()

    @property
    def applied(self) -> int:
        """Up to which record of the log it was folded."""
        return self._state.applied

    # ── what the log says ─────────────────────────────────────────────────────

    def take(self, changes: Iterable[Change]) -> None:
        """The ledger's next changes."""
        now_ms = self._clock()
        for change in changes:
            if change.row is not None and self._runs_on(change.row):
                self._state.applied = change.seq  # nothing that a plan looks at
            else:
                self._fold(change, now_ms=now_ms)

    def _runs_on(self, row: Row) -> bool:
        known = self._state.rows.get(row.id)
        return known is not None and known.holder is not None and known.holder == row.holder

    def _fold(self, change: Change, *, now_ms: int) -> None:
        kept = change if change.row is None else replace(change, row=_planned(change.row))
        folded = life.fold(self._state, (kept,), lease_ms=NO_TIME_MS, now_ms=now_ms)
        assert isinstance(folded, Folded), f"record {change.seq} does not follow {folded.applied}"
        if change.row is not None:
            life.forget(self._state, change.row.id)  # where it has ended

    # ── what was said of slots ────────────────────────────────────────────────

    def pause(self, provider: str, until_ms: int) -> None:
        """No job gets a slot of this provider until then, as a worker has said. The view says it to all who ask: this
        is for when it is away."""
        self._pauses[provider] = max(until_ms, self._pauses.get(provider, 0))

    def paused_until_ms(self, provider: str) -> int | None:
        """Null: as far as was heard, it is open."""
        until_ms = self._pauses.get(provider, 0)
        return until_ms if until_ms > self._clock() else None

    # ── what the log does not tell ────────────────────────────────────────────

    def learn(self, group: str, *, others: int, until_ms: int | None = None) -> None:
        """So many slots of the group are held by somebody whom the log does not tell of, and it is shut until then."""
        now_ms = self._clock()
        self._unlearn(group)
        names = self._learned[group] = [f"{group} {number}" for number in range(others)]
        for name in names:
            slots.hold(
                self._state, name, SlotLease((group,), owner=None, ttl_ms=NO_TIME_MS, since_ms=now_ms), end_ms=inf
            )
        if until_ms is not None and until_ms > now_ms:
            self._state.shut.add(group, until_ms)

    def quarantine(self, until_ms: int) -> None:
        """No job gets a slot that leases want too until then: what running jobs hold of them is not known. Gates are
        open."""
        self._state.quarantine_until_ms = until_ms
        self._state.unheard = {NAMELESS}

    def unlearn(self) -> None:
        """A slot was given back, or may have been: a job that is refused again says so again."""
        self._state.unheard.clear()  # the next plan ends the quarantine
        for group in [*self._learned]:
            self._unlearn(group)

    def _unlearn(self, group: str) -> None:
        if group not in self._learned:
            return
        for name in self._learned.pop(group):
            owe_groups(self._state, slots.end_lease(self._state, name).elements())
        slots.open_(self._state, group)

    # ── who may run ───────────────────────────────────────────────────────────

    def plan(self, limit: int, *, only_class: int | None = None) -> Plan:
        """Who may run now, in order, of all or of one class. No job is given anything."""
        return plan(self._state, limit, only_class=only_class, now_ms=self._clock())


def _seeds_of(ledger: Ledger) -> Iterator[Seed]:
    for job in ledger.jobs.values():
        if not job.status.is_end:
            yield Seed(row_of(job, ledger.policy), passed=0)


def _planned(row: Row) -> Row:
    """What a plan looks at: neither text nor timers, days and inputs, which readers and admission ask the view for."""
    return replace(row, timers={}, quota_day=None, input_bytes=0, input_until_ms=None, job="")

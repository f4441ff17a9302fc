"""Who may run now, in order: a walk over the eligible jobs that parks what it finds blocked.

Owns the walk. Its picks are what a walk over the whole unpaused queue would pick, or over one class of it, at the price
of a few looks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from libs.capacity.answers import Pick, Plan
from libs.capacity.memory.blocking import LOOKS, bucket_of, first_full, leave, owe_groups, park, pay
from libs.capacity.memory.limits import is_full, limit_of
from libs.capacity.memory.slots import catch_up
from libs.capacity.memory.sorted_set import ScoredMember
from libs.capacity.memory.state import State, active, shut_until, slots_of
from libs.capacity.rows import Row, score_of
from libs.capacity.scopes import ALL


def plan(state: State, limit: int, *, only_class: int | None, now_ms: int) -> Plan:
    state.untold += catch_up(state, now_ms=now_ms)
    pay(state, LOOKS, now_ms=now_ms)
    if state.debts:
        return Plan(state.applied, (), {}, {}, more=True)
    walk = _Walk(state, now_ms)
    if only_class is not None:
        walk.cursor = (score_of(only_class, 0), "")
        walk.end = score_of(only_class + 1, 0)
    walk.run(limit)
    return Plan(state.applied, tuple(walk.picks), walk.limits, walk.slots, more=walk.more)


_PoolClass = tuple[str, int]  # pool and class: of these, how many stand for a slot of a group, picked or passed over


@dataclass(slots=True)
class _Walk:
    state: State
    now_ms: int
    looks: int = LOOKS
    more: bool = False
    cursor: ScoredMember = (-1, "")
    end: float = inf  # the first score that is not looked at
    slots_at: dict[str, int] = field(default_factory=dict[str, int])
    free: dict[str, int] = field(default_factory=dict[str, int])  # pool → slots that no job has or was picked for
    picked: Counter[str] = field(default_factory=Counter[str])  # group → slots
    standing: defaultdict[_PoolClass, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    picks: list[Pick] = field(default_factory=list[Pick])
    limits: dict[str, int] = field(default_factory=dict[str, int])
    slots: dict[str, int] = field(default_factory=dict[str, int])

    def run(self, limit: int) -> None:
        self._count_free_slots()
        while len(self.picks) < limit and not self.more:
            row = self._next()
            if row is None:
                return
            self._look_at(row)

    def _count_free_slots(self) -> None:
        """Of every pool with a worker: one without an eligible job now may have one when debts are paid on the way."""
        state = self.state
        if ALL in state.paused:
            return
        for pool in {worker.pool for worker in state.workers.values()}:
            if f"pool:{pool}" not in state.paused:
                self.slots_at[pool] = slots_of(state, pool, self.now_ms)
                is_shut = shut_until(state, f"pool:{pool}", self.now_ms) is not None
                self.free[pool] = 0 if is_shut else self.slots_at[pool] - active(state, f"pool:{pool}", self.now_ms)

    def _next(self) -> Row | None:
        """The first eligible job behind the cursor, of all pools that have a free slot."""
        heads = (self.state.eligible[pool].after(self.cursor) for pool, free in self.free.items() if free > 0)
        first = min((head for head in heads if head and head[0] < self.end), default=None)
        if first is None:
            return None
        if not self.looks:
            self.more = True
            return None
        self.cursor = first
        return self.state.rows[first[1]]

    def _look_at(self, row: Row) -> None:
        self.looks -= 1
        if first_full(self.state, row, now_ms=self.now_ms, picked=self.picked) is None:
            self._pick(row)
            return
        # Only those of its own pool and class stand for it: picks of another may come to nothing.
        group = first_full(self.state, row, now_ms=self.now_ms, picked=self.standing[row.pool, row.class_number])
        if group is not None:
            self._park(row, group)
        else:
            self._pass_over(row)

    def _pick(self, row: Row) -> None:
        self.picks.append(Pick(row.id, row.seq))
        self.picked.update(row.groups)
        self.standing[row.pool, row.class_number].update(row.groups)
        self.free[row.pool] -= 1
        self.slots[row.pool] = self.slots_at[row.pool]
        for group in row.groups:
            self.limits[group] = limit_of(self.state, group, tier=row.tier, now_ms=self.now_ms)

    def _park(self, row: Row, group: str) -> None:
        """It stood for a slot in its other groups: the jobs that may have that must be on the walk before it goes
        on."""
        leave(self.state, row, takes_slots=True)
        park(self.state, row, group)
        self._pay(row.groups, but=bucket_of(row, group))

    def _pass_over(self, row: Row) -> None:
        """It goes on standing for its slots, and takes none in this walk: the jobs that may have them are to be on
        it."""
        self.standing[row.pool, row.class_number].update(row.groups)
        self._pay([group for group in row.groups if not self._is_full(row, group)])

    def _is_full(self, row: Row, group: str) -> bool:
        return is_full(self.state, group, tier=row.tier, now_ms=self.now_ms, picked=self.picked[group])

    def _pay(self, groups: Iterable[str], *, but: str | None = None) -> None:
        owe_groups(self.state, groups, but=but)
        self.looks = pay(self.state, self.looks, now_ms=self.now_ms)
        self.more = bool(self.state.debts)

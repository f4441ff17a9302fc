"""Who may run now, in order: a walk over the eligible jobs that parks what it finds blocked.

Owns the walk. Its picks are what a walk over the whole unpaused queue would pick, at the price of a few looks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from libs.capacity.answers import Pick, Plan
from libs.capacity.memory.blocking import LOOKS, bucket_of, first_full, leave, owe_groups, park, pay
from libs.capacity.memory.slots import catch_up
from libs.capacity.memory.sorted_set import Entry
from libs.capacity.memory.state import State, active, limit_of, slots_of
from libs.capacity.rows import Row


def plan(state: State, limit: int, *, now_ms: int) -> Plan:
    state.untold += catch_up(state, now_ms=now_ms)
    pay(state, LOOKS, now_ms=now_ms)
    if state.debts:
        return Plan(state.applied, (), {}, {}, more=True)
    walk = _Walk(state, now_ms)
    walk.run(limit)
    return Plan(state.applied, tuple(walk.picks), walk.limits, walk.slots, more=walk.more)


@dataclass(slots=True)
class _Walk:
    state: State
    now_ms: int
    looks: int = LOOKS
    more: bool = False
    cursor: Entry = (-1, "")
    slots_at: dict[str, int] = field(default_factory=dict[str, int])
    free: dict[str, int] = field(default_factory=dict[str, int])  # pool → slots that nobody has or was picked for
    picked: Counter[str] = field(default_factory=Counter[str])  # group → slots
    picked_in: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # the same by pool
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
        if "all" in state.paused:
            return
        for pool in {worker.pool for worker in state.workers.values()}:
            if f"pool:{pool}" not in state.paused:
                self.slots_at[pool] = slots_of(state, pool, self.now_ms)
                self.free[pool] = self.slots_at[pool] - active(state, f"pool:{pool}", self.now_ms)

    def _next(self) -> Row | None:
        """The first eligible job behind the cursor, of all pools that have a free slot."""
        heads = (self.state.eligible[pool].after(self.cursor) for pool, free in self.free.items() if free > 0)
        first = min((head for head in heads if head), default=None)
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
        # Only picks of its own pool stand for it: those of another may come to nothing, as that pool's slots may.
        group = first_full(self.state, row, now_ms=self.now_ms, picked=self.picked_in[row.pool])
        if group is not None:
            self._park(row, group)

    def _pick(self, row: Row) -> None:
        self.picks.append(Pick(row.id, row.seq))
        self.picked.update(row.groups)
        self.picked_in[row.pool].update(row.groups)
        self.free[row.pool] -= 1
        self.slots[row.pool] = self.slots_at[row.pool]
        for group in row.groups:
            self.limits[group] = limit_of(self.state, group, tier=row.tier, now_ms=self.now_ms)

    def _park(self, row: Row, group: str) -> None:
        """It stood for a slot in its other groups: whoever may have that must be on the walk before it goes on."""
        leave(self.state, row, takes_slots=True)
        park(self.state, row, group)
        owe_groups(self.state, row.groups, but=bucket_of(row, group))
        self.looks = pay(self.state, self.looks, now_ms=self.now_ms)
        self.more = bool(self.state.debts)

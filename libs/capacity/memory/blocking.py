"""Who is blocked by what: eligible jobs, the buckets of those that a full group blocks, and the debts of the buckets.

    enter ──► eligible:<pool> ──plan finds it blocked──► parked:<bucket>
      └── a group is full ─────────────────────────────────▲   │ a slot comes free: a debt; `pay` looks at the first
                  eligible:<pool> ◄────────────────────────────┘

Keeps the rule: of every bucket with parked jobs, at least as many eligible jobs of its group, pool and class go before
its first as the group has free slots, debts counted. So a walk over the eligible ones misses none. Buckets are per
pool, as an eligible job whose pool has no free slot must not stand for one that could run elsewhere; and per class, as
a starving class is planned by itself. What a gate blocks has a bucket of its own: it waits for no slot.
"""

from collections.abc import Collection, Iterable, Mapping

from libs.capacity.memory.limits import is_full, limit_of
from libs.capacity.memory.state import GATE, State
from libs.capacity.rows import Row

LOOKS = 1_000  # at parked or eligible jobs in one call, so that no call blocks the others
NOBODY: Mapping[str, int] = {}


def first_full(state: State, row: Row, *, now_ms: int, picked: Mapping[str, int] = NOBODY) -> str | None:
    """The group that blocks the row, or `shut:` and the gate that does; the jobs in `picked` are taken as running."""
    for group in (*row.groups, *(f"{GATE}{gate}" for gate in row.gates)):
        if is_full(state, group, tier=row.tier, now_ms=now_ms, picked=picked.get(group, 0)):
            return group
    return None


def enter(state: State, row: Row, *, now_ms: int) -> None:
    """A row in the queue that nothing pauses."""
    group = first_full(state, row, now_ms=now_ms)
    if group is None:
        state.eligible[row.pool].add(row.id, _score(row))
    else:
        park(state, row, group)


def leave(state: State, row: Row, *, takes_slots: bool) -> None:
    """Out of where it stands. One that was eligible stood for a slot that another may now have."""
    bucket = state.parked_in.get(row.id)
    if bucket is not None:
        _unpark(state, row, bucket)
    elif state.eligible[row.pool].discard(row.id) and not takes_slots:
        owe_groups(state, row.groups)


# ── buckets ───────────────────────────────────────────────────────────────────


def bucket_of(row: Row, group: str) -> str:
    """Jobs of one bucket are blocked alike: by one limit, in one pool, in one class."""
    tier = f"/{row.tier}" if group.startswith("project:") else ""
    return f"{group}{tier}@{row.pool}/{row.class_number}"


def group_of(bucket: str) -> tuple[str, str | None]:
    """The group and, of a project's, the tier."""
    group, _, _ = bucket.rpartition("@")
    if not group.startswith("project:"):
        return group, None
    group, _, tier = group.rpartition("/")
    return group, tier


def park(state: State, row: Row, group: str) -> None:
    bucket = bucket_of(row, group)
    state.parked[bucket].add(row.id, _score(row))
    state.parked_in[row.id] = bucket
    state.buckets[group].add(bucket)


def _unpark(state: State, row: Row, bucket: str) -> None:
    del state.parked_in[row.id]
    state.parked[bucket].discard(row.id)
    if not state.parked[bucket]:
        group = group_of(bucket)[0]
        state.debts.pop(bucket, None)
        del state.parked[bucket]
        state.buckets[group].discard(bucket)
        if not state.buckets[group]:
            del state.buckets[group]


# ── debts ─────────────────────────────────────────────────────────────────────


def owe(state: State, bucket: str, looks: int) -> None:
    state.debts[bucket] = min(len(state.parked[bucket]), state.debts.get(bucket, 0) + looks)


def owe_groups(state: State, groups: Iterable[str], *, but: str | None = None) -> None:
    """One more look at each bucket of these groups."""
    for group in groups:
        for bucket in state.buckets.get(group, ()):
            if bucket != but:
                owe(state, bucket, 1)


def owe_all(state: State, group: str) -> None:
    for bucket in state.buckets.get(group, ()):
        owe(state, bucket, len(state.parked[bucket]))


def limits_of(state: State, groups: Collection[str], *, now_ms: int) -> dict[str, int]:
    """The limit that counts in each bucket of these groups, to be compared when limits have changed."""
    buckets = (bucket for group in groups for bucket in state.buckets.get(group, ()))
    return {bucket: _limit_in(state, bucket, now_ms=now_ms) for bucket in buckets}


def owe_raises(state: State, before: Mapping[str, int], *, now_ms: int) -> None:
    """As many looks as the limits of these buckets have risen since."""
    for bucket, old in before.items():
        raised = _limit_in(state, bucket, now_ms=now_ms) - old
        if raised > 0:
            owe(state, bucket, raised)


def pay(state: State, looks: int, *, now_ms: int) -> int:
    """Look at what is owed, buckets in the order of their names; how many looks are left. Unpaid debts remain."""
    for bucket in sorted(state.debts):
        looks = _pay_one(state, bucket, looks, now_ms=now_ms)
    return looks


def _pay_one(state: State, bucket: str, looks: int, *, now_ms: int) -> int:
    group, tier = group_of(bucket)
    while looks and bucket in state.debts:
        if is_full(state, group, tier=tier, now_ms=now_ms):
            del state.debts[bucket]  # every slot that comes free makes a new one
        else:
            looks -= 1
            _look(state, bucket, now_ms=now_ms)
    return looks


def _look(state: State, bucket: str, *, now_ms: int) -> None:
    """The first of the bucket becomes eligible and a debt is paid, or goes to the bucket of what blocks it now."""
    row = state.rows[state.parked[bucket].first() or ""]
    _unpark(state, row, bucket)
    group = first_full(state, row, now_ms=now_ms)
    if group is not None:
        park(state, row, group)
        return
    state.eligible[row.pool].add(row.id, _score(row))
    if bucket in state.debts:
        state.debts[bucket] -= 1
        if not state.debts[bucket]:
            del state.debts[bucket]


def _limit_in(state: State, bucket: str, *, now_ms: int) -> int:
    group, tier = group_of(bucket)
    return limit_of(state, group, tier=tier, now_ms=now_ms)


def _score(row: Row) -> int:
    assert row.score is not None, "only a job in the queue is eligible or parked"
    return row.score

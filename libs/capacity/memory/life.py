"""The life of a view: begun, seeded, opened, and then folded one change after the other.

Owns what a row and an order of the log change. The view always equals a fold of the log.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from libs.capacity.answers import Folded, Grant, StaleView
from libs.capacity.memory import claims, inputs, slots
from libs.capacity.memory.blocking import enter, leave, limits_of, owe_raises
from libs.capacity.memory.entering import RELEASABLE, cancel_reservation, give_day, take_day
from libs.capacity.memory.limits import named_default
from libs.capacity.memory.places import join, quit_queue, spot_of
from libs.capacity.memory.state import State, is_aside
from libs.capacity.rows import (
    CLASS_STEP,
    Change,
    FreeLease,
    OperatorOrder,
    Pause,
    Resume,
    Row,
    Seed,
    SetLimit,
    StandingOrders,
    UnsetLimit,
)
from libs.capacity.scopes import CLASS_OF_SCOPE

ENDS = frozenset({"ready", "failed", "cancelled"})


def begin(epoch: str, *, generation: str, applied: int, standing: StandingOrders) -> State:
    state = State(
        epoch,
        generation,
        applied,
        standing.arrivals,
        tiers=dict(standing.tiers),
        limits=dict(standing.limits),
        defaults=dict(standing.defaults),
        paused={pause.scope: pause for pause in standing.pauses},
        used=Counter(standing.used),
    )
    for (user, hour), size in standing.leaving.items():
        inputs.leave(state, user, size, hour=hour)
    return state


def seed(state: State, seeds: Iterable[Seed], *, lease_ms: int, now_ms: int) -> None:
    for each in seeds:
        row = each.row
        state.tiers.setdefault(row.user, row.tier)
        _put(state, row, now_ms=now_ms, lease_ms=lease_ms)
        state.passed[row.id] = each.passed


def open_(state: State, *, quarantine_ms: int, leased: Iterable[str], leased_ms: int, now_ms: int) -> None:
    """Decisions may be made; where jobs run and may hold slots inside them, not yet in the groups of those, nor in
    those whose slots may be held outside any."""
    if state.is_open:
        return
    state.is_open = True
    for group in leased:
        state.shut.add(group, now_ms + leased_ms)
    if state.running and quarantine_ms > 0:
        state.quarantine_until_ms = now_ms + quarantine_ms
        state.unheard = set(state.running)


def fold(state: State, changes: Sequence[Change], *, lease_ms: int, now_ms: int) -> Folded | StaleView:
    grants: list[Grant] = []
    for change in changes:
        if change.prev == state.applied:
            state.applied = change.seq
            grants += _fold_one(state, change, lease_ms=lease_ms, now_ms=now_ms)
    everything = not changes or state.applied >= changes[-1].seq
    told = slots.with_unsent(state, grants)
    return Folded(state.applied, told) if everything else StaleView(state.applied, told)


def _fold_one(state: State, change: Change, *, lease_ms: int, now_ms: int) -> list[Grant]:
    grants: list[Grant] = []
    for job in change.gone:
        forget(state, job)
    if change.row is not None:
        grants += _fold_row(state, change.row, change, lease_ms=lease_ms, now_ms=now_ms)
    for group in change.unused:
        grants += _unset_limit(state, group, now_ms=now_ms)
    if change.order is not None:
        grants += _fold_order(state, change.order, now_ms=now_ms)
    return grants + slots.end_quarantine(state, now_ms=now_ms)


# ── rows ──────────────────────────────────────────────────────────────────────


def _fold_row(state: State, row: Row, change: Change, *, lease_ms: int, now_ms: int) -> list[Grant]:
    is_new = row.id not in state.rows
    raised = _begin_job(state, row, passed=change.passed_before, now_ms=now_ms) if is_new else set[str]()
    cancel_reservation(state, row.id)
    freed = claims.settle(state, row)
    freed += _put(state, row, now_ms=now_ms, lease_ms=lease_ms)
    for job in change.passed:
        if job in state.reservations or (job in state.rows and state.rows[job].status not in ENDS):
            state.passed[job] += 1
    grants = slots.hand_on(state, freed, now_ms=now_ms)
    return grants + slots.wake_all(state, raised, now_ms=now_ms)


def _begin_job(state: State, row: Row, *, passed: int, now_ms: int) -> set[str]:
    """A job's first event: its user's tier and the limits it brings. Gives the groups whose limits may have changed."""
    state.passed[row.id] = passed
    brought = {group: limit for group, limit in row.limits.items() if not _is_named(state, group)}
    changed = {f"user:{row.user}", *brought}
    before = limits_of(state, changed, now_ms=now_ms)
    state.tiers[row.user] = row.tier
    state.limits.update(brought)
    owe_raises(state, before, now_ms=now_ms)
    return changed


def _is_named(state: State, group: str) -> bool:
    return group in state.limits or named_default(state.defaults, group) is not None


def _put(state: State, row: Row, *, now_ms: int, lease_ms: int) -> slots.Freed:
    """The row in the place of the old one, in every index; the slots that came free by it."""
    old = state.rows.get(row.id)
    if old is not None:
        _take_back(state, old, row)
    state.rows[row.id] = row
    freed = slots.change_holder(state, old, row, now_ms=now_ms, lease_ms=lease_ms)
    state.arrivals = max(state.arrivals, row.arrival or 0)
    for kind, due_ms in row.timers.items():
        state.timers.add(f"{kind}:{row.id}", due_ms)
    if row.quota_day is not None:
        take_day(state, row.id, (row.user, row.quota_day))
    state.jobs[row.user].add(row.id, row.first_seq)
    if row.place is not None:
        spot = spot_of(row, row.id, row.place, named=(*row.groups, *row.gates))
        if join(state, spot):
            enter(state, row, now_ms=now_ms)
    if row.status in ENDS:
        del state.passed[row.id]
    inputs.fold(state, row)
    return freed


def _take_back(state: State, old: Row, new: Row | None) -> None:
    """Out of every index but those of slots. `new` is null where the job leaves the view."""
    leave(state, old, takes_slots=new is not None and new.holder is not None)
    quit_queue(state, old.id)
    for kind in old.timers:
        state.timers.discard(f"{kind}:{old.id}")
    if old.quota_day is not None:
        give_day(state, old.id, (old.user, old.quota_day))
    if new is None or new.status not in RELEASABLE:
        state.room.discard(old.id)


def forget(state: State, job: str) -> None:
    """Of one that has ended only sums are left."""
    row = state.rows.get(job)
    if row is None or row.status not in ENDS:
        return
    if row.quota_day is not None:
        state.used[row.user, row.quota_day] += 1
    if row.input_until_ms is not None:
        inputs.forget(state, row, until_ms=row.input_until_ms)
    _take_back(state, row, None)
    state.jobs[row.user].discard(job)
    if not state.jobs[row.user]:
        del state.jobs[row.user]
        state.tiers.pop(row.user, None)
    del state.rows[job]


# ── orders ────────────────────────────────────────────────────────────────────


def _fold_order(state: State, order: OperatorOrder, *, now_ms: int) -> list[Grant]:
    match order:
        case Pause():
            _pause(state, order)
        case Resume(scope):
            _resume(state, scope, now_ms=now_ms)
        case SetLimit(group, limit):
            return _set_limit(state, group, limit, now_ms=now_ms)
        case UnsetLimit(group):
            return _unset_limit(state, group, now_ms=now_ms)
        case FreeLease(group, lease):
            return slots.hand_on(state, slots.force(state, group, lease), now_ms=now_ms)
    return []


def _pause(state: State, order: Pause) -> None:
    """Take the scope's jobs aside. `all` and pools are looked at when planning: their jobs stay where they are."""
    state.paused[order.scope] = order
    for job in _members(state, order.scope):
        spot = state.spots[job]
        state.line[spot.pool].discard(job)
        if job in state.rows:
            leave(state, state.rows[job], takes_slots=False)


def _resume(state: State, scope: str, *, now_ms: int) -> None:
    if state.paused.pop(scope, None) is None:
        return
    for job in _members(state, scope):
        spot = state.spots[job]
        if is_aside(state, spot):
            continue
        state.line[spot.pool].add(job, spot.score)
        row = state.rows.get(job)
        if row is not None and row.place is not None:
            enter(state, row, now_ms=now_ms)


def _members(state: State, scope: str) -> list[str]:
    """Everybody in the queue whom the scope names, in order."""
    number = CLASS_OF_SCOPE.get(scope)
    if number is not None:
        return [*state.queue.between(number * CLASS_STEP, (number + 1) * CLASS_STEP)]
    return sorted(state.members.get(scope, ()), key=lambda job: (state.spots[job].score, job))


def _set_limit(state: State, group: str, limit: int, *, now_ms: int) -> list[Grant]:
    before = limits_of(state, [group], now_ms=now_ms)
    state.limits[group] = limit
    owe_raises(state, before, now_ms=now_ms)
    return slots.wake(state, group, now_ms=now_ms)


def _unset_limit(state: State, group: str, *, now_ms: int) -> list[Grant]:
    before = limits_of(state, [group], now_ms=now_ms)
    state.limits.pop(group, None)
    owe_raises(state, before, now_ms=now_ms)
    return slots.wake(state, group, now_ms=now_ms)


def configure(state: State, defaults: Mapping[str, int], *, now_ms: int) -> None:
    before = limits_of(state, list(state.buckets), now_ms=now_ms)
    state.defaults = dict(defaults)
    owe_raises(state, before, now_ms=now_ms)
    waited = [group for group, waiters in state.waiters.items() if waiters]
    state.untold += slots.wake_all(state, waited, now_ms=now_ms)


def prolong(state: State, by_ms: int) -> None:
    """No worker could be heard for so long: what ends by silence ends that much later."""
    for ending in (state.running, state.ends, state.expiries, state.deadlines):
        for end_ms, name in ending.entries():
            ending.add(name, end_ms + by_ms)
    for name in state.leases:
        slots.extend(state, name, end_ms=int(state.ends.score(name) or 0))
    if state.quarantine_until_ms:
        state.quarantine_until_ms += by_ms

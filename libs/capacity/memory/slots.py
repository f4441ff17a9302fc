"""Slots of groups: held by running jobs until the log says otherwise, by leases until they end, and waited for.

Owns holders, leases, waiters and what is shut. A slot that comes free goes to the group's waiters first, in order, then
to the jobs that the group blocks. A waiter holds nothing: it stands in line for the first of its groups that
is full.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from math import inf

from headgate_contracts import Holder
from libs.capacity.answers import Full, Grant, Granted, LeaseAnswer, LeaseRequest, LeasesFull, NotYours, WaitsInLine
from libs.capacity.memory.blocking import owe_all, owe_groups
from libs.capacity.memory.limits import is_full, limit_of
from libs.capacity.memory.state import GATE, SlotLease, State, Waiter, active, shut_until
from libs.capacity.projection import is_inner
from libs.capacity.rows import Row

Freed = Counter[str]  # group → slots
OVER_MS = 120_000  # how long a message about a lease that was given up may still be under way


# ── running jobs ──────────────────────────────────────────────────────────────


def change_holder(state: State, old: Row | None, new: Row, *, now_ms: int, lease_ms: int) -> Freed:
    """From what the job held to what it holds; what came free by that."""
    freed = Freed()
    if old and old.holder and old.holder != new.holder:
        freed += _end_holder(state, old, old.holder)
    if new.holder is None:
        return freed
    kept = old is not None and old.holder == new.holder
    if not kept:
        state.running.add(new.holder, now_ms + lease_ms)
    for group in _slots(old) if old and kept else ():
        if group not in _slots(new):
            let_go(state, group, new.holder)
            freed[group] += 1
    for group in _slots(new):
        state.held[group].add(new.holder, inf)
    return freed


def _end_holder(state: State, row: Row, holder: str) -> Freed:
    state.running.discard(holder)
    state.unheard.discard(holder)
    for group in _slots(row):
        let_go(state, group, holder)
    freed = Freed(_slots(row))
    for lease in sorted(state.inner.pop(row.id, ())):
        freed += end_lease(state, lease)
    for lease in sorted(state.asking.pop(row.id, ())):
        drop_waiter(state, lease)
    state.freed.pop(row.id, None)
    return freed


def let_go(state: State, group: str, name: str) -> None:
    state.held[group].discard(name)
    if not state.held[group]:
        del state.held[group]


def _slots(row: Row) -> tuple[str, ...]:
    return (*row.groups, f"pool:{row.pool}")


def is_running(state: State, holder: str) -> bool:
    return holder in state.running


# ── leases ────────────────────────────────────────────────────────────────────


def acquire(state: State, request: LeaseRequest, *, now_ms: int) -> LeaseAnswer:
    state.untold += catch_up(state, now_ms=now_ms)
    if request.owner is not None and not _may_hold(state, request.lease, request.owner, now_ms=now_ms):
        return NotYours(request.owner)
    known = state.leases.get(request.lease) or state.waiting.get(request.lease)
    if known is not None and request.owner is None and not _is_theirs(known, request):
        return NotYours(None)
    if request.lease in state.leases:
        if request.owner is None:
            _extend_to(state, request.lease, end_ms=now_ms + request.ttl_ms)
        return Granted(request.lease, _end_of(state, request.lease), again=True)
    if request.held_until_ms is not None:
        return _hold_again(state, request, told_ms=request.held_until_ms, now_ms=now_ms)
    if request.lease in state.waiting:
        return _wait_on(state, request, now_ms=now_ms)
    has = _leased(state, request.user)
    if request.most is not None and has >= request.most:
        return LeasesFull(has)
    return _acquire_anew(state, request, now_ms=now_ms)


def _may_hold(state: State, name: str, owner: str, *, now_ms: int) -> bool:
    return is_running(state, owner) and not was_given_up(state, name, now_ms=now_ms)


def was_given_up(state: State, name: str, *, now_ms: int) -> bool:
    """Then a stage does not hold it again, whatever was under way: it would be held by nobody."""
    return (state.given_up.score(name) or 0) > now_ms


def _leased(state: State, user: str | None) -> int:
    """How many they hold and wait for outside any job."""
    known = (*state.leases.values(), *state.waiting.values()) if user is not None else ()
    return sum(each.owner is None and each.user == user for each in known)


def _is_theirs(known: SlotLease | Waiter, request: LeaseRequest) -> bool:
    return (known.owner, known.user, known.groups) == (None, request.user, tuple(dict.fromkeys(request.groups)))


def _extend_to(state: State, name: str, *, end_ms: int) -> None:
    """Never to an earlier end than its holder was told."""
    extend(state, name, end_ms=max(end_ms, _end_of(state, name)))


def _hold_again(state: State, request: LeaseRequest, *, told_ms: int, now_ms: int) -> LeaseAnswer:
    """Its holder was told an end that is not over. Where the groups are shut, as nobody knows who holds them since the
    view was lost, it is held again; everywhere else the view would know it."""
    groups = tuple(dict.fromkeys(request.groups))
    shut_now = all(shut_until(state, group, now_ms) is not None for group in groups)
    if told_ms <= now_ms or not shut_now or any(_has_no_room(state, group, now_ms) for group in groups):
        return NotYours(None)
    end_ms = now_ms + request.ttl_ms
    hold(state, request.lease, SlotLease(groups, None, request.ttl_ms, now_ms, request.user), end_ms=end_ms)
    return Granted(request.lease, end_ms, again=True)


def _has_no_room(state: State, group: str, now_ms: int) -> bool:
    return active(state, group, now_ms) >= limit_of(state, group, tier=None, now_ms=now_ms)


def _wait_on(state: State, request: LeaseRequest, *, now_ms: int) -> WaitsInLine:
    """Outside jobs a waiter that asks again waits for as long from now, at the old place."""
    if request.owner is None:
        until_ms = max(now_ms + request.wait_ms, state.deadlines.score(request.lease) or 0)
        state.deadlines.add(request.lease, until_ms)
    return replace(_waits(state, request.lease, now_ms=now_ms), again=True)


def _acquire_anew(state: State, request: LeaseRequest, *, now_ms: int) -> LeaseAnswer:
    groups = wanted_groups(state, request.groups, request.owner)
    if request.owner is not None:
        state.freed[job_of(request.owner)].discard(request.lease)
    if not groups:
        return Granted(request.lease, now_ms + request.ttl_ms)
    full = _first_full(state, groups, now_ms=now_ms)
    if full is None:
        hold(
            state,
            request.lease,
            SlotLease(groups, request.owner, request.ttl_ms, now_ms, request.user),
            end_ms=now_ms + request.ttl_ms,
        )
        now_active = tuple((group, active(state, group, now_ms)) for group in groups)
        return Granted(request.lease, now_ms + request.ttl_ms, active=now_active)
    if request.wait_ms <= 0:
        limit, until_ms = limit_of(state, full, tier=None, now_ms=now_ms), shut_until(state, full, now_ms)
        return Full(full, limit, active(state, full, now_ms), until_ms)
    _wait(state, request, groups, full, now_ms=now_ms)
    return _waits(state, request.lease, now_ms=now_ms)


def wanted_groups(state: State, groups: Iterable[str], owner: str | None) -> tuple[str, ...]:
    """Without those that the owner's job holds itself."""
    row = state.rows.get(job_of(owner)) if owner else None
    return tuple(group for group in dict.fromkeys(groups) if row is None or group not in row.groups)


def job_of(holder: str) -> str:
    return Holder.parse(holder).job


def hold(state: State, name: str, lease: SlotLease, *, end_ms: float) -> None:
    state.leases[name] = lease
    state.ends.add(name, end_ms)
    for group in lease.groups:
        state.held[group].add(name, end_ms)
    if lease.owner is not None:
        state.inner[job_of(lease.owner)].add(name)


def extend(state: State, name: str, *, end_ms: int) -> None:
    state.ends.add(name, end_ms)
    for group in state.leases[name].groups:
        state.held[group].add(name, end_ms)


def end_lease(state: State, name: str) -> Freed:
    """Let go of a lease; nothing where there is none."""
    lease = state.leases.pop(name, None)
    if lease is None:
        return Freed()
    state.ends.discard(name)
    for group in lease.groups:
        let_go(state, group, name)
    if lease.owner is not None:
        state.inner[job_of(lease.owner)].discard(name)
    return Freed(lease.groups)


def give_up(state: State, name: str, *, user: str | None, wait_only: bool, now_ms: int) -> tuple[Grant, ...]:
    """Its holder needs it no more, or waits for it no more. Where a user says so, it has to be theirs."""
    known = state.leases.get(name) or state.waiting.get(name)
    if user is not None and known is not None and known.user != user:
        return with_unsent(state, [])
    drop_waiter(state, name)
    freed = Freed() if wait_only else end_lease(state, name)
    if user is None:
        state.given_up.add(name, now_ms + OVER_MS)
    return with_unsent(state, hand_on(state, freed, now_ms=now_ms))


def force(state: State, group: str, name: str) -> Freed:
    """An operator's word: the lease is over, and its stage is not to hold it again."""
    waiter = state.waiting.get(name)
    if waiter is not None and group in waiter.groups:
        drop_waiter(state, name)
    lease = state.leases.get(name)
    if lease is None or group not in lease.groups:
        return Freed()
    if lease.owner is not None:
        state.freed[job_of(lease.owner)].add(name)
    return end_lease(state, name)


def _end_of(state: State, name: str) -> int:
    return int(state.ends.score(name) or 0)


def _first_full(state: State, groups: Iterable[str], *, now_ms: int) -> str | None:
    return next((group for group in groups if is_full(state, group, tier=None, now_ms=now_ms)), None)


# ── waiters ───────────────────────────────────────────────────────────────────


def _wait(state: State, request: LeaseRequest, groups: tuple[str, ...], full: str, *, now_ms: int) -> None:
    state.tickets += 1
    waiter = Waiter(groups, request.owner, request.ttl_ms, request.reply, state.tickets, full, request.user)
    state.waiting[request.lease] = waiter
    state.waiters[full].add(request.lease, waiter.ticket)
    state.deadlines.add(request.lease, now_ms + request.wait_ms)
    if request.owner is not None:
        state.asking[job_of(request.owner)].add(request.lease)


def _waits(state: State, name: str, *, now_ms: int) -> WaitsInLine:
    waiter = state.waiting[name]
    behind = state.waiters[waiter.group].rank(waiter.ticket)
    return WaitsInLine(name, waiter.group, behind, shut_until(state, waiter.group, now_ms))


def drop_waiter(state: State, name: str) -> None:
    waiter = state.waiting.pop(name, None)
    if waiter is None:
        return
    state.waiters[waiter.group].discard(name)
    state.deadlines.discard(name)
    if waiter.owner is not None:
        state.asking[job_of(waiter.owner)].discard(name)


def wake(state: State, group: str, *, now_ms: int) -> list[Grant]:
    """Look at those who wait for the group, in order, while it has a slot."""
    grants: list[Grant] = []
    for name in list(state.waiters.get(group, ())):
        if is_full(state, group, tier=None, now_ms=now_ms):
            break
        if (state.deadlines.score(name) or 0) <= now_ms:
            drop_waiter(state, name)
            continue
        grant = _grant_or_move(state, name, now_ms=now_ms)
        if grant is not None:
            grants.append(grant)
    return grants


def _grant_or_move(state: State, name: str, *, now_ms: int) -> Grant | None:
    waiter = state.waiting[name]
    full = _first_full(state, waiter.groups, now_ms=now_ms)
    if full is not None:
        state.waiters[waiter.group].discard(name)
        state.waiters[full].add(name, waiter.ticket)
        waiter.group = full
        return None
    drop_waiter(state, name)
    end_ms = now_ms + waiter.ttl_ms
    lease = SlotLease(waiter.groups, waiter.owner, waiter.ttl_ms, now_ms, waiter.user)
    hold(state, name, lease, end_ms=end_ms)
    return Grant(name, waiter.owner, waiter.reply, end_ms)


# ── what comes free ───────────────────────────────────────────────────────────


def hand_on(state: State, freed: Freed, *, now_ms: int) -> list[Grant]:
    """Slots that came free: to the waiters, then to the jobs that the groups block."""
    grants = wake_all(state, freed, now_ms=now_ms)
    owe_groups(state, freed.elements())
    return grants


def wake_all(state: State, groups: Iterable[str], *, now_ms: int) -> list[Grant]:
    return [grant for group in sorted(groups) for grant in wake(state, group, now_ms=now_ms)]


def catch_up(state: State, *, now_ms: int) -> list[Grant]:
    """What time alone has ended: waiting, leases, what was shut. Jobs' own leases end in the log only."""
    for name in state.deadlines.up_to(now_ms):
        drop_waiter(state, name)
    for name in state.ends.up_to(now_ms):
        owe_groups(state, end_lease(state, name).elements())
    grants = end_quarantine(state, now_ms=now_ms) + _reopen(state, now_ms=now_ms)
    return grants + wake_all(state, [group for group, waiters in state.waiters.items() if waiters], now_ms=now_ms)


def end_quarantine(state: State, *, now_ms: int) -> list[Grant]:
    """Open the inner groups again, where all running jobs have said what they hold of them, or have had their time."""
    if not state.quarantine_until_ms or (state.unheard and now_ms < state.quarantine_until_ms):
        return []
    state.quarantine_until_ms = 0
    state.unheard.clear()
    for group in list(state.buckets):
        if is_inner(group):
            owe_all(state, group)
    return wake_all(state, [group for group in state.waiters if is_inner(group)], now_ms=now_ms)


def shut(state: State, group: str, until_ms: int, *, now_ms: int) -> tuple[Grant, ...]:
    """No job and no lease gets a slot of the group until then, or until a later end that was told before."""
    grants = catch_up(state, now_ms=now_ms)
    if until_ms > now_ms:
        state.shut.add(group, max(until_ms, state.shut.score(group) or 0))
    return with_unsent(state, grants)


def _reopen(state: State, *, now_ms: int) -> list[Grant]:
    """Those whose time is over."""
    opened = state.shut.up_to(now_ms)
    for group in opened:
        open_(state, group)
    return wake_all(state, opened, now_ms=now_ms)


def open_(state: State, group: str) -> None:
    """Shut no longer: all whom it blocked are owed a look."""
    state.shut.discard(group)
    owe_all(state, group)
    owe_all(state, f"{GATE}{group}")


def with_unsent(state: State, grants: list[Grant]) -> tuple[Grant, ...]:
    """These grants, after those that the answers since could not carry."""
    state.untold, untold = [], state.untold
    return (*untold, *grants)

"""Workers: that they live, what they run, and what time alone changes when none of them speaks.

Owns heartbeats and the sweep.
"""

from collections import Counter

from libs.capacity.answers import Heartbeat, HeartbeatAnswer, HeldLease, Swept
from libs.capacity.memory import claims, inputs
from libs.capacity.memory.entering import forget_days, lapse, refused
from libs.capacity.memory.slots import (
    catch_up,
    end_quarantine,
    extend,
    hand_on,
    hold,
    is_running,
    job_of,
    wanted_groups,
    was_given_up,
    with_unsent,
)
from libs.capacity.memory.state import SlotLease, State, Worker


def beat(state: State, heartbeat: Heartbeat, *, now_ms: int) -> HeartbeatAnswer:
    end_ms = now_ms + heartbeat.ttl_ms
    state.workers[heartbeat.worker] = Worker(
        heartbeat.pool, heartbeat.slots, heartbeat.draining, heard_ms=now_ms, holders=heartbeat.holders
    )
    state.expiries.add(heartbeat.worker, end_ms)
    kept: list[str] = []
    cancel: list[str] = []
    not_yours: list[str] = []
    for holder in heartbeat.holders:
        if not is_running(state, holder):
            not_yours.append(holder)
            continue
        state.running.add(holder, end_ms)
        state.unheard.discard(holder)
        (cancel if state.rows[job_of(holder)].cancelling else kept).append(holder)
    lost = [
        lease.lease for lease in heartbeat.leases if not _hear(state, lease, ttl_ms=heartbeat.ttl_ms, now_ms=now_ms)
    ]
    grants = with_unsent(state, end_quarantine(state, now_ms=now_ms))
    return HeartbeatAnswer(tuple(kept), tuple(cancel), tuple(not_yours), tuple(lost), grants)


def _hear(state: State, named: HeldLease, *, ttl_ms: int, now_ms: int) -> bool:
    """Whether the lease is its worker's still. One that the view does not know is held again: its stage goes on."""
    if not is_running(state, named.owner) or named.lease in state.freed.get(job_of(named.owner), ()):
        return False
    if was_given_up(state, named.lease, now_ms=now_ms):
        return False
    known = state.leases.get(named.lease)
    if known is not None:
        extend(state, named.lease, end_ms=now_ms + known.ttl_ms)
        return True
    groups = wanted_groups(state, named.groups, named.owner)
    if groups:
        hold(state, named.lease, SlotLease(groups, named.owner, ttl_ms, now_ms), end_ms=now_ms + ttl_ms)
    return True


def sweep(state: State, *, now_ms: int) -> Swept:
    lapsed = lapse(state, now_ms)
    unused = hand_on(state, claims.lapse(state, now_ms=now_ms), now_ms=now_ms)
    for user in state.spent.up_to(now_ms):
        state.spent.discard(user)
    for lease in state.given_up.up_to(now_ms):
        state.given_up.discard(lease)
    inputs.sweep(state, now_ms=now_ms)
    forget_days(state, now_ms=now_ms)
    state.refused = Counter(refused(state, now_ms=now_ms))
    grants = with_unsent(state, unused + catch_up(state, now_ms=now_ms))
    gone = tuple(state.expiries.up_to(now_ms))
    for worker in gone:
        state.expiries.discard(worker)
        del state.workers[worker]
    return Swept(grants, lapsed, gone)

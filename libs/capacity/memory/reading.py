"""What readers are told. Changes nothing."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import compress, islice
from math import inf

from headgate_contracts import Holder
from libs.capacity.answers import (
    DueTimer,
    GroupStatus,
    Obstacle,
    Outlook,
    QueueEntry,
    SlotHolder,
    ViewMark,
    WorkerStatus,
)
from libs.capacity.memory.entering import RELEASABLE, is_reserved
from libs.capacity.memory.limits import is_full, limit_of
from libs.capacity.memory.places import position
from libs.capacity.memory.slots import job_of
from libs.capacity.memory.sorted_set import SortedSet
from libs.capacity.memory.state import (
    State,
    Worker,
    active,
    is_quarantined,
    live_pools,
    shut_until,
    slots_of,
    times_passed,
)
from libs.capacity.rows import Pause, Row
from libs.capacity.scopes import owners_of, scopes_of


def mark(state: State) -> ViewMark:
    return ViewMark(state.epoch, state.generation, state.applied, state.is_open)


def due(state: State, limit: int, *, now_ms: int) -> tuple[DueTimer, ...]:
    """Timers and running jobs' leases that are over, the oldest first."""
    timers = [_due(state, name, *name.split(":", 1)) for name in state.timers.up_to(now_ms)[:limit]]
    leases = [_lease_due(state, holder) for holder in state.running.up_to(now_ms)[:limit]]
    return tuple(sorted(timers + leases, key=lambda each: (each.due_ms, each.kind, each.job))[:limit])


def _due(state: State, name: str, kind: str, job: str) -> DueTimer:
    return DueTimer(kind, job, int(state.timers.score(name) or 0))


def _lease_due(state: State, holder: str) -> DueTimer:
    job, attempt = Holder.parse(holder)
    return DueTimer("lease", job, int(state.running.score(holder) or 0), attempt)


def outlook(state: State, job: str, *, now_ms: int) -> Outlook | None:
    row = state.rows.get(job)
    if row is None or (row.place is None and row.status not in RELEASABLE):
        return None
    spot = None if row.place is None else state.spots[job]
    scopes = scopes_of(row.class_number, row.pool, owners_of(row.user, row.project, row.workflow))
    return Outlook(
        position=spot and position(state, spot),
        score=spot and spot.score,
        passed=times_passed(state, job),
        room=job in state.room,
        pauses=tuple(state.paused[scope] for scope in scopes if scope in state.paused),
        obstacles=_obstacles(state, row, now_ms=now_ms),
        pool_slots=slots_of(state, row.pool, now_ms),
        pool_active=active(state, f"pool:{row.pool}", now_ms),
        quarantined=any(is_quarantined(state, group, now_ms) for group in row.groups),
    )


def _obstacles(state: State, row: Row, *, now_ms: int) -> tuple[Obstacle, ...]:
    """Groups that have no slot for it or are shut, and gates that are."""
    found = [_obstacle(state, group, row, now_ms=now_ms) for group in dict.fromkeys((*row.groups, *row.gates))]
    blocks = (each.until_ms or (each.group in row.groups and each.active >= each.limit) for each in found)
    return tuple(compress(found, blocks))


def _obstacle(state: State, group: str, row: Row, *, now_ms: int) -> Obstacle:
    holders = _holders(state, group, now_ms)
    return Obstacle(
        group=group,
        limit=limit_of(state, group, tier=row.tier, now_ms=now_ms),
        active=len(holders),
        since_ms=_full_since(state, group),
        holders=tuple(_holder(state, holder) for holder in holders),
        until_ms=shut_until(state, group, now_ms),
    )


def _full_since(state: State, group: str) -> int | None:
    """The group is full since the job that started last."""
    rows = (state.rows[job_of(holder)] for holder in state.held.get(group, ()) if holder in state.running)
    return max((row.started_ms for row in rows if row.started_ms is not None), default=None)


def group(state: State, name: str, *, tier: str | None, now_ms: int) -> GroupStatus:
    holders = _holders(state, name, now_ms)
    return GroupStatus(
        group=name,
        limit=limit_of(_with_tier(state, name, tier), name, tier=tier, now_ms=now_ms),
        active=len(holders),
        waiting=len(state.waiters.get(name, ())),
        blocked=_blocked(state, name, tier=tier, now_ms=now_ms),
        holders=tuple(_holder(state, holder) for holder in holders),
        shut_until_ms=shut_until(state, name, now_ms),
    )


def _blocked(state: State, name: str, *, tier: str | None, now_ms: int) -> int:
    """All that name it, where it has no slot for the first of them: of a project each tier has its own limit."""
    jobs = state.members.get(name, ())
    if not jobs:
        return 0
    first = state.rows.get(_ordered(state, jobs)[0])  # null: a submission that is not in the log yet
    own = first.tier if first is not None else None
    return len(jobs) if is_full(_with_tier(state, name, tier), name, tier=own, now_ms=now_ms) else 0


def _with_tier(state: State, group: str, tier: str | None) -> State:
    """As it would be with a job of this tier: it is then its user's."""
    kind, _, name = group.partition(":")
    return state if kind != "user" or tier is None else replace(state, tiers={**state.tiers, name: tier})


def groups(state: State, *, now_ms: int) -> tuple[str, ...]:
    """Every group that has a limit of its own, that somebody holds a slot of or waits for, or that is shut."""
    named = {name for name in state.defaults if "/" not in name and name != "group"}
    pools = {f"pool:{pool}" for pool in live_pools(state, now_ms) if slots_of(state, pool, now_ms)}
    held = {group for group in state.held if active(state, group, now_ms)}
    waited = {group for group, waiters in state.waiters.items() if waiters}
    shut = {group for group in state.shut if shut_until(state, group, now_ms)}
    return tuple(sorted(named | pools | held | waited | shut | state.limits.keys()))


def workers(state: State, *, now_ms: int) -> tuple[WorkerStatus, ...]:
    """Those that are not silent, by name."""
    until = {name: int(end_ms) for end_ms, name in state.expiries.entries() if end_ms > now_ms}
    return tuple(_worker(state, name, state.workers[name], until_ms=until[name]) for name in sorted(until))


def _worker(state: State, name: str, worker: Worker, *, until_ms: int) -> WorkerStatus:
    return WorkerStatus(
        worker=name,
        pool=worker.pool,
        slots=worker.slots,
        draining=worker.draining,
        heard_ms=worker.heard_ms,
        until_ms=until_ms,
        holders=tuple(holder for holder in worker.holders if holder in state.running),
    )


def pauses(state: State) -> tuple[Pause, ...]:
    return tuple(state.paused[scope] for scope in sorted(state.paused))


def tiers_queued(state: State) -> dict[str, int]:
    """Of the jobs of the log: a reservation is none yet."""
    return dict(Counter(state.rows[job].tier for job in state.queue if not is_reserved(state, job)))


def _holders(state: State, group: str, now_ms: int) -> list[str]:
    held = state.held.get(group) or SortedSet()
    return sorted(holder for end_ms, holder in held.entries() if end_ms > now_ms)


def _holder(state: State, name: str) -> SlotHolder:
    lease = state.leases.get(name)
    if lease is not None and lease.owner is None:
        return SlotHolder(name, None, None, lease.user, None, lease.since_ms, int(state.ends.score(name) or 0))
    job, attempt = Holder.parse(name if lease is None else lease.owner or "")
    row = state.rows[job]
    since_ms = row.started_ms if lease is None else lease.since_ms
    claimed_ms = state.claim_lapses.score(job)  # that of a job's own slots, until it is dispatched
    expires_ms = (state.running.score(name) or claimed_ms) if lease is None else state.ends.score(name)
    return SlotHolder(name, job, attempt, row.user, row.worker, since_ms, int(expires_ms or 0))


def jobs_of(state: State, user: str, *, before: int | None, count: int) -> tuple[tuple[str, int], ...]:
    """The newest first."""
    jobs = state.jobs.get(user) or SortedSet()
    older = jobs.back_from(inf if before is None else before, 0)
    return tuple((job, int(first_seq)) for first_seq, job in islice(older, count))


def queue(state: State, *, offset: int, count: int | None) -> tuple[QueueEntry, ...]:
    stop = None if count is None else offset + count
    return tuple(
        QueueEntry(job=job, score=int(score), reserved=is_reserved(state, job), passed=times_passed(state, job))
        for score, job in state.queue.entries(offset, stop)
    )


def _ordered(state: State, jobs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(jobs, key=lambda job: (state.spots[job].score, job)))

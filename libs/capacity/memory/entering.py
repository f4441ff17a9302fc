"""Who may enter the queue, and what is held for an event to come: a place, a day, a place of the hundred.

Owns reservations, days, room and the pace of each user. Where in the queue a job lands is for `places` to say.
"""

from libs.capacity.answers import (
    Busy,
    DeferAnswer,
    Deferral,
    Deferred,
    HorizonFull,
    Known,
    NoRoom,
    NotQueued,
    NotReleasable,
    Other,
    Release,
    ReleaseAnswer,
    Request,
    ReserveAnswer,
    Reserved,
    ShareFull,
    TooFast,
)
from libs.capacity.memory import inputs
from libs.capacity.memory.places import land, quit_queue, take
from libs.capacity.memory.state import Reservation, State, live_pools, slots_of

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
AHEAD_MS = 60_000  # how much of their time a user may spend ahead: a minute's reservations at once
RELEASABLE = frozenset({"scheduled", "waiting"})


# ── asking ────────────────────────────────────────────────────────────────────


def reserve(state: State, request: Request, *, now_ms: int) -> ReserveAnswer:
    row = state.rows.get(request.job)
    if row is not None:
        return Known(row.status, row.seq)
    if inputs.is_other(state, request):
        return Other()
    reservation = state.reservations.get(request.job)
    if reservation is None:
        return _reserve_anew(state, request, now_ms=now_ms)
    if not request.dry:
        inputs.hold(state, request, now_ms=now_ms)
        state.lapses.add(request.job, now_ms + request.lapse_ms)
    return reservation.answer


def _reserve_anew(state: State, request: Request, *, now_ms: int) -> ReserveAnswer:
    early_ms = _spent_with(state, request, now_ms) - now_ms - AHEAD_MS
    if early_ms > 0:
        return TooFast(early_ms)
    bytes_full = inputs.refusal(state, request, now_ms=now_ms)
    if bytes_full is not None:
        return bytes_full
    today = now_ms // DAY_MS
    day = _free_day(state, request, today=today) if request.takes_day else None
    if request.takes_day and day is None:
        return HorizonFull(today + request.horizon_days)
    if (request.run_at_ms or 0) > now_ms or (day or 0) > today:
        return _put_off(state, request, day, today=today, now_ms=now_ms)
    if state.room or len(state.queue) >= request.cap:
        return Busy(len(state.queue), sum(slots_of(state, pool, now_ms) for pool in live_pools(state, now_ms)))
    held = len(state.members.get(f"user:{request.user}", ()))
    if held >= request.user_share:
        return ShareFull(held)
    reservation = land(state, request, bound=request.passed_bound, day=day)
    return _hold(state, request, reservation, day=day, now_ms=now_ms)


def _put_off(state: State, request: Request, day: int | None, *, today: int, now_ms: int) -> Deferred:
    """The day is held; a job that takes none has nothing to be held."""
    if day is None:
        return Deferred(max(today, request.first_day))
    _hold(state, request, Reservation(Deferred(day), spot=None), day=day, now_ms=now_ms)
    return Deferred(day)


def release(state: State, request: Release, *, now_ms: int) -> ReleaseAnswer:
    row, job = state.rows.get(request.job), request.job
    if row is None or row.status not in RELEASABLE:
        return NotReleasable(job)
    reservation = state.reservations.get(job)
    if reservation is None:
        first = state.room.first()
        if len(state.queue) >= request.cap or first not in (None, job):
            if job not in state.room:
                state.room.add(job, now_ms)
            return NoRoom()
        state.room.discard(job)
        reservation = land(state, row, bound=request.passed_bound, day=row.quota_day)
        _keep(state, job, reservation)
    state.lapses.add(job, now_ms + request.lapse_ms)
    assert isinstance(reservation.answer, Reserved)
    return reservation.answer


def defer(state: State, deferral: Deferral, *, now_ms: int) -> DeferAnswer:
    row, job = state.rows.get(deferral.job), deferral.job
    if row is None or row.place is None:
        return NotQueued(job)
    reservation = state.reservations.get(job)
    if reservation is None:
        today = now_ms // DAY_MS
        day = _free_day(state, deferral, today=today, but=row.quota_day)
        if day is None:
            return HorizonFull(today + deferral.horizon_days)
        reservation = Reservation(Deferred(day), spot=None, quota=(deferral.user, day))
        _keep(state, job, reservation)
    state.lapses.add(job, now_ms + deferral.lapse_ms)
    assert isinstance(reservation.answer, Deferred)
    return reservation.answer


# ── a user's pace ─────────────────────────────────────────────────────────────


def _spent_with(state: State, request: Request, now_ms: int) -> int:
    """Up to when the user's time is spent, this reservation too."""
    if not request.cost_ms:
        return now_ms
    return max(now_ms, int(state.spent.score(request.user) or 0)) + request.cost_ms


# ── refusals, counted for operators ───────────────────────────────────────────


def count_refused(state: State, reason: str, *, now_ms: int) -> None:
    state.refused[now_ms // HOUR_MS * HOUR_MS, reason] += 1


def refused(state: State, *, now_ms: int) -> dict[tuple[int, str], int]:
    """Of this hour and the 23 before."""
    oldest = now_ms // HOUR_MS * HOUR_MS - 23 * HOUR_MS
    return {(hour_ms, reason): count for (hour_ms, reason), count in state.refused.items() if hour_ms >= oldest}


# ── days ──────────────────────────────────────────────────────────────────────


def _free_day(state: State, wanted: Request | Deferral, *, today: int, but: int | None = None) -> int | None:
    days = range(max(today, wanted.first_day), today + wanted.horizon_days + 1)
    free = (day for day in days if day != but and day_used(state, wanted.user, day) < wanted.per_day)
    return next(free, None)


def day_used(state: State, user: str, day: int) -> int:
    return len(state.quota.get((user, day), ())) + state.used[user, day]


def forget_days(state: State, *, now_ms: int) -> None:
    """Those that are over are asked about no more, by whichever clock."""
    for name in [name for name in state.used if name[1] < now_ms // DAY_MS - 1]:
        del state.used[name]


def take_day(state: State, job: str, quota: tuple[str, int]) -> None:
    state.quota[quota].add(job)


def give_day(state: State, job: str, quota: tuple[str, int]) -> None:
    state.quota[quota].discard(job)


# ── holding ───────────────────────────────────────────────────────────────────


def _hold(
    state: State, request: Request, reservation: Reservation, *, day: int | None, now_ms: int
) -> Reserved | Deferred:
    if request.dry:
        return reservation.answer
    if day is not None:
        reservation.quota = (request.user, day)
    inputs.hold(state, request, now_ms=now_ms)
    if request.cost_ms:
        state.spent.add(request.user, _spent_with(state, request, now_ms))
    _keep(state, request.job, reservation)
    state.lapses.add(request.job, now_ms + request.lapse_ms)
    return reservation.answer


def _keep(state: State, job: str, reservation: Reservation) -> None:
    state.reservations[job] = reservation
    if reservation.quota is not None:
        take_day(state, job, reservation.quota)
    if reservation.spot is not None and isinstance(reservation.answer, Reserved):
        take(state, reservation.answer, reservation.spot)


def cancel_reservation(state: State, job: str) -> None:
    """Take back all that is held under this job's id; nothing where nothing is."""
    reservation = state.reservations.pop(job, None)
    if reservation is None:
        return
    state.lapses.discard(job)
    if reservation.quota:
        give_day(state, job, reservation.quota)
    if reservation.spot:
        quit_queue(state, job)
    if isinstance(reservation.answer, Reserved):
        _count_back(state, reservation.answer.passed)


def lapse(state: State, now_ms: int) -> tuple[str, ...]:
    """Take back the reservations that have lapsed."""
    lapsed = tuple(state.lapses.up_to(now_ms))
    for job in lapsed:
        cancel_reservation(state, job)
        if job not in state.rows:
            del state.passed[job]
    return lapsed


def is_reserved(state: State, job: str) -> bool:
    """Whether an entry of the queue is held for an event to come. A queued job may hold another day besides."""
    reservation = state.reservations.get(job)
    return reservation is not None and reservation.spot is not None


def _count_back(state: State, passed: tuple[str, ...]) -> None:
    for job in passed:
        state.passing[job] -= 1
        if not state.passing[job]:
            del state.passing[job]

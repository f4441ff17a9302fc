"""Places in the queue: who stands where, who holds a place for an event to come, and where a new one lands.

Owns queue, lines, members, reservations, days and room. Refuses to know what blocks a job: that is `blocking`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from libs.capacity.answers import (
    Between,
    BetweenAnswer,
    Busy,
    Deferred,
    HorizonFull,
    Known,
    NoGap,
    NoRoom,
    NotQueued,
    NotReleasable,
    Release,
    ReleaseAnswer,
    Request,
    ReserveAnswer,
    Reserved,
    ShareFull,
)
from libs.capacity.errors import ViewMisused
from libs.capacity.memory.state import Reservation, Spot, State, is_paused, live_pools, slots_of, times_passed
from libs.capacity.rows import ARRIVAL_STEP, CLASS_STEP, Row, score_of

DAY_MS = 86_400_000
RELEASABLE = frozenset({"scheduled", "waiting"})


# ── asking ────────────────────────────────────────────────────────────────────


def reserve(state: State, request: Request, *, now_ms: int) -> ReserveAnswer:
    row = state.rows.get(request.job)
    if row is not None:
        return Known(row.status, row.seq)
    reservation = state.reservations.get(request.job)
    if reservation is None:
        return _reserve_anew(state, request, now_ms=now_ms)
    state.lapses.add(request.job, now_ms + request.lapse_ms)
    return reservation.answer


def _reserve_anew(state: State, request: Request, *, now_ms: int) -> ReserveAnswer:
    today = now_ms // DAY_MS
    day = _free_day(state, request, today=today) if request.takes_day else None
    if request.takes_day and day is None:
        return HorizonFull(today + request.horizon_days)
    if request.later or (day or 0) > today:
        return _defer(state, request, day, today=today, now_ms=now_ms)
    if state.room or len(state.queue) >= request.cap:
        return Busy(len(state.queue), sum(slots_of(state, pool, now_ms) for pool in live_pools(state, now_ms)))
    held = len(state.members.get(f"user:{request.user}", ()))
    if held >= request.user_share:
        return ShareFull(held)
    reservation = _place(state, request, bound=request.passed_bound, day=day)
    return _hold(state, request, reservation, day=day, now_ms=now_ms)


def _defer(state: State, request: Request, day: int | None, *, today: int, now_ms: int) -> Deferred:
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
        reservation = _place(state, row, bound=request.passed_bound, day=row.quota_day)
        state.reservations[job] = reservation
    state.lapses.add(job, now_ms + request.lapse_ms)
    assert isinstance(reservation.answer, Reserved)
    return reservation.answer


def between(state: State, job: str, *, before: str | None, after: str | None) -> BetweenAnswer:
    neighbour = before or after
    if neighbour is None or (before and after) or neighbour == job:
        raise ViewMisused("a move names one other job, either before or after which")
    for name in (job, neighbour):
        row = state.rows.get(name)
        if row is None or row.place is None:
            return NotQueued(name)
    score = state.spots[neighbour].score
    class_number, place = divmod(score, CLASS_STEP)
    if before:
        left, right = _place_before(state, score, neighbour, job), place
    else:
        left, right = place, _place_after(state, score, neighbour, job)
    number = _number_between(left, right)
    return NoGap(class_number) if number is None else Between(class_number, number)


# ── where a job lands ─────────────────────────────────────────────────────────


def _place(state: State, wanted: Request | Row, *, bound: int, day: int | None) -> Reservation:
    """Give the job the next arrival and its place, in the queue at once."""
    state.arrivals += 1
    arrival = state.arrivals
    job = wanted.job if isinstance(wanted, Request) else wanted.id
    ahead = _ahead(state, wanted, end=arrival * ARRIVAL_STEP)
    place, passed = _landing(
        ahead, _passable(state, ahead, boost=wanted.boost, bound=bound), end=arrival * ARRIVAL_STEP
    )
    spot = spot_of(wanted, job, place)
    state.passing.update(passed)
    join(state, spot)
    return Reservation(Reserved(arrival, place, passed, position(state, spot), day), spot)


def _ahead(state: State, wanted: Request | Row, *, end: int) -> Sequence[tuple[int, str]]:
    """Place and name of those before the end of the class, the last first: as many as may be passed, and one more."""
    floor = score_of(wanted.class_number, 0)
    last_first = state.queue.back_from(score_of(wanted.class_number, end), floor)
    return [(int(score) - floor, job) for score, job in islice(last_first, wanted.boost + 1)]


def _passable(state: State, ahead: Sequence[tuple[int, str]], *, boost: int, bound: int) -> int:
    """How many may be passed, from the end, before the first that may not."""
    for count, (_, job) in enumerate(ahead[:boost]):
        if state.spots[job].boost >= boost or times_passed(state, job) >= bound:
            return count
    return min(boost, len(ahead))


def _landing(ahead: Sequence[tuple[int, str]], passable: int, *, end: int) -> tuple[int, tuple[str, ...]]:
    """The place, and who was passed. Where two neighbours leave no number between them, one less is passed."""
    for count in range(passable, 0, -1):
        left = ahead[count][0] if count < len(ahead) else 0
        number = _number_between(left, ahead[count - 1][0])
        if number is not None:
            return number, tuple(job for _, job in ahead[:count])
    return end, ()


def _number_between(left: int, right: int) -> int | None:
    """Nearer to the left, as the next boosted job will land on the right of this one."""
    return None if right - left < 2 else left + max(1, (right - left) // 64)


def _place_before(state: State, score: int, neighbour: str, job: str) -> int:
    floor = score // CLASS_STEP * CLASS_STEP
    ends_at = state.queue.rank(score, neighbour)
    for left, name in reversed(state.queue.entries(max(0, ends_at - 2), ends_at)):
        if name != job and left >= floor:
            return int(left) - floor
    return 0


def _place_after(state: State, score: int, neighbour: str, job: str) -> int:
    """Behind the last one counts as in front of whoever arrives next, so that new jobs stay at the end."""
    floor = score // CLASS_STEP * CLASS_STEP
    begins_at = state.queue.rank(score, neighbour) + 1
    for right, name in state.queue.entries(begins_at, begins_at + 2):
        if name != job and right < floor + CLASS_STEP:
            return int(right) - floor
    return (state.arrivals + 1) * ARRIVAL_STEP


# ── holding ───────────────────────────────────────────────────────────────────


def _free_day(state: State, request: Request, *, today: int) -> int | None:
    days = range(max(today, request.first_day), today + request.horizon_days + 1)
    return next((day for day in days if day_used(state, request.user, day) < request.per_day), None)


def day_used(state: State, user: str, day: int) -> int:
    return len(state.quota.get((user, day), ()))


def _hold(
    state: State, request: Request, reservation: Reservation, *, day: int | None, now_ms: int
) -> Reserved | Deferred:
    if day is not None:
        reservation.quota = (request.user, day)
        take_day(state, request.job, reservation.quota)
    state.reservations[request.job] = reservation
    state.lapses.add(request.job, now_ms + request.lapse_ms)
    return reservation.answer


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


def _count_back(state: State, passed: tuple[str, ...]) -> None:
    for job in passed:
        state.passing[job] -= 1
        if not state.passing[job]:
            del state.passing[job]


def take_day(state: State, job: str, quota: tuple[str, int]) -> None:
    state.quota[quota].add(job)


def give_day(state: State, job: str, quota: tuple[str, int]) -> None:
    state.quota[quota].discard(job)


# ── queue and lines ───────────────────────────────────────────────────────────


def spot_of(wanted: Request | Row, job: str, place: int) -> Spot:
    return Spot(
        job=job,
        user=wanted.user,
        project=wanted.project,
        workflow=wanted.workflow,
        pool=wanted.pool,
        class_number=wanted.class_number,
        boost=wanted.boost,
        score=score_of(wanted.class_number, place),
    )


def join(state: State, spot: Spot) -> bool:
    """Into the queue; whether into its pool's line too, as nothing pauses it."""
    state.spots[spot.job] = spot
    state.queue.add(spot.job, spot.score)
    for scope in spot.owners:
        state.members[scope].add(spot.job)
    if is_paused(state, spot):
        return False
    state.line[spot.pool].add(spot.job, spot.score)
    return True


def quit_queue(state: State, job: str) -> None:
    spot = state.spots.pop(job, None)
    if spot is None:
        return
    state.queue.discard(job)
    state.line[spot.pool].discard(job)
    for scope in spot.owners:
        state.members[scope].discard(job)


def position(state: State, spot: Spot) -> int:
    """Among the unpaused ones of its pool; for a paused one, where it would stand."""
    return 1 + state.line[spot.pool].rank(spot.score, spot.job)

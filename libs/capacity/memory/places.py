"""Places in the queue: who stands where, and where a new one or a moved one lands.

Owns queue, lines and members. Refuses to know who may enter, which is `entering`, and what blocks a job: `blocking`.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from libs.capacity.answers import Between, BetweenAnswer, NoGap, NotQueued, Request, Reserved
from libs.capacity.errors import ViewMisused
from libs.capacity.memory.state import Reservation, Spot, State, is_aside, times_passed
from libs.capacity.rows import ARRIVAL_STEP, CLASS_STEP, Row, score_of
from libs.capacity.scopes import owners_of

# ── where a job lands ─────────────────────────────────────────────────────────


def land(state: State, wanted: Request | Row, *, bound: int, day: int | None) -> Reservation:
    """The next arrival and its place, for `take` to hold."""
    arrival = state.arrivals + 1
    job = wanted.job if isinstance(wanted, Request) else wanted.id
    end = arrival * ARRIVAL_STEP
    ahead = _ahead(state, wanted, end=end)
    place, passed = _landing(ahead, _passable(state, ahead, boost=wanted.boost, bound=bound), end=end)
    spot = spot_of(wanted, job, place)
    return Reservation(Reserved(arrival, place, passed, position(state, spot), day), spot)


def take(state: State, answer: Reserved, spot: Spot) -> None:
    """Into the queue at once; whom it passes is counted."""
    state.arrivals = answer.arrival
    state.passing.update(answer.passed)
    join(state, spot)


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


# ── moves ─────────────────────────────────────────────────────────────────────


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


def _place_before(state: State, score: int, neighbour: str, job: str) -> int:
    floor = score // CLASS_STEP * CLASS_STEP
    ends_at = state.queue.rank(score, neighbour)
    for left, name in reversed(state.queue.entries(max(0, ends_at - 2), ends_at)):
        if name != job and left >= floor:
            return int(left) - floor
    return 0


def _place_after(state: State, score: int, neighbour: str, job: str) -> int:
    """Behind the last one counts as in front of the next arrival, so that new jobs stay at the end."""
    floor = score // CLASS_STEP * CLASS_STEP
    begins_at = state.queue.rank(score, neighbour) + 1
    for right, name in state.queue.entries(begins_at, begins_at + 2):
        if name != job and right < floor + CLASS_STEP:
            return int(right) - floor
    return (state.arrivals + 1) * ARRIVAL_STEP


# ── queue and lines ───────────────────────────────────────────────────────────


def spot_of(wanted: Request | Row, job: str, place: int, *, named: Iterable[str] = ()) -> Spot:
    """`named`: what a row names beside its owners, groups and gates; a reservation has none yet."""
    owners = owners_of(wanted.user, wanted.project, wanted.workflow)
    return Spot(
        job=job,
        user=wanted.user,
        project=wanted.project,
        workflow=wanted.workflow,
        pool=wanted.pool,
        class_number=wanted.class_number,
        boost=wanted.boost,
        score=score_of(wanted.class_number, place),
        names=tuple(dict.fromkeys((*owners, *named))),
    )


def join(state: State, spot: Spot) -> bool:
    """Into the queue; whether into its pool's line too, as nothing pauses it."""
    state.spots[spot.job] = spot
    state.queue.add(spot.job, spot.score)
    for name in spot.names:
        state.members[name].add(spot.job)
    if is_aside(state, spot):
        return False
    state.line[spot.pool].add(spot.job, spot.score)
    return True


def quit_queue(state: State, job: str) -> None:
    spot = state.spots.pop(job, None)
    if spot is None:
        return
    state.queue.discard(job)
    state.line[spot.pool].discard(job)
    for name in spot.names:
        state.members[name].discard(job)
        if not state.members[name]:
            del state.members[name]


def position(state: State, spot: Spot) -> int:
    """Among the unpaused ones of its pool; for a paused one, where it would stand."""
    return 1 + state.line[spot.pool].rank(spot.score, spot.job)

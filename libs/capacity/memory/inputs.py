"""Inputs that are kept, as bytes of their users: from the reservation on until no retry can come.

Owns what is held under a job's id and when that ends. `libs.capacity.rooms` says how much one user may hold.
"""

from libs.capacity.answers import BytesFull, Request
from libs.capacity.memory.state import CountedInput, State
from libs.capacity.rows import Row

SWEPT_AT_ONCE = 1000
HOUR_MS = 3_600_000


def stored(state: State, user: str = "") -> int:
    """Bytes of this user, or of all."""
    return state.stored[user] if user else state.stored.total()


def is_other(state: State, request: Request) -> bool:
    """Whether the job's id is held for inputs of other content."""
    held = state.inputs.get(request.job)
    return held is not None and held.digest not in (None, request.digest)


def refusal(state: State, request: Request, *, now_ms: int) -> BytesFull | None:
    if request.room is None:
        return None
    own = [state.inputs[job].size for job in request.inputs if job in state.inputs]
    held, total = stored(state, request.user) - sum(own), stored(state) - sum(own)
    if request.room.takes(sum(request.inputs.values()), held=held, stored=total):
        return None
    leaving = [kept.until_ms for kept in state.inputs.values() if kept.user == request.user and kept.ended]
    first_ms = min((until_ms for until_ms in leaving if until_ms is not None), default=None)
    retry_ms = None if first_ms is None else max(1, first_ms - now_ms)
    return BytesFull(held, request.room.allowance(total), retry_ms)


def hold(state: State, request: Request, *, now_ms: int) -> None:
    """For as long as the reservation stands."""
    for job, size in request.inputs.items():
        digest = request.digest if job == request.job else None
        _put(state, job, CountedInput(request.user, size, now_ms + request.lapse_ms, digest=digest))


def fold(state: State, row: Row) -> None:
    """As the log says: until its time is over, once the job has ended."""
    drop(state, row.id)
    if row.input_bytes:
        ended = row.input_until_ms is not None
        _put(state, row.id, CountedInput(row.user, row.input_bytes, row.input_until_ms, ended=ended))


def forget(state: State, row: Row, *, until_ms: int) -> None:
    """The job has left the view: its bytes are among those of its user that go in the same hour."""
    if row.id in state.inputs:
        size = state.inputs[row.id].size
        drop(state, row.id)
        leave(state, row.user, size, hour=until_ms // HOUR_MS + 1)


def leave(state: State, user: str, size: int, *, hour: int) -> None:
    """By this hour so many more bytes of the user have gone."""
    name = f"{user}:{hour}"
    known = state.inputs.get(name)
    _put(state, name, CountedInput(user, size + (known.size if known else 0), hour * HOUR_MS, ended=True))


def sweep(state: State, *, now_ms: int) -> None:
    for job in list(state.input_ends.up_to(now_ms))[:SWEPT_AT_ONCE]:
        drop(state, job)


def drop(state: State, job: str) -> None:
    kept = state.inputs.pop(job, None)
    if kept is None:
        return
    state.input_ends.discard(job)
    state.stored[kept.user] -= kept.size
    if not state.stored[kept.user]:
        del state.stored[kept.user]


def _put(state: State, job: str, kept: CountedInput) -> None:
    drop(state, job)
    state.inputs[job] = kept
    state.stored[kept.user] += kept.size
    if kept.until_ms is not None:
        state.input_ends.add(job, kept.until_ms)

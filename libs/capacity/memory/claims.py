"""Slots that a job takes before it is dispatched, in groups that leases want too.

Owns the claim. A lease is given by the view, a job is started by the log: where both want one slot, a plan that only
counts may start a job beside a lease that was granted since. So the slot is taken here first, under the name by which
the job will hold it. The job's next row makes it last, where that names its holder, and takes it back else.
"""

from collections.abc import Collection, Iterable, Sequence
from math import inf

from libs.capacity.answers import Claim, ClaimAnswer, Unclaimed
from libs.capacity.memory.limits import is_full
from libs.capacity.memory.slots import Freed, catch_up, hand_on, is_running, job_of, let_go
from libs.capacity.memory.state import GATE, HeldClaim, State, is_quarantined, shut_until
from libs.capacity.rows import Row


def claim(
    state: State, claims: Sequence[Claim], *, applied: int, drop: Iterable[str], lapse_ms: int, now_ms: int
) -> ClaimAnswer:
    state.untold += catch_up(state, now_ms=now_ms)
    for holder in drop:
        known = state.claims.get(job_of(holder))
        if known is not None and known.holder == holder:
            state.untold += hand_on(state, _take_back(state, job_of(holder)), now_ms=now_ms)
    held: list[str] = []
    blocked: list[tuple[str, str]] = []
    for each in claims if applied == state.applied else ():
        blocker = _blocker(state, each, now_ms=now_ms)
        if blocker is None:
            _hold(state, each, lapses_ms=now_ms + lapse_ms)
            held.append(each.holder)
        else:
            blocked.append((each.holder, blocker))
    return ClaimAnswer(tuple(held), tuple(_unclaimed(state, *each, held=held, now_ms=now_ms) for each in blocked))


def _blocker(state: State, wanted: Claim, *, now_ms: int) -> str | None:
    """The group that has no slot for it, or `shut:` and the gate that is shut. What it holds already it keeps."""
    has = job_of(wanted.holder) in state.claims
    groups = () if has else wanted.groups
    names = (*groups, *(f"{GATE}{gate}" for gate in wanted.gates))
    return next((name for name in names if is_full(state, name, tier=None, now_ms=now_ms)), None)


def _hold(state: State, wanted: Claim, *, lapses_ms: int) -> None:
    job = job_of(wanted.holder)
    state.claims.setdefault(job, HeldClaim(wanted.holder, wanted.groups))
    state.claim_lapses.add(job, lapses_ms)
    for group in state.claims[job].groups:
        state.held[group].add(wanted.holder, inf)


def _unclaimed(state: State, holder: str, blocker: str, *, held: Collection[str], now_ms: int) -> Unclaimed:
    group = blocker.removeprefix(GATE)
    holding = state.held.get(group) or ()
    others = [name for name in holding if name not in held and not is_running(state, name)]
    quarantined_until_ms = state.quarantine_until_ms if is_quarantined(state, group, now_ms) else None
    return Unclaimed(holder, group, len(others), shut_until(state, group, now_ms), quarantined_until_ms)


def settle(state: State, row: Row) -> Freed:
    """The job's next row: it holds what it has claimed, or it does not want it any more. What came free by that."""
    known = state.claims.get(row.id)
    return _take_back(state, row.id, but=row.groups if known and known.holder == row.holder else ())


def lapse(state: State, *, now_ms: int) -> Freed:
    """Claims that came to nothing: all that was in the log is folded by now."""
    freed = Freed()
    for job in state.claim_lapses.up_to(now_ms):
        freed += _take_back(state, job)
    return freed


def _take_back(state: State, job: str, *, but: Collection[str] = ()) -> Freed:
    known = state.claims.pop(job, None)
    if known is None:
        return Freed()
    state.claim_lapses.discard(job)
    freed = [group for group in known.groups if group not in but]
    for group in freed:
        let_go(state, group, known.holder)
    return Freed(freed)

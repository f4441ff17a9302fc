"""In order, places, days, pauses and timers: what the log adds up to, and the view's queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from headgate_contracts import Job, Status
from libs.capacity.ledger import Ledger
from libs.capacity.memory.blocking import enter, leave
from libs.capacity.memory.life import _members
from libs.capacity.memory.slots import Freed
from libs.capacity.memory.state import State, times_passed
from libs.capacity.orders import Orders
from libs.capacity.phases import Phase, Phases
from libs.capacity.rows import ARRIVAL_STEP, Pause, Row, StandingOrders
from libs.policy import Policy
from tests.planted.bug import Bug


def keeps_what_has_lapsed(sound: Any) -> Any:
    def lapse(state: State, now_ms: int) -> tuple[str, ...]:
        lapsed = tuple(state.lapses.up_to(now_ms))
        for job in lapsed:
            state.lapses.discard(job)
        return lapsed

    return lapse


def comes_back_at_the_end(sound: Any) -> Any:
    def _put(state: State, row: Row, *, now_ms: int, lease_ms: int) -> Freed:
        old = state.rows.get(row.id)
        if old is not None and old.holder is not None and row.place is not None:
            row = replace(row, place=(state.arrivals + 1) * ARRIVAL_STEP)
        return sound(state, row, now_ms=now_ms, lease_ms=lease_ms)

    return _put


def passes_its_equals(sound: Any) -> Any:
    def _passable(state: State, ahead: Sequence[tuple[int, str]], *, boost: int, bound: int) -> int:
        for count, (_, job) in enumerate(ahead[:boost]):
            if state.spots[job].boost > boost or times_passed(state, job) >= bound:
                return count
        return min(boost, len(ahead))

    return _passable


def holds_newcomers_only(sound: Any) -> Any:
    def _pause(state: State, order: Pause) -> None:
        state.paused[order.scope] = order
        for job in _members(state, order.scope):
            state.line[state.spots[job].pool].discard(job)
            if job in state.parked_in:
                leave(state, state.rows[job], takes_slots=False)

    return _pause


def lifts_every_pause(sound: Any) -> Any:
    def _resume(state: State, scope: str, *, now_ms: int) -> None:
        if state.paused.pop(scope, None) is None:
            return
        for job in _members(state, scope):
            spot, row = state.spots[job], state.rows.get(job)
            state.line[spot.pool].add(job, spot.score)
            if row is not None and row.place is not None and not _is_walked(state, row):
                enter(state, row, now_ms=now_ms)

    return _resume


def _is_walked(state: State, row: Row) -> bool:
    return row.id in state.parked_in or row.id in state.eligible[row.pool]


def forgets_pauses(sound: Any) -> Any:
    def standing(self: Ledger) -> StandingOrders:
        return replace(sound(self), pauses=())

    return standing


def lets_submissions_set_limits(sound: Any) -> Any:
    def begin(self: Orders, job: Job, defaults: dict[str, int]) -> None:
        sound(self, job, defaults)
        self.limits.update({group.name: group.limit for group in job.submission.groups if group.limit is not None})

    return begin


def goes_on_after_a_cancelled_phase(sound: Any) -> Any:
    def _judge(self: Phases, flow: dict[int, Phase]) -> None:
        over = {number: phase for number, phase in flow.items() if phase.status is Status.CANCELLED}
        sound(self, flow | {number: Phase(phase.job, Status.READY) for number, phase in over.items()})

    return _judge


def ages_from_its_arrival(sound: Any) -> Any:
    def _queue_timers(job: Job, policy: Policy) -> dict[str, int]:
        return sound(job.model_copy(update={"aged_at": None}), policy)

    return _queue_timers


def reminds_by_the_one_before(sound: Any) -> Any:
    def _question_timers(job: Job, policy: Policy) -> dict[str, int]:
        return sound(job.model_copy(update={"reminders": max(0, job.reminders - 1)}), policy)

    return _question_timers


QUEUE: Final = (
    Bug(
        "lapsed-reservation-kept",
        "libs.capacity.memory.entering:lapse",
        keeps_what_has_lapsed,
        "A reservation lapses after 60 s. That of an admission that died stays for good: a ghost counts in the queue "
        "and among the 100, and its user has one job a day less (I7).",
    ),
    Bug(
        "given-back-at-the-end",
        "libs.capacity.memory.life:_put",
        comes_back_at_the_end,
        "A job that is given back or confirmed returns to its old place. It stands behind all that came while it ran, "
        "and those start before it.",
    ),
    Bug(
        "boost-passes-its-equals",
        "libs.capacity.memory.places:_passable",
        passes_its_equals,
        "A new job never passes one of the same boost. Of two partners the later one starts first, and the first is "
        'told that "priority jobs" went ahead.',
    ),
    Bug(
        "pause-holds-newcomers-only",
        "libs.capacity.memory.life:_pause",
        holds_newcomers_only,
        "A pause holds its whole scope. What was about to start when it was paused is dispatched all the same.",
    ),
    Bug(
        "resume-lifts-every-pause",
        "libs.capacity.memory.life:_resume",
        lifts_every_pause,
        "A job that two pauses hold starts when both are over. It starts at the first resume, under the other pause.",
    ),
    Bug(
        "pause-lost-with-the-view",
        "libs.capacity.ledger:Ledger.standing",
        forgets_pauses,
        "What operators order survives the loss of Redis. After a flush everything that was paused starts (I7).",
    ),
    Bug(
        "submission-overrules-an-operator",
        "libs.capacity.orders:Orders.begin",
        lets_submissions_set_limits,
        "A submission brings a limit only where none is set. After the next loss of the view a group has the limit of "
        "whoever submitted last, and an operator's own is gone (I5, I7).",
    ),
    Bug(
        "phase-after-a-cancelled-one",
        "libs.capacity.phases:Phases._judge",
        goes_on_after_a_cancelled_phase,
        "Phase n is queued when n-1 is ready. Where somebody cancels a phase the next one runs without its work.",
    ),
    Bug(
        "aged-twice-at-once",
        "libs.capacity.projection:_queue_timers",
        ages_from_its_arrival,
        "A job rises one class an hour. After its first hour it rises again at once, as far as ageing goes; one that "
        "was given back rises before it has waited.",
    ),
    Bug(
        "reminder-sent-twice",
        "libs.capacity.projection:_question_timers",
        reminds_by_the_one_before,
        "A question is reminded of at 12 h and at 23 h. The first reminder is sent twice, one right after the other.",
    ),
)

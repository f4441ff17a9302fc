"""Who writes what, as data: every event a job may have, by whom, from which status, and the status then.

Owns the one table behind `advance`, the README's table and the permissions of the log. It is where two lists meet: the
transitions a job may make, and the events each service may write. Where they leave room, who has the job decides:

* the worker writes from `dispatched` on and until the job leaves its hands: it cannot fail or cancel a queued job;
* admission cancels where nothing runs, an open question included, and asks the worker elsewhere;
* the scheduler cancels where a worker is gone or an earlier phase failed, and fails what may fail: a scheduled job
  waits for its day and cannot.

Refuses what depends on more than the status: attempts, stages, iterations are `changes`.
"""

from dataclasses import dataclass
from typing import Final

from headgate_contracts.vocabulary import (
    RUNNING,
    UNSTARTED,
    ChangeReason,
    EventName,
    GivenBackReason,
    QuestionKind,
    QueuedWhy,
    Status,
    Writer,
)

NEW: Final = None  # the status of a job that has no event yet
Causes = frozenset[QueuedWhy] | frozenset[GivenBackReason] | frozenset[ChangeReason] | frozenset[QuestionKind]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `then` is null where the status stays; `causes` narrows a line by the event's reason."""

    event: EventName
    writer: Writer
    sources: frozenset[Status | None]
    then: Status | None = None
    causes: Causes | None = None


def _from(*sources: Status | None) -> frozenset[Status | None]:
    return frozenset(sources)


_A, _S, _W = Writer.ADMISSION, Writer.SCHEDULER, Writer.WORKER
_QUESTION = _from(Status.AWAITING_CONFIRMATION)
_LAST_STAGE = _from(Status.CHECKS, Status.RUNNING)
_BY_PEOPLE = frozenset({ChangeReason.OPERATOR, ChangeReason.USER})
_BY_RULES = frozenset({ChangeReason.AGED, ChangeReason.SPACED})
_TO_CONTINUE, _TO_KNOW = frozenset({QuestionKind.CONTINUE}), frozenset({QuestionKind.ASK})
_HANDED_OVER = frozenset({GivenBackReason.DRAINED, GivenBackReason.PROVIDER})
_PUT_OFF = frozenset({GivenBackReason.RETRY})
_TAKEN_AWAY = frozenset({GivenBackReason.LOST, GivenBackReason.OUTAGE, GivenBackReason.FORCED})

TABLE: Final[tuple[Row, ...]] = (
    Row(EventName.QUEUED, _A, _from(NEW), Status.QUEUED, frozenset({QueuedWhy.SUBMITTED})),
    Row(EventName.SCHEDULED, _A, _from(NEW), Status.SCHEDULED),
    Row(EventName.WAITING, _A, _from(NEW), Status.WAITING),
    Row(EventName.QUEUED, _S, _from(Status.SCHEDULED), Status.QUEUED, frozenset({QueuedWhy.RELEASED})),
    Row(EventName.QUEUED, _S, _from(Status.WAITING), Status.QUEUED, frozenset({QueuedWhy.PHASE_READY})),
    Row(EventName.SCHEDULED, _S, _from(Status.QUEUED), Status.SCHEDULED),
    Row(EventName.DISPATCHED, _S, _from(Status.QUEUED), Status.STARTING),
    Row(EventName.STARTED, _W, _from(Status.STARTING)),
    Row(EventName.STAGE, _W, _from(Status.STARTING, Status.CHECKS), Status.SCAFFOLD),
    Row(EventName.STAGE, _W, _from(Status.SCAFFOLD), Status.CODE),
    Row(EventName.STAGE, _W, _from(Status.CODE), Status.DEPS),
    Row(EventName.STAGE, _W, _from(Status.DEPS), Status.CHECKS),
    Row(EventName.STAGE, _W, _from(Status.STARTING, Status.RUNNING), Status.RUNNING),
    Row(EventName.TRY_FAILED, _W, RUNNING - {Status.STARTING}),
    Row(EventName.AWAITING_CONFIRMATION, _W, _LAST_STAGE, Status.AWAITING_CONFIRMATION, _TO_CONTINUE),
    Row(EventName.AWAITING_CONFIRMATION, _W, RUNNING - {Status.STARTING}, Status.AWAITING_CONFIRMATION, _TO_KNOW),
    Row(EventName.CONFIRMATION_REMINDER, _S, _QUESTION),
    Row(EventName.CONFIRMED, _A, _QUESTION, Status.QUEUED),
    Row(EventName.ANSWERED, _A, _QUESTION, Status.QUEUED),
    Row(EventName.GIVEN_BACK, _W, RUNNING, Status.QUEUED, _HANDED_OVER),
    Row(EventName.GIVEN_BACK, _W, RUNNING - {Status.STARTING}, Status.SCHEDULED, _PUT_OFF),
    Row(EventName.GIVEN_BACK, _S, RUNNING, Status.QUEUED, _TAKEN_AWAY),
    Row(EventName.CANCEL_REQUESTED, _A, RUNNING),
    Row(EventName.CANCELLED, _A, UNSTARTED | _QUESTION, Status.CANCELLED),
    Row(EventName.CANCELLED, _W, RUNNING, Status.CANCELLED),
    Row(EventName.CANCELLED, _S, RUNNING | {Status.WAITING}, Status.CANCELLED),
    Row(EventName.REPRIORITIZED, _A, UNSTARTED, None, _BY_PEOPLE),
    Row(EventName.REPRIORITIZED, _S, UNSTARTED, None, _BY_RULES),
    Row(EventName.MOVED, _A, UNSTARTED, None, _BY_PEOPLE),
    Row(EventName.MOVED, _S, UNSTARTED, None, _BY_RULES),
    Row(EventName.READY, _W, _LAST_STAGE, Status.READY),
    Row(EventName.FAILED, _W, RUNNING, Status.FAILED),
    Row(EventName.FAILED, _S, RUNNING | _QUESTION | {Status.WAITING, Status.QUEUED}, Status.FAILED),
)

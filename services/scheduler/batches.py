"""What is written at once, and in which order. Pure.

    decisions ──┐
                ├──compose──► Batch: what frees, then what only tells, then what takes
    starts ─────┘             one event a job, behind the link of the chain that names them
                              one start and nothing else: that event alone, which says what the link would have said

Refuses to decide anything: `domain` has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from headgate_contracts import Event, JobEvent, Writer
from headgate_contracts.envelope import CommitEvent
from headgate_contracts.events import (
    JobCancelled,
    JobData,
    JobDispatched,
    JobFailed,
    JobGivenBack,
    JobQueued,
    JobReprioritized,
    JobScheduled,
    LoneStart,
    SchedulerCommitted,
)
from services.scheduler.domain import Decision

BATCH_MAX: Final = 20  # jobs in one commit: a conflict on one of them costs the others one more turn


@dataclass(frozen=True, slots=True)
class Batch:
    """One commit: the link of the chain, and the events it names, in order."""

    link: SchedulerCommitted
    decisions: tuple[Decision, ...]


def compose(
    due: Iterable[Decision],
    starts: Iterable[Decision],
    *,
    shard: str,
    leader: str,
    limits: Mapping[str, int],
    slots: Mapping[str, int],
) -> Batch | None:
    """One event a job, what frees before what takes, no more than fit; null where there is nothing to write."""
    chosen: dict[str, Decision] = {}
    starting = {decision.job.id: decision for decision in starts}
    for decision in sorted(due, key=lambda decision: _rank(decision.data)):
        if not (isinstance(decision.data, JobReprioritized) and decision.job.id in starting):
            chosen.setdefault(decision.job.id, decision)  # a job that starts now need not rise any more
    for job_id, decision in starting.items():
        chosen.setdefault(job_id, decision)
    decisions = tuple(chosen.values())[:BATCH_MAX]
    if not decisions:
        return None
    started = [decision.data for decision in decisions if isinstance(decision.data, JobDispatched)]
    link = SchedulerCommitted(
        shard=shard,
        leader=leader,
        jobs=tuple(decision.job.id for decision in decisions),
        limits={group: limits[group] for data in started for group in data.groups},
        slots={data.pool: slots[data.pool] for data in started},
    )
    return Batch(link, decisions)


def lone_start(batch: Batch, *, link: int, over: int) -> Decision | None:
    """The one start that is all of the batch, as it is written without a link; null where there is more to write.

    Only for who has folded the whole log up to `over`, with its own `link` as the chain's last.
    """
    match batch.decisions:
        case (Decision(job, JobDispatched() as data),):
            alone = LoneStart(
                leader=batch.link.leader,
                link=link,
                over=over,
                limits=tuple(batch.link.limits[group] for group in data.groups),
                slots=batch.link.slots[data.pool],
            )
            return Decision(job, data.model_copy(update={"alone": alone}))
        case _:
            return None


def signed(decision: Decision, *, event_id: str, now: datetime) -> JobEvent:
    """The decision as the job's next event."""
    return Event(event_id, Writer.SCHEDULER, now, decision.data, decision.job.sequence + 1)


def linked(link: SchedulerCommitted, *, event_id: str, now: datetime) -> CommitEvent:
    """The link as the chain's next event."""
    return Event(event_id, Writer.SCHEDULER, now, link)


def _rank(data: JobData) -> int:
    match data:
        case JobGivenBack() | JobCancelled() | JobFailed() | JobScheduled():
            return 0
        case JobQueued():
            return 2
        case _:
            return 1

"""The second opinion on an attempt that the view does not know: this replica's own fold of the log, and the log itself.

    the fold knows the job     what it says
    it does not                newer than the fold, or forgotten, as it ended a while ago: the job's last event tells

What is current goes on, and so does what cannot be told while the log is away.
"""

import asyncio
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from headgate_contracts import Event, Holder, InvalidToken, job_filter
from headgate_contracts.events import JobData
from libs.capacity.ledger import Ledger
from libs.eventlog.errors import LogError
from libs.eventlog.ports import EventLog

WITHIN_S: Final = 1.0  # a worker waits for its answer


class Opinion(Enum):
    """What becomes of an attempt."""

    RUNS = auto()
    ENDS = auto()  # it runs, and somebody asked for its end
    OVER = auto()


def opinion_of(ledger: Ledger, holder: str) -> Opinion | None:
    """What the fold says; null where it does not know the job. An attempt that it has not come to yet runs: only the
    log could have let anybody know of it."""
    job_id, attempt = Holder.parse(holder)
    job = ledger.jobs.get(job_id)
    if job is None:
        return None
    if job.holder != holder and job.attempt >= attempt:
        return Opinion.OVER
    if job.holder == holder and job.cancel_requested_by is not None:
        return Opinion.ENDS
    return Opinion.RUNS


async def opinions_of(ledger: Ledger, holders: Sequence[str], *, log: EventLog) -> dict[str, Opinion]:
    """Of each of them; the log is asked of those that the fold does not know."""
    found = await asyncio.gather(*(_opinion(ledger, holder, log) for holder in holders))
    return dict(zip(holders, found, strict=True))


async def _opinion(ledger: Ledger, holder: str, log: EventLog) -> Opinion:
    known = opinion_of(ledger, holder)
    if known is not None:
        return known
    try:
        async with asyncio.timeout(WITHIN_S):
            last = await log.last(job_filter(Holder.parse(holder).job))
    except (LogError, InvalidToken, TimeoutError):
        return Opinion.RUNS
    match last and last.event:
        case Event(data=JobData(status=status)) if status.is_end:
            return Opinion.OVER
        case _:
            return Opinion.RUNS

"""That nobody pays for an outage: no worker that lives is called lost, and where all were away it was nobody's fault.

What was away, and when, follows from the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import JobGivenBack, JobStarted
from headgate_contracts.vocabulary import GivenBackReason
from tests.simulation.evidence import Evidence, Finding, Span, is_outage, span_of
from tests.simulation.plan import SCHEDULERS, Fault

ITS_OWN: Final = frozenset({"crash", "fall", "stop", "roll", "drain", "pause", "halt", "cut", "mute", "lossy", "slow"})
EVERYBODYS: Final = frozenset({"roll", "drain", "lossy", "slow"})  # these may meet one worker and not the other
STOPPED: Final = frozenset({"pause", "halt", "cut", "mute"})
HEARTBEATS: Final = frozenset({"*", "log", "view", "commands"})
BEFORE_S: Final = 40.0  # what came before an attempt may be why its first heartbeats were not heard
LEAD_CHANGES: Final = frozenset({"roll", "split", "lossy", "slow", "older", "flush"})
PATIENCE_S: Final = 7.0  # a shorter outage is none
REMEMBERED_S: Final = 33.0  # after it was over: a lease and a heartbeat, and what it takes to see that it is over


def outages_cost_nobody(evidence: Evidence) -> Iterator[Finding]:
    """A job is given back as lost only where something had met its worker or a scheduler, and no outage all of them."""
    claimed: dict[str, tuple[str, datetime]] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        if isinstance(data, JobStarted):
            claimed[f"{data.job_id}:{data.attempt}"] = (data.worker.rpartition("-")[0], record.at)
        if not isinstance(data, JobGivenBack) or data.reason is not GivenBackReason.LOST:
            continue
        worker, since = claimed.get(f"{data.job_id}:{data.attempt}", (None, None))
        if worker is None or since is None:
            continue
        lost_s = evidence.at_s(record.at)
        span = evidence.at_s(since) - BEFORE_S, lost_s
        if _nobody_heard(evidence, span):
            continue
        if not any(_met(fault, worker, span) for fault in evidence.plan.faults):
            yield Finding("outages", data.job_id, f"{worker} is said to be lost at {lost_s:.1f} s, and nothing met it")
        elif _was_away(evidence, lost_s):
            yield Finding("outages", data.job_id, f"is given back as lost at {lost_s:.1f} s, right after an outage")


def _nobody_heard(evidence: Evidence, span: Span) -> bool:
    """Whether every scheduler was stopped in it. Leases run then: nobody can tell that from one that is silent."""
    stopped = [fault for fault in evidence.plan.faults if fault.kind in STOPPED and _within(fault, span)]
    return all(any(fault.who == scheduler for fault in stopped) for scheduler in evidence.plan.schedulers)


def _within(fault: Fault, span: Span) -> bool:
    began_s, ended_s = span_of(fault)
    return began_s < span[1] and span[0] < ended_s and ended_s - began_s > PATIENCE_S


def _met(fault: Fault, worker: str, span: Span) -> bool:
    """The worker itself, or one of those who should have heard it."""
    began_s, ended_s = span_of(fault)
    if fault.kind not in ITS_OWN or began_s > span[1] or ended_s < span[0]:
        return False
    return fault.who in (worker, *SCHEDULERS) or (fault.who == "*" and fault.kind in EVERYBODYS)


def _was_away(evidence: Evidence, now_s: float) -> bool:
    """All were, so lately that whoever leads must know it, as no scheduler was away by itself."""
    faults = evidence.plan.faults
    for outage in filter(_met_all, faults):
        began_s, ended_s = span_of(outage)
        if ended_s + 5 < now_s < ended_s + REMEMBERED_S:
            return not any(
                span_of(other)[0] < now_s and began_s < span_of(other)[1] + BEFORE_S
                for other in faults
                if other.who in SCHEDULERS or other.kind in LEAD_CHANGES
            )
    return False


def _met_all(fault: Fault) -> bool:
    return is_outage(fault) and fault.server in HEARTBEATS and fault.for_s > PATIENCE_S

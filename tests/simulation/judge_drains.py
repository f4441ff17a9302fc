"""A worker that is told to stop hands its jobs over, within its grace: none of them waits for its lease."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headgate_contracts.events import JobGivenBack, JobStarted
from headgate_contracts.vocabulary import GivenBackReason
from tests.simulation.deeds import Stop
from tests.simulation.evidence import Evidence, Finding, span_of

STOPPED_WITHIN_S: Final = 10.0
DISTURBS: Final = frozenset({"cut", "mute", "lossy", "slow", "full", "pause", "halt", "crash", "fall"})


def drains_handed_over(evidence: Evidence) -> Iterator[Finding]:
    """Row 11 of the proof."""
    claimed = {f"{data.job_id}:{data.attempt}": data.worker for data in evidence.datas if isinstance(data, JobStarted)}
    calm = {stop.instance: stop for stop in evidence.deeds.stops if _is_calm(evidence, stop)}
    for data in evidence.datas:
        if isinstance(data, JobGivenBack) and data.reason is GivenBackReason.LOST:
            stop = calm.get(claimed.get(f"{data.job_id}:{data.attempt}", ""))
            if stop is not None and not evidence.apart(f"{data.job_id}:{data.attempt}"):
                yield Finding("drain", data.job_id, f"{stop.instance} was told to stop, and left it to its lease")
    for stop in calm.values():
        if stop.ended_s - stop.told_s > STOPPED_WITHIN_S:
            yield Finding("drain", stop.instance, f"took {stop.ended_s - stop.told_s:.1f} s to stop")


def _is_calm(evidence: Evidence, stop: Stop) -> bool:
    """Whether nothing else was wrong with it while it stopped."""
    machine = stop.instance.rpartition("-")[0]
    for fault in evidence.plan.faults:
        began_s, ended_s = span_of(fault)
        meets = began_s - 1.0 < stop.ended_s and stop.told_s < ended_s + 1.0
        if meets and fault.kind in DISTURBS and fault.who in ("*", machine):
            return False
    return True

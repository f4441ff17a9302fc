"""I5 after a reload, sooner than the log alone can prove it: where nothing is wrong, every replica decides by it soon.

Who was let in before it may come for as long as a place is held. So the auditor waits for that long; this does not,
where nobody was cut off, stopped or slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import JobData, JobQueued, PolicyReloaded
from libs.policy.reloading import reloaded
from tests.simulation.evidence import Evidence, Finding

HEARD_WITHIN_S: Final = 5.0  # who does not fold the log looks once a second


def reloads_are_heard(evidence: Evidence) -> Iterator[Finding]:
    """I5: the queue's cap is the newest policy's, a moment after its record."""
    caps, entered = [(0.0, evidence.policy.queue.cap)], set[str]()
    for record in evidence.records:
        data, at_s = record.event.data if isinstance(record.event, Event) else None, evidence.at_s(record.at)
        if isinstance(data, PolicyReloaded):
            caps.append((at_s, reloaded(evidence.policy, data.sections).queue.cap))
        if not isinstance(data, JobData):
            continue
        waits_first = data.status.value == "queued" and not data.attempt
        (entered.add if waits_first else entered.discard)(data.job_id)
        cap = _highest(caps, at_s)
        if isinstance(data, JobQueued) and waits_first and len(entered) > cap and _is_quiet(evidence, at_s):
            yield Finding("I5 reload", data.job_id, f"is one of {len(entered)} in a queue of {cap} at {at_s:.1f} s")


def _highest(caps: list[tuple[float, int]], at_s: float) -> int:
    """Of those that were in force within the last moments."""
    newest = max(number for number, (since_s, _) in enumerate(caps) if since_s <= max(0.0, at_s - HEARD_WITHIN_S))
    return max(cap for _, cap in caps[newest:])


def _is_quiet(evidence: Evidence, at_s: float) -> bool:
    return evidence.is_healthy(at_s - HEARD_WITHIN_S, at_s)

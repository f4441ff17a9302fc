"""I8 of slots that are waited for: where nothing is wrong, nobody stands in line while all that it wants is empty.

Who was inside is what stages and applications did themselves, and which jobs the log lets hold a group. A lease whose
holder died counts as inside until it ends, and so does a wait that may still be granted to nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import JobData
from tests.simulation.evidence import Evidence, Finding, Span, without
from tests.simulation.judge_slots import full_name, scopes_of

LONGEST_S: Final = 8.0  # one heartbeat, by which a grant that was lost is found, and what it takes
BEFORE_S, AFTER_S = 0.5, 1.5  # from the grant until its holder has heard; from its end until the view has


def nobody_waits_for_empty_groups(evidence: Evidence) -> Iterator[Finding]:
    """I8."""
    inside, scopes = _inside(evidence), scopes_of(evidence)
    for wait in evidence.deeds.waits:
        names = [full_name(name, wait.job, scopes) for name in wait.names]
        if any(name.startswith("llm:") for name in names):
            continue  # a provider may pause
        ended_s = min(wait.until_s, evidence.ended_s if wait.ended_s is None else wait.ended_s)
        taken = sorted(span for name in names for span in inside[name])
        for began, until in without((wait.began_s, ended_s), taken):
            if until - began > LONGEST_S and evidence.is_healthy(began, until):
                what = f"waits for {', '.join(names)} from {began:.1f} to {until:.1f} s, and nobody is inside"
                yield Finding("I8 slots", wait.job, what)


def _inside(evidence: Evidence) -> dict[str, list[Span]]:
    """When anybody may have been inside of each group."""
    found: dict[str, list[Span]] = defaultdict(list)
    scopes = scopes_of(evidence)
    for holding in evidence.deeds.holdings:
        ended_s = evidence.ended_s if holding.ended_s is None else holding.ended_s
        for name in holding.names:
            found[full_name(name, holding.job, scopes)].append((holding.began_s - BEFORE_S, ended_s + AFTER_S))
    for wait in evidence.deeds.waits:
        if wait.haunts_until_s is not None and wait.ended_s is not None:
            for name in wait.names:
                found[full_name(name, wait.job, scopes)].append((wait.began_s, wait.haunts_until_s + AFTER_S))
    for name, span in _jobs(evidence):
        found[name].append(span)
    return found


def _jobs(evidence: Evidence) -> Iterator[tuple[str, Span]]:
    """A running job's own groups."""
    held: dict[str, tuple[float, tuple[str, ...]]] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        if not isinstance(data, JobData):
            continue
        began_s, names = held.pop(data.job_id, (0.0, ()))
        now_s = evidence.at_s(record.at)
        yield from ((name, (began_s - BEFORE_S, now_s + AFTER_S)) for name in names)
        names = getattr(data, "groups", names)
        if data.status.value not in ("queued", "awaiting_confirmation", "ready", "failed", "cancelled"):
            held[data.job_id] = (now_s, names)
    for began_s, names in held.values():
        yield from ((name, (began_s - BEFORE_S, evidence.ended_s)) for name in names)

"""I5 as stages and applications really were inside of groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import GroupLeased, JobData, JobDispatched, LeaseReleased, LimitSet
from libs.policy import Policy
from tests.simulation.deeds import Holding
from tests.simulation.evidence import Evidence, Finding, lost_view_s, without

LETS_GO: Final = frozenset({"queued", "scheduled", "awaiting_confirmation", "ready", "failed", "cancelled"})
NOTICED_S: Final = 10.0  # that the view is an older one: what is granted meanwhile goes with it


def slots_were_real(evidence: Evidence) -> Iterator[Finding]:
    """I5, as stages, whole jobs and applications really were inside: the highest limit of a group is never exceeded."""
    limits, scopes = _limits(evidence), scopes_of(evidence)
    for group, holdings in _by_group((*evidence.deeds.holdings, *_whole_jobs(evidence)), scopes).items():
        limit = limits.get(group) or _default(group, evidence)
        moments = sorted(_moments(evidence, holdings))
        inside: list[str] = []
        for at_s, comes, holder in moments:
            if not comes:
                inside.remove(holder)
                continue
            inside.append(holder)
            if len(set(inside)) > limit:  # a stage of a job that holds the group itself takes no other slot
                yield Finding("I5 real", group, f"{', '.join(inside)} at once in {limit}, at {at_s:.2f} s")


def what_was_given_up_stays_free(evidence: Evidence) -> Iterator[Finding]:
    """I8: no message that was under way has a stage's slot held again, by nobody, while others wait for it."""
    for lease, given_up_s, held_s in evidence.deeds.held_again:
        yield Finding("I8 slots", lease, f"was given up at {given_up_s:.2f} s and is held again at {held_s:.2f} s")


def _whole_jobs(evidence: Evidence) -> Iterator[Holding]:
    """Attempts of jobs that name groups: while their process ran, as long as the log gives them the slots."""
    began = {(run.job, run.attempt): run for run in evidence.deeds.executions}
    held: dict[str, JobDispatched] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        if isinstance(data, JobDispatched):
            held[data.job_id] = data
        elif isinstance(data, JobData) and data.status.value in LETS_GO and (was := held.pop(data.job_id, None)):
            run = began.get((was.job_id, was.attempt))
            names = tuple(name for name in was.groups if name.startswith("group:"))
            if run is not None and names:
                yield Holding(was.job_id, was.attempt, names, run.began, min(run.ended, evidence.at_s(record.at)))


def _limits(evidence: Evidence) -> dict[str, int]:
    """The highest that anybody has set, or the default, which holds before and after."""
    found: dict[str, int] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        if isinstance(data, LimitSet | GroupLeased) and data.limit is not None:
            _raise(found, data.group, data.limit, evidence)
        for group in getattr(getattr(data, "submission", None), "groups", ()):
            if group.limit is not None:
                _raise(found, group.name, group.limit, evidence)
    return found


def _raise(found: dict[str, int], group: str, limit: int, evidence: Evidence) -> None:
    found[group] = max(limit, found.get(group) or _default(group, evidence))


def _default(group: str, evidence: Evidence) -> int:
    """The highest of any policy."""
    return max(_default_by(policy, group) for policy in evidence.policies)


def _default_by(policy: Policy, group: str) -> int:
    if group.startswith("llm:"):
        return policy.providers.limits.get(group.removeprefix("llm:"), policy.concurrency.default_limit)
    return policy.concurrency.default_limit


def scopes_of(evidence: Evidence) -> dict[str, str]:
    """Job → the project to which its groups belong."""
    scopes: dict[str, str] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        submission = getattr(data, "submission", None)
        if isinstance(data, JobData) and submission is not None:
            own = f"{data.user_id}:{data.project_id}"
            scopes[data.job_id] = data.project_id if submission.shared else own
    return scopes


def full_name(name: str, job: str, scopes: dict[str, str]) -> str:
    """The group, as the job calls it."""
    return name if ":" in name else f"group:{scopes.get(job, '?')}:{name}"


def _by_group(holdings: Sequence[Holding], scopes: dict[str, str]) -> dict[str, list[Holding]]:
    groups: dict[str, list[Holding]] = {}
    for holding in holdings:
        for name in holding.names:
            groups.setdefault(full_name(name, holding.job, scopes), []).append(holding)
    return groups


def _moments(evidence: Evidence, holdings: Sequence[Holding]) -> Iterator[tuple[float, bool, str]]:
    for holding in holdings:
        name = f"{holding.job}:{holding.attempt}"
        ended_s = holding.ended_s if holding.ended_s is not None else evidence.ended_s
        ended_s = min(ended_s, _taken_away_s(evidence, holding))
        for began_s, until_s in without((holding.began_s, ended_s), evidence.apart(name)):
            yield began_s, True, name
            yield until_s, False, name


def _taken_away_s(evidence: Evidence, holding: Holding) -> float:
    """When an application's lease was forced free, or lost with the view: it is in no log, and nobody tells it.

    A user's outlives a loss, since its group is shut; but not a view that went back, until that was noticed."""
    if holding.attempt:
        return math.inf
    forced = [
        evidence.at_s(record.at)
        for record in evidence.records
        if isinstance(record.event, Event)
        and isinstance(record.event.data, LeaseReleased)
        and record.event.data.lease == holding.job
    ]
    faults = [each for each in evidence.plan.faults if each.kind == "older" or not holding.outlives_view]
    lost = [at_s for fault in faults if (at_s := lost_view_s(fault)) is not None]
    lost += [] if holding.outlives_view else evidence.rebuilt_s
    gone = [max(at_s, holding.began_s) for at_s in lost if holding.began_s < at_s + NOTICED_S]
    gone += [at_s for at_s in forced if at_s > holding.began_s]
    return min((at_s for at_s in gone if holding.ended_s is None or at_s < holding.ended_s), default=math.inf)

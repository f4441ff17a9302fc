"""I5 as stages and applications really were inside of groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate_contracts import Event
from headgate_contracts.events import JobData, LimitSet
from libs.policy import Policy
from tests.simulation.evidence import Evidence, Finding, without
from tests.simulation.stages import Holding


def slots_were_real(evidence: Evidence) -> Iterator[Finding]:
    """I5, as stages really were inside: the highest limit that a group ever had is never exceeded."""
    limits, scopes = _limits(evidence), _scopes(evidence)
    for group, holdings in _by_group(evidence.deeds.holdings, scopes).items():
        limit = limits.get(group) or _default(group, evidence.policy)
        moments = sorted(_moments(evidence, holdings))
        inside: list[str] = []
        for at_s, comes, holder in moments:
            if not comes:
                inside.remove(holder)
                continue
            inside.append(holder)
            if len(inside) > limit:
                yield Finding("I5 real", group, f"{', '.join(inside)} at once in {limit}, at {at_s:.2f} s")


def _limits(evidence: Evidence) -> dict[str, int]:
    """The highest that anybody has set."""
    found: dict[str, int] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        if isinstance(data, LimitSet):
            found[data.group] = max(data.limit, found.get(data.group) or _default(data.group, evidence.policy))
        for group in getattr(getattr(data, "submission", None), "groups", ()):
            if group.limit is not None:
                found[group.name] = max(group.limit, found.get(group.name, 1))
    return found


def _default(group: str, policy: Policy) -> int:
    if group.startswith("llm:"):
        return policy.providers.limits.get(group.removeprefix("llm:"), policy.concurrency.default_limit)
    return policy.concurrency.default_limit


def _scopes(evidence: Evidence) -> dict[str, str]:
    scopes: dict[str, str] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        submission = getattr(data, "submission", None)
        if isinstance(data, JobData) and submission is not None:
            own = f"{data.user_id}:{data.project_id}"
            scopes[data.job_id] = data.project_id if submission.shared else own
    return scopes


def _by_group(holdings: Sequence[Holding], scopes: dict[str, str]) -> dict[str, list[Holding]]:
    groups: dict[str, list[Holding]] = {}
    for holding in holdings:
        for name in holding.names:
            full = name if ":" in name else f"group:{scopes.get(holding.job, '?')}:{name}"
            groups.setdefault(full, []).append(holding)
    return groups


def _moments(evidence: Evidence, holdings: Sequence[Holding]) -> Iterator[tuple[float, bool, str]]:
    for holding in holdings:
        name = f"{holding.job}:{holding.attempt}"
        ended_s = holding.ended_s if holding.ended_s is not None else evidence.ended_s
        for began_s, until_s in without((holding.began_s, ended_s), evidence.apart(name)):
            yield began_s, True, name
            yield until_s, False, name

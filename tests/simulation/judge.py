"""What must be so, whatever has happened: from the log, from what clients were told, and from what stages really did.

    I1-I5, order   `tests.fixtures.audit`, which shares no code with services, fold or view
    I3 work        no stage of an iteration is finished by two accepted attempts
    I4 real        no two processes of a job at once, where no worker was paused or cut off
    I5 real        never more stages inside a group than it has slots, where no worker was paused or cut off
    I8             drained in time after the last fault
    I9             a 202 is in the log when it is told; what was in the log is not refused; a cancellation holds

Each is a function that gives its findings. To add one is to write it and to name it in `INVARIANTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from headgate_contracts import Event
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobData, JobScheduled, LimitSet
from libs.policy import Policy
from tests.fixtures.audit import audit
from tests.simulation.clients import Answers
from tests.simulation.plan import Plan
from tests.simulation.stages import Deeds, Holding

ENDS: Final = frozenset({"ready", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that must not be."""

    invariant: str
    about: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}, {self.about}: {self.what}"


@dataclass(slots=True, kw_only=True)
class Evidence:
    """All that the judge is shown."""

    plan: Plan
    policy: Policy
    start_ms: int
    records: Sequence[Any]
    answers: Answers
    deeds: Deeds
    view_was_lost: bool
    unforeseen: Sequence[str]
    ended_s: float
    drained: bool
    datas: list[JobData] = field(init=False, default_factory=list)
    last: dict[str, JobData] = field(init=False, default_factory=dict)
    first_at: dict[str, datetime] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for record in self.records:
            data = record.event.data if isinstance(record.event, Event) else None
            if isinstance(data, JobData):
                self.datas.append(data)
                self.last[data.job_id] = data
                self.first_at.setdefault(data.job_id, record.at)

    @property
    def is_measured(self) -> bool:
        """Whether nobody can have gone on with what was given away: no worker was paused or cut off."""
        apart = [fault for fault in self.plan.faults if fault.kind in ("pause", "cut")]
        return not any(fault.who == "*" or fault.who.startswith("worker") for fault in apart)

    @property
    def now(self) -> datetime:
        return utc(self.start_ms + round(self.ended_s * 1000))

    def at_s(self, moment: datetime) -> float:
        return moment.timestamp() - self.start_ms / 1000


def judge(evidence: Evidence) -> list[Finding]:
    return [finding for invariant in INVARIANTS for finding in invariant(evidence)]


def log_is_legal(evidence: Evidence) -> Iterator[Finding]:
    """I1 to I5 and the order, as the log proves them."""
    later = waiting_for_a_day(evidence.datas, now=evidence.now)
    promised = [job for job in evidence.last if job not in later]
    report = audit(
        evidence.records,
        policy=evidence.policy,
        promised=promised,
        drained=evidence.drained,
        view_was_lost=evidence.view_was_lost,
        executions=evidence.deeds.executions if evidence.is_measured else (),
    )
    for violation in report.violations:
        yield Finding(violation.invariant, violation.about, f"{violation.what} (record {violation.seq})")


def nothing_was_unforeseen(evidence: Evidence) -> Iterator[Finding]:
    """Nobody ran into a fault that no code expects."""
    for what in evidence.unforeseen:
        yield Finding("faults", "a process", what)


def all_ended_in_time(evidence: Evidence) -> Iterator[Finding]:
    """I8."""
    if not evidence.drained:
        left = {job: data.status.value for job, data in evidence.last.items() if data.status.value not in ENDS}
        yield Finding("I8", "the system", f"is not drained {evidence.ended_s:.0f} s after the start: {left}")


def answers_were_true(evidence: Evidence) -> Iterator[Finding]:
    """I9."""
    answers = evidence.answers
    for what in answers.strange:
        yield Finding("I9", "a client", what)
    for job, told_s in answers.promised.items():
        at = evidence.first_at.get(job)
        if at is None or evidence.at_s(at) > told_s:
            yield Finding("I9", job, f"was promised at {told_s:.1f} s and was not in the log")
    for job, asked_s, why in answers.refused:
        at = evidence.first_at.get(job)
        if at is not None and evidence.at_s(at) < asked_s - 0.001:
            yield Finding("I9", job, f"was in the log and refused at {asked_s:.1f} s: {why}")
    for job, told_s in answers.cancelled.items():
        status = evidence.last[job].status.value
        if evidence.drained and status != "cancelled":
            yield Finding("I9", job, f"its cancellation was accepted at {told_s:.1f} s, and it is {status}")


def slots_were_real(evidence: Evidence) -> Iterator[Finding]:
    """I5, as stages really were inside: the highest limit that a group ever had is never exceeded."""
    if not evidence.is_measured:
        return
    limits, scopes = _limits(evidence), _scopes(evidence)
    for group, holdings in _by_group(evidence.deeds.holdings, scopes).items():
        limit = limits.get(group) or _default(group, evidence.policy)
        moments = sorted(_moments(holdings))
        inside: list[str] = []
        for at_s, comes, holder in moments:
            if not comes:
                inside.remove(holder)
                continue
            inside.append(holder)
            if len(inside) > limit:
                yield Finding("I5 real", group, f"{', '.join(inside)} at once in {limit}, at {at_s:.2f} s")


INVARIANTS: Final[tuple[Callable[[Evidence], Iterator[Finding]], ...]] = (
    log_is_legal,
    nothing_was_unforeseen,
    all_ended_in_time,
    answers_were_true,
    slots_were_real,
)


def waiting_for_a_day(datas: Iterable[JobData], *, now: datetime) -> frozenset[str]:
    """Jobs that wait for a later day, and phases behind them."""
    last: dict[str, JobData] = {}
    due: dict[str, datetime] = {}
    for data in datas:
        last[data.job_id] = data
        if isinstance(data, JobScheduled):
            due[data.job_id] = data.scheduled_for
    scheduled = {job for job, at in due.items() if at > now and last[job].status.value == "scheduled"}
    behind = {job for job, data in last.items() if data.status.value == "waiting" and _first_phase(job) in scheduled}
    return frozenset(scheduled | behind)


def _first_phase(job: str) -> str:
    return f"{job.rpartition('-')[0]}-1"


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
            full = name if name.startswith("llm:") else f"group:{scopes.get(holding.job, '?')}:{name}"
            groups.setdefault(full, []).append(holding)
    return groups


def _moments(holdings: Sequence[Holding]) -> Iterator[tuple[float, bool, str]]:
    for holding in holdings:
        name = f"{holding.job}:{holding.attempt}"
        yield holding.began_s, True, name
        yield holding.ended_s if holding.ended_s is not None else float("inf"), False, name

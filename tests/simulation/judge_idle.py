"""I8 where nothing is wrong: a job that could start does so, and does not wait beside a free slot.

Its own small model of who runs and who waits, from the log's words alone. It knows nothing of slots that stages and
applications hold, so jobs that ask for a group are left out, and so are those that wait for a provider.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from headgate_contracts import Event
from headgate_contracts.events import JobData, JobDispatched, JobGivenBack, JobMoved, JobReprioritized, Submission
from libs.policy import Policy
from tests.simulation.evidence import STARTED_WITHIN_S, Evidence, Finding, Standing
from tests.simulation.plan import WORKERS

RUNNING: Final = frozenset({"starting", "scaffold", "code", "deps", "checks", "running"})
WORKFLOWS: Final = "workflows"


@dataclass(slots=True)
class _Job:
    """As far as it matters to whether it could start."""

    asked: Submission
    groups: tuple[str, ...]
    scopes: frozenset[str]
    priority: str
    status: str = ""
    gated: bool = False
    able_since_s: float | None = None


@dataclass(slots=True)
class _Model:
    evidence: Evidence
    jobs: dict[str, _Job] = field(default_factory=dict)
    held: Counter[str] = field(default_factory=Counter)
    standing: Standing = field(default_factory=Standing)

    def hear(self, record: Any) -> None:
        self.standing.hear(record)
        if isinstance(record.event, Event) and isinstance(record.event.data, JobData):
            self._job(record.event.data)

    def look(self, at_s: float) -> Iterator[tuple[str, float]]:
        """Who has been able to start since when, up to this moment."""
        for name, job in self.jobs.items():
            if job.able_since_s is not None:
                yield name, job.able_since_s
            if job.status != "queued" or not self._is_able(job):
                job.able_since_s = None
            elif job.able_since_s is None:
                job.able_since_s = at_s

    def _job(self, data: JobData) -> None:
        job = self.jobs.get(data.job_id) or self._begin(data)
        was, job.status = job.status, data.status.value
        if isinstance(data, JobReprioritized | JobMoved):  # an operator's move may lead into another class
            job.priority = data.to.value
        if isinstance(data, JobGivenBack | JobDispatched):
            job.gated = isinstance(data, JobGivenBack) and data.provider is not None
        if (job.status in RUNNING) != (was in RUNNING):
            (self.held.update if job.status in RUNNING else self.held.subtract)(job.groups)

    def _begin(self, data: JobData) -> _Job:
        asked: Submission = data.submission  # type: ignore[attr-defined]
        project = data.project_id if asked.shared else f"{data.user_id}:{data.project_id}"
        own = (f"user:{data.user_id}", f"project:{project}", f"pool:{asked.pool}")
        flow = (f"workflow:{asked.workflow}",) if asked.workflow else ()
        groups = (*own, WORKFLOWS) if flow else own
        made = _Job(asked, groups, frozenset({"all", *own, *flow}), asked.priority.value)
        self.jobs[data.job_id] = made
        return made

    def _is_able(self, job: _Job) -> bool:
        if job.gated or job.asked.groups:
            return False
        if not self.standing.paused.isdisjoint(job.scopes | {f"priority:{job.priority}"}):
            return False
        return all(self.held[group] < self._limit(group, job) for group in job.groups)

    def _limit(self, group: str, job: _Job) -> int:
        """The lowest that may count."""
        by_policy = min(self._limit_by(policy, group, job) for policy in self.evidence.policies)
        return min(by_policy, self.standing.lowest.get(group, by_policy))

    def _limit_by(self, policy: Policy, group: str, job: _Job) -> int:
        match group.partition(":")[0]:
            case "pool":
                return self.evidence.plan.slots * len(WORKERS)
            case "user":
                return policy.tier_limits(job.asked.tier).jobs_per_user
            case "project":
                return policy.tier_limits(job.asked.tier).jobs_per_project
            case _:
                return policy.concurrency.limits.get(group, policy.concurrency.default_limit)


def nobody_waits_beside_a_free_slot(evidence: Evidence) -> Iterator[Finding]:
    """I8."""
    model, told = _Model(evidence), set[str]()
    moments = [(evidence.at_s(record.at), record) for record in evidence.records]
    for at_s, record in [*moments, (evidence.ended_s, None)]:
        for name, since_s in model.look(at_s):
            waited_s = at_s - since_s
            if waited_s > STARTED_WITHIN_S and name not in told and evidence.is_healthy(at_s - STARTED_WITHIN_S, at_s):
                told.add(name)
                yield Finding("I8 idle", name, f"could start since {since_s:.1f} s and does not at {at_s:.1f} s")
        if record is not None:
            model.hear(record)
            list(model.look(at_s))

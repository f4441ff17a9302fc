"""Workflows as the log tells them: which waiting phases may enter the queue, and which never will.

A phase waits for the one before it. Where that is ready, the phase is free; where an earlier one ended otherwise, it is
doomed, and all after it. Owns how each phase of an unfinished workflow stands, so that the jobs of those that have
ended need not be known any more. A workflow is in the log as a whole, so one of which all have ended has no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate_contracts import Job, Status


@dataclass(frozen=True, slots=True)
class Phase:
    """One of a workflow, as it stands."""

    job: str
    status: Status


@dataclass(slots=True)
class Phases:
    """workflow → number → phase, and what follows for the jobs that wait."""

    flows: dict[str, dict[int, Phase]] = field(default_factory=dict[str, dict[int, Phase]])
    free: dict[str, None] = field(default_factory=dict[str, None])
    doomed: dict[str, str] = field(default_factory=dict[str, str])  # job → why

    @classmethod
    def standing(cls, flows: dict[str, dict[int, Phase]]) -> Phases:
        """From what is known of each workflow."""
        phases = cls(flows)
        for flow in flows.values():
            phases._judge(flow)
        return phases

    def fold(self, job: Job) -> None:
        """One of its jobs is like this now."""
        workflow, number = job.submission.workflow, job.submission.phase
        if workflow is None or number is None:
            return
        flow = self.flows.setdefault(workflow, {})
        if flow.setdefault(number, Phase(job.id, job.status)).job == job.id:
            flow[number] = Phase(job.id, job.status)
        if job.status is Status.WAITING or job.status.is_end:
            self._judge(flow)
        else:
            self.free.pop(job.id, None)
        if all(phase.status.is_end for phase in flow.values()):
            del self.flows[workflow]

    def _judge(self, flow: dict[int, Phase]) -> None:
        fate: str | None = None
        ready = False
        for number, phase in sorted(flow.items()):
            self.free.pop(phase.job, None)
            self.doomed.pop(phase.job, None)
            if phase.status is Status.WAITING and fate:
                self.doomed[phase.job] = fate
            elif phase.status is Status.WAITING and ready:
                self.free[phase.job] = None
            ready = phase.status is Status.READY
            if phase.status.is_end and not ready:
                ended = "failed" if phase.status is Status.FAILED else "was cancelled"
                fate = fate or f"phase {number} of the workflow {ended}"

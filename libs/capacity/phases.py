"""Workflows as the log tells them: which waiting phases may enter the queue, and which never will.

A phase waits for the one before it. Where that is ready, the phase is free; where an earlier one ended otherwise, it is
doomed, and all after it. Owns nothing that the jobs do not say: it is built anew from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from headgate_contracts import Job, Status


@dataclass(slots=True)
class Phases:
    """workflow → phase → job, and what follows for the jobs that wait."""

    flows: dict[str, dict[int, str]] = field(default_factory=dict[str, dict[int, str]])
    free: dict[str, None] = field(default_factory=dict[str, None])
    doomed: dict[str, str] = field(default_factory=dict[str, str])  # job → why

    def fold(self, job: Job, jobs: Mapping[str, Job]) -> None:
        """One of its jobs is like this now."""
        workflow, phase = job.submission.workflow, job.submission.phase
        if workflow is None or phase is None:
            return
        self.flows.setdefault(workflow, {}).setdefault(phase, job.id)
        if job.status is Status.WAITING or job.status.is_end:
            self._judge(workflow, jobs)
        else:
            self.free.pop(job.id, None)

    def forget(self, job: Job) -> None:
        """The job has left the ledger."""
        workflow, phase = job.submission.workflow, job.submission.phase
        flow = self.flows.get(workflow or "", {})
        if phase is not None and flow.get(phase) == job.id:
            del flow[phase]
            if not flow:
                del self.flows[workflow or ""]

    def outlived(self, job: Job, jobs: Mapping[str, Job], *, before: datetime) -> list[str]:
        """What goes with a job that ended before then: all of its workflow, but nothing while one of that goes on or
        ended later; later phases look back at it until then."""
        names = self.flows.get(job.submission.workflow or "", {}).values()
        if job.id not in names:
            return [job.id]
        members = [jobs[name] for name in names]
        gone = all(member.status.is_end and member.updated_at < before for member in members)
        return [member.id for member in members] if gone else []

    def _judge(self, workflow: str, jobs: Mapping[str, Job]) -> None:
        fate: str | None = None
        ready = False
        for phase, job in self._in_order(workflow, jobs):
            self.free.pop(job.id, None)
            self.doomed.pop(job.id, None)
            if job.status is Status.WAITING and fate:
                self.doomed[job.id] = fate
            elif job.status is Status.WAITING and ready:
                self.free[job.id] = None
            ready = job.status is Status.READY
            if job.status.is_end and not ready:
                fate = fate or f"phase {phase} of the workflow {_ended(job)}"

    def _in_order(self, workflow: str, jobs: Mapping[str, Job]) -> Iterator[tuple[int, Job]]:
        for phase, name in sorted(self.flows[workflow].items()):
            if name in jobs:
                yield phase, jobs[name]


def _ended(job: Job) -> str:
    return "failed" if job.status is Status.FAILED else "was cancelled"

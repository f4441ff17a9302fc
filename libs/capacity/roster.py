"""The unfinished jobs by how they stand, each kind a set of its own: who looks through one walks no other, and nobody
walks what has ended.

    waiting    for a day, for the phase before it, or for its user's answer
    queued     in the queue, paused or not
    running    from `dispatched` on

The queued ones stand by user too: whose stream is open is told of a few, while others wait in their thousands.

Owns nothing that the jobs do not say: it is built anew from them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from headgate_contracts import Job, Status


@dataclass(slots=True)
class Roster:
    """Each set by the job's id, the first that came into it at its head."""

    waiting: dict[str, Job] = field(default_factory=dict[str, Job])
    queued: dict[str, Job] = field(default_factory=dict[str, Job])
    running: dict[str, Job] = field(default_factory=dict[str, Job])
    queued_of: dict[str, dict[str, Job]] = field(default_factory=dict[str, dict[str, Job]])  # by user

    def fold(self, before: Job | None, job: Job) -> None:
        """The job stands like this now."""
        was, now = before and self._set_of(before), self._set_of(job)
        if was is not None and was is not now:
            was.pop(job.id, None)
            if was is self.queued:
                self._leave_queue(job)
        if now is not None:
            now[job.id] = job
            if now is self.queued:
                self.queued_of.setdefault(job.user_id, {})[job.id] = job

    @property
    def unfinished(self) -> Iterator[Job]:
        """All of them."""
        return chain(tuple(self.waiting.values()), tuple(self.queued.values()), tuple(self.running.values()))

    def _leave_queue(self, job: Job) -> None:
        others = self.queued_of.get(job.user_id, {})
        others.pop(job.id, None)
        if not others:
            self.queued_of.pop(job.user_id, None)

    def _set_of(self, job: Job) -> dict[str, Job] | None:
        if job.status.is_end:
            return None
        if job.status is Status.QUEUED:
            return self.queued
        return self.running if job.status.is_running else self.waiting

"""What attempts leave to one another: stored before it is named, under a name of its own, and not done twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headgate_contracts.events import JobStage, JobStarted
from tests.simulation.evidence import Evidence, Finding


def work_was_there_when_it_was_named(evidence: Evidence) -> Iterator[Finding]:
    """An event names work that can be read in the moment in which the event is in the log."""
    for seq, job, name in evidence.deeds.unread:
        yield Finding("work", job, f"record {seq} names {name}, which is not stored")


def work_was_named_once(evidence: Evidence) -> Iterator[Finding]:
    """No attempt stores other work under a name that was used before."""
    for name in evidence.overwritten:
        yield Finding("work", name, "was written over with other work")


@dataclass(slots=True)
class _Progress:
    """Of one job: what its log says is finished in the iteration that it is in."""

    iteration: int = 0
    running: str | None = None
    attempt: int = 0
    names: tuple[str, ...] = ()
    again_at: str | None = None
    finished: set[str] = field(default_factory=set[str])

    def begins(self, data: JobStage) -> None:
        if data.iteration != self.iteration:
            kept = self.names[: self.names.index(self.again_at)] if self.iteration and self.again_at else ()
            self.iteration, self.finished = data.iteration, self.finished if not self.iteration else set(kept)
        elif self.running is not None and data.attempt == self.attempt and self._is_before(self.running, data.stage):
            self.finished.add(self.running)
        self.running, self.attempt = data.stage, data.attempt

    def _is_before(self, one: str, other: str) -> bool:
        return self.names.index(one) < self.names.index(other)


def no_stage_was_done_twice(evidence: Evidence) -> Iterator[Finding]:
    """A stage that the log says is finished is passed through by later attempts, and not run again."""
    jobs: dict[str, _Progress] = {}
    for data in evidence.datas:
        if isinstance(data, JobStarted):
            progress = jobs.setdefault(data.job_id, _Progress())
            progress.names, progress.again_at = tuple(stage.name for stage in data.stages), data.again_at
        if not isinstance(data, JobStage):
            continue
        progress = jobs.setdefault(data.job_id, _Progress())
        progress.begins(data)
        if data.stage in progress.finished and not data.restored:
            yield Finding("work", data.job_id, f"attempt {data.attempt} runs {data.stage} again")

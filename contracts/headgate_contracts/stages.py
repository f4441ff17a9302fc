"""The way of a job through the stages of its pipeline: which one follows, and which status the job has in it.

    first ─► … ─► last ─┬─► ready
      ▲                 └─► another iteration: at `again_at`, where the author names one, else at the first
      └─────────────────────┘

Owns that way, for the worker that writes it and for every reader that folds it. What an iteration does not run again is
finished. Refuses to know why an iteration is not good enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from headgate_contracts.records import Record, StageTitle
from headgate_contracts.vocabulary import BUILD_STAGES, Status

if TYPE_CHECKING:  # an attempt's process needs no model of a job, and is forked from one without
    from headgate_contracts.job import Job


class Stages(Record):
    """What a pipeline's author has named: the stages in order, and where another iteration begins."""

    titles: tuple[StageTitle, ...] = ()
    again_at: str | None = None


class NextStage(NamedTuple):
    """The stage that follows where a job stands, and what is finished once it has begun."""

    stage: str
    status: Status
    iteration: int
    restored: bool
    finished: tuple[str, ...]


def next_stage_of(job: Job) -> NextStage | None:
    """Null where no worker has claimed the attempt, or has no such pipeline.

    An attempt walks from the beginning: what an earlier one has finished, or the job that it tries again, is `restored`
    and not run.
    """
    names = job.stage_names
    if job.worker is None or not names:
        return None
    opens = job.cycle_over or is_in_last(job)
    finished = kept_by_iteration(job) if opens and job.iteration else job.finished_stages
    at = 0 if job.stage is None else len(kept_by_iteration(job)) if opens else names.index(job.stage) + 1
    restored = names[at] in finished
    status = status_in(names[at], names, again_at=job.again_at)
    return NextStage(names[at], status, job.iteration + opens, restored, finished if restored else names[:at])


def status_in(stage: str, names: Sequence[str], *, again_at: str | None = None) -> Status:
    """That of a job in this stage: the stage's own where the pipeline goes as `build` does, else `running`."""
    as_build = tuple(names) == BUILD_STAGES and again_at in (None, names[0])
    return Status(stage) if as_build else Status.RUNNING


def is_in_last(job: Job) -> bool:
    return bool(job.stages) and job.stage == job.stages[-1].name


def kept_by_iteration(job: Job) -> tuple[str, ...]:
    """The stages that another iteration does not run again."""
    names = job.stage_names
    return names[: names.index(job.again_at)] if job.again_at in names else ()


def in_common(finished: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """What is finished still under other names: a pipeline may have changed since. Up to the first that differs."""
    same = 0
    while same < min(len(finished), len(names)) and finished[same] == names[same]:
        same += 1
    return tuple(names[:same])

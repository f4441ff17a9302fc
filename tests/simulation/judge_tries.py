"""How often a stage is run again: as its author allows, over all attempts, and never before its pause is over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import JobData, JobGivenBack, JobStage, JobStarted, JobTryFailed
from tests.simulation.deeds import TryRun
from tests.simulation.evidence import Evidence, Finding, span_of
from tests.simulation.stumbles import RETRIES

EARLY_S: Final = 0.05  # a claim is dated by the log, and arrives a moment later
Tries = dict[tuple[str, int, str], list[tuple[float, JobTryFailed]]]  # job, iteration, stage


def tries_were_counted(evidence: Evidence) -> Iterator[Finding]:
    """A stage is run again as often as its author allows, over all attempts; each run is told how often it was."""
    written = _written(evidence)
    for (job, iteration, stage), tries in written.items():
        counts = [data.tried.tries for _, data in tries]
        if counts != [*range(1, len(counts) + 1)] or len(counts) > RETRIES:
            yield Finding("tries", job, f"{stage} of iteration {iteration} has failed {counts} times of {RETRIES}")
    for run in evidence.deeds.tries:
        yield from _of_run(run, written)


def _of_run(run: TryRun, written: Tries) -> Iterator[Finding]:
    before = [each for each in written.get((run.job, run.iteration, run.stage), ()) if each[0] <= run.at_s]
    known = [(at_s, data) for at_s, data in before if data.attempt <= run.attempt]
    if run.tries != len(known):
        what = f"attempt {run.attempt} runs {run.stage} as after {run.tries} tries, and {len(known)} are in the log"
        yield Finding("tries", run.job, what)


def pauses_were_kept(evidence: Evidence) -> Iterator[Finding]:
    """It is run again when its pause is over; through a long one the job holds no slot."""
    written = _written(evidence)
    for run in evidence.deeds.tries:
        tries = written.get((run.job, run.iteration, run.stage), ())
        last = next((data for at_s, data in reversed(tries) if at_s <= run.at_s and data.attempt <= run.attempt), None)
        if last is not None and run.at_s < evidence.at_s(last.tried.again_at) - EARLY_S:
            due_s = evidence.at_s(last.tried.again_at)
            yield Finding("tries", run.job, f"{run.stage} is run again at {run.at_s:.2f} s, due at {due_s:.2f} s")
    yield from _held_through_pauses(evidence)


def _held_through_pauses(evidence: Evidence) -> Iterator[Finding]:
    most_s = evidence.policy.providers.give_back_after_s
    for job, events in _by_job(evidence).items():
        worker = ""
        for (at_s, failed), (_, then) in pairwise(events):
            if isinstance(failed, JobStarted):
                worker = failed.worker.rpartition("-")[0]
            if not isinstance(failed, JobTryFailed):
                continue
            pause_s = evidence.at_s(failed.tried.again_at) - _awake_s(evidence, worker, at_s)
            if pause_s > most_s + 1 and isinstance(then, JobStage) and then.attempt == failed.attempt:
                yield Finding("tries", job, f"holds its slots through a pause of {pause_s:.1f} s")
            if isinstance(then, JobGivenBack) and then.until is not None and then.until != failed.tried.again_at:
                yield Finding("tries", job, f"is put off until {then.until}, its pause ends {failed.tried.again_at}")


def _awake_s(evidence: Evidence, worker: str, at_s: float) -> float:
    """When it knew what it had written: one that is stopped or answered late has less of the pause before it."""
    spans = [span_of(fault) for fault in evidence.plan.faults if fault.who in (worker, "*")]
    return max((ended_s for began_s, ended_s in spans if began_s <= at_s <= ended_s), default=at_s)


def _written(evidence: Evidence) -> Tries:
    found: Tries = {}
    for job, events in _by_job(evidence).items():
        for at_s, data in events:
            if isinstance(data, JobTryFailed):
                found.setdefault((job, data.tried.iteration, data.tried.stage), []).append((at_s, data))
    return found


def _by_job(evidence: Evidence) -> dict[str, list[tuple[float, JobData]]]:
    found: dict[str, list[tuple[float, JobData]]] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        if isinstance(data, JobData):
            found.setdefault(data.job_id, []).append((evidence.at_s(record.at), data))
    return found

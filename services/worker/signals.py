"""What a worker shows of itself: its metrics, and each stage as a span of the job's own trace.

Owns the names, on which dashboards and alerts rely. No label has an id in it.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

from opentelemetry.trace import Span, SpanContext

from headgate_contracts import Job
from headgate_contracts.events import JobDispatched, JobStage
from libs.eventlog import Record
from libs.runtime.spans import mark
from libs.runtime.telemetry import Telemetry
from services.worker.child.messages import ModelCalled

STAGE_S: Final = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600]
LOST: Final = "lost"  # to its lease, or to an operator
DISPATCHED: Final = "headgate.jobs.v1.{job}.{user}.{project}.dispatched.{pool}"


@dataclass(slots=True)
class AttemptSpan:
    """An attempt that runs. `outcome` is the event that it ended with."""

    outcome: str = LOST


@dataclass(slots=True)
class StageSpan:
    """A stage that runs. `outcome` is set by the code that learns it."""

    span: Span
    outcome: str = LOST
    wrong: str | None = None  # what its user is told, where it went wrong


class Signals:
    """The metrics and spans of one worker."""

    def __init__(self, telemetry: Telemetry, *, pool: str) -> None:
        meter = telemetry.meter
        self._telemetry = telemetry
        self._pool = {"pool": pool}
        self._running = meter.create_up_down_counter("headgate_worker_jobs_running", description="attempts, by pool")
        self._stages = meter.create_histogram(
            "headgate_worker_stage_seconds",
            description="how long a stage ran, by pipeline, stage and outcome; restored ones do not run",
            explicit_bucket_boundaries_advisory=STAGE_S,
        )
        self._attempts = meter.create_counter(
            "headgate_worker_attempts", description="attempts that ended, by the event that they ended with"
        )
        self._calls = meter.create_counter(
            "headgate_worker_model_calls", description="calls to providers that are over, by what came of them"
        )
        self._tokens = meter.create_counter(
            "headgate_worker_model_tokens",
            description="as the providers count them: input, output, and cached, which are among the input",
        )
        self._running.add(0, self._pool)

    def called(self, told: ModelCalled, *, provider: str, model: str) -> None:
        """A call to a provider is over. Both names are configured ones, or `other`."""
        named = {"provider": provider, "model": model}
        self._calls.add(1, {**named, "outcome": told.outcome})
        for kind in ("input", "output", "cached"):
            self._tokens.add(getattr(told, f"{kind}_tokens") or 0, {**named, "type": kind})

    def processing(self, record: Record, data: JobDispatched) -> AbstractContextManager[Span]:
        """From a message of the pool to its claim."""
        parent, state = record.traceparent, data.tracestate
        return self._telemetry.message_span("process", DISPATCHED, job_id=data.job_id, parent=parent, state=state)

    @contextmanager
    def attempt(self, job: Job, *, cause: SpanContext) -> Iterator[AttemptSpan]:
        """While an attempt is ours."""
        attributes = {"headgate.job.attempt": job.attempt}
        self._running.add(1, self._pool)
        try:
            with self._telemetry.job_span("attempt", job, cause=cause, attributes=attributes) as span:
                running = AttemptSpan()
                yield running
                span.set_attribute("headgate.outcome", running.outcome)
                if running.outcome == LOST:
                    mark("the attempt is not this worker's any more", span)
        finally:
            self._running.add(-1, self._pool)
        self._attempts.add(1, {**self._pool, "event": running.outcome})

    @contextmanager
    def stage(self, job: Job, begun: JobStage) -> Iterator[StageSpan]:
        """While a stage runs."""
        attributes = {
            "headgate.stage": begun.stage,
            "headgate.job.attempt": job.attempt,
            "headgate.job.iteration": begun.iteration,
        }
        began_s = time.perf_counter()
        with self._telemetry.job_span(f"stage {begun.stage}", job, attributes=attributes) as span:
            running = StageSpan(span)
            try:
                yield running
            finally:
                span.set_attribute("headgate.outcome", running.outcome)
                if running.wrong is not None:
                    mark(running.wrong, span)
                pipeline = job.submission.pipeline  # this worker has it, so there are only so many, and so many stages
                labels = {"pipeline": pipeline, "stage": begun.stage, "outcome": running.outcome}
                self._stages.record(time.perf_counter() - began_s, labels)

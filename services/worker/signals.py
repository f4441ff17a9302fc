"""What a worker shows of itself: its metrics, and each stage as a span of the job's own trace.

Owns the names, on which dashboards and alerts rely. No label has an id in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

from opentelemetry.trace import Span, StatusCode

from headgate_contracts import Job
from headgate_contracts.events import JobStage
from libs.eventlog import Record
from libs.runtime.telemetry import Telemetry

STAGE_S: Final = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600]
DISPATCHED: Final = "headgate.jobs.v1.{job}.{user}.{project}.dispatched.{pool}"


@dataclass(slots=True)
class StageSpan:
    """A stage that runs. `outcome` is set by whoever learns it."""

    span: Span
    outcome: str = "lost"
    wrong: str | None = None  # what its user is told, where it went wrong


class Signals:
    """One worker's."""

    def __init__(self, telemetry: Telemetry, *, pool: str) -> None:
        meter = telemetry.meter
        self._telemetry = telemetry
        self._pool = {"pool": pool}
        self._running = meter.create_up_down_counter("headgate_worker_jobs_running", description="attempts, by pool")
        self._stages = meter.create_histogram(
            "headgate_worker_stage_seconds",
            description="how long a stage ran, by stage and outcome; restored ones do not run",
            explicit_bucket_boundaries_advisory=STAGE_S,
        )
        self._attempts = meter.create_counter(
            "headgate_worker_attempts", description="attempts that ended, by the event that they ended with"
        )
        self._running.add(0, self._pool)

    def processing(self, record: Record, job_id: str) -> AbstractContextManager[Span]:
        """From a message of the pool to its claim."""
        return self._telemetry.message_span("process", DISPATCHED, job_id=job_id, parent=record.traceparent)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """While an attempt is ours."""
        self._running.add(1, self._pool)
        try:
            yield
        finally:
            self._running.add(-1, self._pool)

    def ended(self, event: str) -> None:
        self._attempts.add(1, {**self._pool, "event": event})

    @contextmanager
    def stage(self, job: Job, begun: JobStage) -> Iterator[StageSpan]:
        """While a stage runs."""
        attributes = {
            "headgate.stage": begun.stage.value,
            "headgate.job.attempt": job.attempt,
            "headgate.job.iteration": begun.iteration,
        }
        began_s = time.perf_counter()
        with self._telemetry.job_span(f"stage {begun.stage.value}", job, attributes=attributes) as span:
            running = StageSpan(span)
            try:
                yield running
            finally:
                span.set_attribute("headgate.outcome", running.outcome)
                if running.wrong is not None:
                    span.set_status(StatusCode.ERROR, running.wrong)
                labels = {"stage": begun.stage.value, "outcome": running.outcome}
                self._stages.record(time.perf_counter() - began_s, labels)

"""What the scheduler shows of itself: its metrics, and its decisions about a job as spans of that job's own trace.

Owns the names, on which dashboards and alerts rely. Which groups have a label is in `labels`; `headgate concurrency
status` shows all of them.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span

from headgate_contracts import Event, Job
from headgate_contracts.commands import AcquireLease
from headgate_contracts.events import JobCancelled, JobDispatched, JobFailed, JobGivenBack, JobReady
from headgate_contracts.vocabulary import GivenBackReason
from libs.capacity.answers import Full, Granted, LeaseAnswer, WaitsInLine
from libs.eventlog.values import Record
from libs.runtime.telemetry import Telemetry, job_context, job_trace
from libs.runtime.troubles import say_trouble
from services.scheduler.batches import Batch
from services.scheduler.domain import Decision
from services.scheduler.labels import GroupLabels
from services.scheduler.peaks import Peaks

SECONDS: Final = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 15]
WAITS_S: Final = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400]


class Signals:
    """The metrics and spans of one scheduler replica."""

    def __init__(self, telemetry: Telemetry, labels: GroupLabels, peaks: Peaks) -> None:
        meter = telemetry.meter
        self._labels = labels
        self._peaks = peaks
        self._tracer = telemetry.tracer
        self._cycles = meter.create_histogram(
            "headgate_scheduler_cycle_seconds", description="one turn", explicit_bucket_boundaries_advisory=SECONDS
        )
        self._events = meter.create_counter("headgate_scheduler_events", description="events written, by kind")
        self._dispatched = meter.create_counter("headgate_scheduler_dispatched", description="jobs started, by pool")
        self._conflicts = meter.create_counter("headgate_scheduler_conflicts", description="commits that were refused")
        self._lost = meter.create_counter("headgate_scheduler_lost", description="attempts whose worker fell silent")
        self._rebuilt = meter.create_counter("headgate_view_rebuilt", description="times that the view was folded anew")
        self._ended = meter.create_counter("headgate_jobs_ended", description="jobs that ended, by status and fault")
        for counter in (self._lost, self._rebuilt):
            counter.add(0)  # the first one is an increase, too
        self._acquired = meter.create_counter(
            "headgate_concurrency_acquisition", description="requests for a slot, by group and result"
        )
        self._waited = meter.create_histogram(
            "headgate_concurrency_wait_seconds",
            description="from the request to the slot",
            explicit_bucket_boundaries_advisory=WAITS_S,
        )
        self._blocked = meter.create_counter(
            "headgate_llm_blocked_requests",
            description="requests for a slot of a provider that had to wait, or were refused",
        )
        self._blocked_s = meter.create_histogram(
            "headgate_llm_block_seconds",
            description="how long those waited that got a slot later",
            explicit_bucket_boundaries_advisory=WAITS_S,
        )

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The time of one turn."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            self._cycles.record(time.perf_counter() - began_s)

    def decided(self, decision: Decision) -> Span:
        """A span in the job's trace, from the decision until it is known what became of it."""
        root = NonRecordingSpan(job_trace(decision.job).root)
        return self._tracer.start_span(
            f"decide {decision.data.EVENT.value}",
            context=trace.set_span_in_context(root, Context()),
            attributes={"headgate.job.id": decision.job.id, "headgate.job.attempt": decision.data.attempt},
        )

    def committed(self, batch: Batch, spans: Iterable[Span], *, now: datetime) -> None:
        """All of the batch is in the log."""
        self._peaks.dispatched(decision.data for decision in batch.decisions)
        for decision, span in zip(batch.decisions, spans, strict=True):
            with job_context(decision.job):
                say_trouble(decision.data, span)
            span.end()
            self._events.add(1, {"event": decision.data.EVENT.value})
            if isinstance(decision.data, JobGivenBack) and decision.data.reason is GivenBackReason.LOST:
                self._lost.add(1)
            if isinstance(decision.data, JobDispatched):
                self._started(decision.job, decision.data, now=now)

    def read(self, records: Iterable[Record]) -> None:
        """This replica leads, and reads what happens. What happened before it led another has counted."""
        for event in (record.event for record in records):
            match event.data if isinstance(event, Event) else None:
                case JobFailed(fault=fault):
                    self._ended.add(1, {"end": "failed", "fault": fault.value})
                case JobReady():
                    self._ended.add(1, {"end": "ready", "fault": ""})
                case JobCancelled():
                    self._ended.add(1, {"end": "cancelled", "fault": ""})
                case _:
                    pass

    def rebuilt(self) -> None:
        """The view was lost, or is another's: it was folded anew."""
        self._rebuilt.add(1)

    def refused(self, spans: Iterable[Span]) -> None:
        """Nothing of the batch is in the log, as far as is known."""
        self._conflicts.add(1)
        for span in spans:
            span.set_attribute("headgate.refused", True)
            span.end()

    def asked(self, command: AcquireLease, answer: LeaseAnswer) -> None:
        """Somebody wants slots for a stage, or outside any job. Each request counts once, however often it is asked
        about: one that waits is counted as acquired when its turn comes, and a worker asks about it all the while."""
        match answer:
            case Granted(again=False, active=active):
                self._peaks.taken(active)
                if command.waited:  # since when was lost with its place, in the view
                    self._count(command.groups, "acquired")
                else:
                    self.acquired(command.groups, waited_s=0.0)
            case Full():
                self._count(command.groups, "rejected")
                self._count_blocked(() if command.waited else command.groups)
            case WaitsInLine(again=again):
                self._count(() if command.wait_ms else command.groups, "rejected")  # it asks for the last time
                self._count_blocked(() if again or command.waited else command.groups)
            case _:
                pass

    def acquired(self, groups: Sequence[str], *, waited_s: float) -> None:
        """They got them. `waited_s` is not 0 where they had to wait."""
        self._count(groups, "acquired")
        for label in filter(None, map(self._labels.of_group, groups)):
            self._waited.record(max(0.0, waited_s), {"group": label})
        for provider in filter(None, map(self._labels.of_provider, groups if waited_s else ())):
            self._blocked_s.record(max(0.0, waited_s), {"provider": provider})

    def _started(self, job: Job, data: JobDispatched, *, now: datetime) -> None:
        self._dispatched.add(1, {"pool": data.pool})
        groups = (*data.groups, f"pool:{data.pool}")
        if job.standing and not job.attempt:
            self.acquired(groups, waited_s=(now - job.standing.entered_at).total_seconds())
        else:  # a job that came back: what it waited before its first start is counted already
            self._count(groups, "acquired")

    def _count(self, groups: Sequence[str], result: str) -> None:
        for label in filter(None, map(self._labels.of_group, groups)):
            self._acquired.add(1, {"group": label, "result": result})

    def _count_blocked(self, groups: Sequence[str]) -> None:
        for provider in filter(None, map(self._labels.of_provider, groups)):
            self._blocked.add(1, {"provider": provider})

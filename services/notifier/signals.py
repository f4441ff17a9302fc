"""What the notifier shows of itself: its open streams, and when a job's status first reached a client.

Owns the names, on which dashboards and alerts rely. No label has an id in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry.metrics import CallbackOptions, Observation

from libs.eventlog import Record
from libs.runtime.telemetry import Telemetry, linked


class Signals:
    """One replica's."""

    def __init__(self, telemetry: Telemetry, *, streams: Callable[[], int]) -> None:
        self._telemetry = telemetry
        self._streams = streams
        telemetry.meter.create_observable_gauge(
            "headgate_notifier_streams", [self._observe], description="streams that are open"
        )

    @contextmanager
    def first_delivery(self, job_id: str, record: Record) -> Iterator[None]:
        """Until the first bytes of a stream are ready to be sent. They go up to this record: its writer is linked."""
        attributes = {"headgate.delivered.seq": record.seq}
        with self._telemetry.job_span("deliver", job_id, links=linked(record.traceparent), attributes=attributes):
            yield

    def _observe(self, _: CallbackOptions) -> list[Observation]:
        return [Observation(self._streams())]

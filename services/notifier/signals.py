"""What the notifier shows of itself: its open streams and how late they are, the webhooks that it calls, and when a
job's status first reached a client.

Owns the names, on which dashboards and alerts rely. No label has an id in it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.trace import SpanContext

from headgate_contracts import Job
from libs.eventlog import Record
from libs.runtime.telemetry import Telemetry, linked
from services.notifier.fanout import StreamItem, TooSlow

LAGS_S: Final = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15]


class Signals:
    """The metrics of one notifier replica."""

    def __init__(self, telemetry: Telemetry, *, streams: Callable[[], int]) -> None:
        self._telemetry = telemetry
        self._streams = streams
        telemetry.meter.create_observable_gauge(
            "headgate_notifier_streams", [self._observe], description="streams that are open"
        )
        self._lag = telemetry.meter.create_histogram(
            "headgate_notifier_lag_seconds",
            description="from the log to the client's connection, of the oldest event in each piece",
            explicit_bucket_boundaries_advisory=LAGS_S,
        )
        self._cut = telemetry.meter.create_counter(
            "headgate_notifier_cut_off", description="streams that were cut off, by why"
        )
        self._webhooks = telemetry.meter.create_counter(
            "headgate_notifier_webhooks", description="calls of webhooks by outcome; `let go`: the last try failed too"
        )

    @contextmanager
    def first_delivery(self, job: Job, record: Record) -> Iterator[None]:
        """Until a stream's first bytes are ready to be sent. They go up to this record: its writing is the cause."""
        attributes = {"headgate.delivered.seq": record.seq}
        with self._telemetry.job_span("deliver", job, cause=_writer(record), attributes=attributes):
            yield

    def delivered(self, told: Sequence[StreamItem]) -> None:
        """A stream's connection has taken these. What somebody waited for at first is no lag, and not among them."""
        oldest_ms = min((each.at_ms for each in told if each.at_ms is not None), default=None)
        if oldest_ms is not None:
            self._lag.record(max(0.0, time.time() - oldest_ms / 1000))

    def ended(self, why: Exception) -> None:
        """A stream that was not complete."""
        if isinstance(why, TooSlow):
            self.cut_off("too slow")

    def cut_off(self, why: str) -> None:
        self._cut.add(1, {"why": why})

    def webhook(self, outcome: str) -> None:
        self._webhooks.add(1, {"outcome": outcome})

    def _observe(self, _: CallbackOptions) -> list[Observation]:
        return [Observation(self._streams())]


def _writer(record: Record) -> SpanContext | None:
    return next(iter(linked(record.traceparent)), None)

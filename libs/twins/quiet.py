"""Telemetry that measures nothing: nobody looks at that of a test, and a simulation makes thousands of processes."""

from contextlib import nullcontext
from typing import Any, cast

from opentelemetry.metrics import NoOpMeter, NoOpMeterProvider
from opentelemetry.trace import INVALID_SPAN, NoOpTracer, NoOpTracerProvider

from libs.runtime.telemetry import Telemetry


class _Quiet:
    """What services use of it."""

    def __init__(self) -> None:
        self.meter = NoOpMeter("quiet")
        self.tracer = NoOpTracer()
        self.meter_provider, self.tracer_provider = NoOpMeterProvider(), NoOpTracerProvider()

    def message_span(self, *_: Any, **__: Any) -> Any:
        return nullcontext(INVALID_SPAN)

    def job_span(self, *_: Any, **__: Any) -> Any:
        return nullcontext(INVALID_SPAN)


def quiet_telemetry() -> Telemetry:
    return cast("Telemetry", _Quiet())

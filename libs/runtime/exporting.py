"""The exporters of a process: what it sends over OTLP, as `switches` says.

Where nothing is sent none is loaded: the two kinds take 3 and 20 MB.
"""

import os
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeVar

from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.metrics.export import MetricExporter, MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from libs.runtime.errors import SettingsWrong

Exporter = TypeVar("Exporter")


Signal = Literal["traces", "metrics", "logs"]


SIGNALS: Final[tuple[Signal, ...]] = ("traces", "metrics", "logs")


PROTOCOLS: Final = ("http/protobuf", "grpc")


def is_sent(signal: Signal, environ: Mapping[str, str] = os.environ) -> bool:
    exporter = environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip()
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if exporter:
        return exporter == "otlp"
    return any(environ.get(f"OTEL_EXPORTER_OTLP_{of}ENDPOINT") for of in ("", f"{signal.upper()}_"))


def protocol_of(signal: Signal, environ: Mapping[str, str] = os.environ) -> str:
    names = f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    name, told = next(((each, environ[each]) for each in names if environ.get(each)), (names[1], PROTOCOLS[0]))
    if told not in PROTOCOLS:
        raise SettingsWrong([f"{name}: {told!r} cannot be used; set it to {' or '.join(PROTOCOLS)}"])
    return told


def resource_of(service: str, *, instance: str) -> Resource:
    """Who says it. What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES tell comes over what we know."""
    ours = {"service.namespace": "headgate", "service.name": service, "service.instance.id": instance}
    return Resource.create(ours).merge(OTELResourceDetector().detect())


def span_processors() -> tuple[SpanProcessor, ...]:
    return tuple(BatchSpanProcessor(each) for each in _made("traces", http=_spans_by_http, grpc=_spans_by_grpc))


def metric_readers() -> tuple[MetricReader, ...]:
    made = _made("metrics", http=_metrics_by_http, grpc=_metrics_by_grpc)
    return tuple(PeriodicExportingMetricReader(each) for each in made)


def log_processors() -> tuple[LogRecordProcessor, ...]:
    return tuple(BatchLogRecordProcessor(each) for each in _made("logs", http=_logs_by_http, grpc=_logs_by_grpc))


def _made(signal: Signal, *, http: Callable[[], Exporter], grpc: Callable[[], Exporter]) -> tuple[Exporter, ...]:
    if not is_sent(signal):
        return ()
    return (grpc() if protocol_of(signal) == "grpc" else http(),)


def _spans_by_http() -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return OTLPSpanExporter()


def _spans_by_grpc() -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return OTLPSpanExporter()


def _metrics_by_http() -> MetricExporter:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415

    return OTLPMetricExporter()


def _metrics_by_grpc() -> MetricExporter:
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter  # noqa: PLC0415

    return OTLPMetricExporter()


def _logs_by_http() -> LogRecordExporter:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: PLC0415

    return OTLPLogExporter()


def _logs_by_grpc() -> LogRecordExporter:
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter  # noqa: PLC0415

    return OTLPLogExporter()

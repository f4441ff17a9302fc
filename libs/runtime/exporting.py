"""The exporters of a process: what it sends over OTLP, as `switches` says.

Where nothing is sent none is loaded: the two kinds take 3 and 20 MB.
"""

import os
from collections.abc import Callable
from typing import TypeVar

from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.metrics.export import MetricExporter, MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from libs.runtime.switches import Signal, is_sent, protocol_of

Exporter = TypeVar("Exporter")


def resource_of(service: str, *, instance: str) -> Resource:
    """Who says it. What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES tell comes over what we know."""
    ours = {"service.namespace": "headgate", "service.name": service, "service.instance.id": instance}
    return Resource.create(ours).merge(OTELResourceDetector().detect())


def has_sampler() -> bool:
    """Whether somebody has said which traces are taken: that goes on with a trace, wherever it is sent."""
    return "OTEL_TRACES_SAMPLER" in os.environ


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

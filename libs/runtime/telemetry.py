"""Traces, metrics and logs of one process, in one object that the composition root makes.

A job has a trace of its own. Its id and the id of its root span are made from the job's id, so whoever knows the job
knows its trace, without asking and without carrying anything through the log:

    a request's trace          POST /v1/jobs
                                    ▲ link
    the job's trace     root: accept ◄── every other span of the job is its child, in whatever process
                          ├── scheduler: plan
                          ├── worker: process …, stage code
                          └── notifier: deliver

Owns the ids, the names of spans and the providers. Refuses global providers (four services fit into one test) and
names with an id in them: a name is one of few.
"""

import asyncio
import hashlib
import re
import secrets
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, TextIO

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, TraceFlags
from prometheus_client import CollectorRegistry, generate_latest

from libs.runtime import exporting
from libs.runtime.logs import Logs, OtlpLogs, about_job, json_lines

LAST_EXPORT_S: Final = 3.0  # for all that is left; a receiver that is away must not keep a process from ending
FLAGS: Final = TraceFlags(TraceFlags.SAMPLED | TraceFlags.RANDOM_TRACE_ID)  # a hash is as even as a random number

Attributes = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class JobTrace:
    """The ids that follow from a job's id."""

    trace_id: int
    root_span_id: int

    @property
    def debug_id(self) -> str:
        return trace.format_trace_id(self.trace_id)

    @property
    def root(self) -> SpanContext:
        return SpanContext(self.trace_id, self.root_span_id, is_remote=True, trace_flags=FLAGS)


def job_trace(job_id: str) -> JobTrace:
    digest = hashlib.sha256(f"headgate job {job_id}".encode()).digest()
    return JobTrace(int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:24], "big"))


@contextmanager
def job_context(job_id: str) -> Generator[None]:
    """All that is done inside is about the job: log lines carry both ids, spans are of the job's trace."""
    with about_job(job_id), trace.use_span(NonRecordingSpan(job_trace(job_id).root)):
        yield


def current_debug_id() -> str:
    """The id of the trace in which this is asked; outside any, one that stands in nothing but the log."""
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else secrets.token_hex(16)


def traceparent(context: SpanContext | None = None) -> str | None:
    """What a message carries on (W3C): the span given, or the current one. Null where there is none."""
    context = context or trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    ids = f"{trace.format_trace_id(context.trace_id)}-{trace.format_span_id(context.span_id)}"
    return f"00-{ids}-{context.trace_flags:02x}"


def linked(header: str | None) -> tuple[SpanContext, ...]:
    """The span that a message came from, to link to; none where it says nothing that can be read."""
    match = re.fullmatch(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", header or "")
    if match is None:
        return ()
    flags = TraceFlags(int(match[3], 16))
    context = SpanContext(int(match[1], 16), int(match[2], 16), is_remote=True, trace_flags=flags)
    return (context,) if context.is_valid else ()


class _Ids(RandomIdGenerator):
    """Random ids, except for the one root span that is being emitted."""

    def __init__(self) -> None:
        self._given: ContextVar[JobTrace | None] = ContextVar("given_ids", default=None)

    @contextmanager
    def given(self, ids: JobTrace) -> Generator[None]:
        token = self._given.set(ids)
        try:
            yield
        finally:
            self._given.reset(token)

    def generate_trace_id(self) -> int:
        given = self._given.get()
        return given.trace_id if given else super().generate_trace_id()

    def generate_span_id(self) -> int:
        given = self._given.get()
        return given.root_span_id if given else super().generate_span_id()


class Telemetry:
    """Made once a process. As a part of the service, `start` begins the logs and `stop` sends the last spans."""

    name = "telemetry"

    def __init__(
        self,
        service: str,
        *,
        instance: str,
        log_level: str = "INFO",
        logs: TextIO | None = sys.stdout,
        span_processors: Sequence[SpanProcessor] = (),
    ) -> None:
        resource = exporting.resource_of(service, instance=instance)
        self._ids = _Ids()
        self.tracer_provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        for processor in (_QueryNames(), *span_processors, *exporting.span_processors()):
            self.tracer_provider.add_span_processor(processor)
        self.tracer = self.tracer_provider.get_tracer("headgate")
        self._registry = CollectorRegistry()
        shown = PrometheusMetricReader(scope_info_enabled=False, registry=self._registry)
        readers = (shown, *exporting.metric_readers())
        self.meter_provider = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
        self.meter = self.meter_provider.get_meter("headgate")
        logger_provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        handlers = [json_lines(logs, service=service, instance=instance)] if logs else []
        for processor in exporting.log_processors():
            logger_provider.add_log_record_processor(processor)
            handlers.append(OtlpLogs(logger_provider.get_logger("headgate")))
        self._logs = Logs(handlers, level=log_level)
        self._providers = (self.tracer_provider, self.meter_provider, logger_provider)
        self._ended = False

    def metrics_text(self) -> bytes:
        """All metrics as Prometheus reads them."""
        return generate_latest(self._registry)

    @contextmanager
    def job_span(
        self,
        name: str,
        job_id: str,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[SpanContext] = (),
        attributes: Attributes | None = None,
    ) -> Generator[Span]:
        """A span of the job's trace; log lines inside carry its id. Inside another trace it links to the span there."""
        with (
            about_job(job_id),
            self.tracer.start_as_current_span(
                _one_of_few(name, job_id),
                context=_parent(job_id),
                kind=kind,
                links=_links(job_id, links),
                attributes={"headgate.job.id": job_id, **(attributes or {})},
            ) as span,
        ):
            yield span

    @contextmanager
    def message_span(
        self,
        operation: Literal["publish", "process"],
        template: str,
        *,
        job_id: str | None = None,
        links: Sequence[SpanContext] = (),
    ) -> Generator[Span]:
        """A message sent or handled. `template` is the subject with names in braces for what differs."""
        attributes = {
            "messaging.system": "nats",
            "messaging.operation.name": operation,
            "messaging.destination.template": template,
        }
        kind = SpanKind.PRODUCER if operation == "publish" else SpanKind.CONSUMER
        name = f"{operation} {template}"
        if job_id is not None:
            span = self.job_span(name, job_id, kind=kind, links=links, attributes=attributes)
        else:
            span = self.tracer.start_as_current_span(
                name, kind=kind, links=[Link(link) for link in links], attributes=attributes
            )
        with span as started:
            yield started

    def emit_root(
        self,
        name: str,
        job_id: str,
        *,
        started_ns: int,
        links: Sequence[SpanContext] = (),
        attributes: Attributes | None = None,
    ) -> None:
        """The root of the job's trace, from `started_ns` to now; for admission, once it knows that the job is new."""
        with self._ids.given(job_trace(job_id)):
            root = self.tracer.start_span(
                _one_of_few(name, job_id),
                context=Context(),
                links=_links(job_id, links),
                attributes={"headgate.job.id": job_id, **(attributes or {})},
                start_time=started_ns,
            )
        root.end()

    async def start(self) -> None:
        self._logs.start()

    async def stop(self) -> None:
        """Sends what is left, but waits for no receiver that is away: hence threads that die with the process."""
        self._logs.stop()
        if self._ended:
            return
        self._ended = True
        loop, sent = asyncio.get_running_loop(), asyncio.Event()

        def send() -> None:
            _side_by_side(*(provider.shutdown for provider in self._providers))
            with suppress(RuntimeError):  # the loop is gone: nobody waits any more
                loop.call_soon_threadsafe(sent.set)

        threading.Thread(target=send, name="last telemetry", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_EXPORT_S):
                await sent.wait()


def _side_by_side(*calls: Callable[[], object]) -> None:
    """Until the last of them is done: one whose receiver hangs takes no time from the others."""
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _QueryNames(SpanProcessor):
    """Keeps the names of a request's parameters and drops their values, as one of them may be a ticket."""

    def on_start(self, span: sdk_trace.Span, parent_context: Context | None = None) -> None:
        query = (span.attributes or {}).get("url.query")
        if isinstance(query, str):
            span.set_attribute("url.query", "&".join(part.partition("=")[0] for part in query.split("&")))


def _one_of_few(name: str, job_id: str) -> str:
    if job_id in name:
        raise ValueError(f"the span name {name!r} holds the job's id: name the operation, ids are attributes")
    return name


def _parent(job_id: str) -> Context:
    """The current span where it belongs to the job, else the job's root."""
    current = trace.get_current_span()
    ids = job_trace(job_id)
    inside = current.get_span_context().trace_id == ids.trace_id
    return trace.set_span_in_context(current if inside else NonRecordingSpan(ids.root), Context())


def _links(job_id: str, given: Sequence[SpanContext]) -> list[Link]:
    current = trace.get_current_span().get_span_context()
    elsewhere = current.is_valid and current.trace_id != job_trace(job_id).trace_id
    return [Link(context) for context in (*((current,) if elsewhere else ()), *given)]

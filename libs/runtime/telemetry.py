"""Traces, metrics and logs of one process, in one object that the composition root makes.

A job's trace is that of the request that asked for it. The first event holds the request's span, so each process that
has folded the job has the parent of all that is done for it, in whatever process and however many days later:

    the client's span ─► POST /v1/jobs ─► accept ─► reserve, append queued
                          └── scheduler: decide dispatched
                               └── worker: process … ─► claim
                                    ├── attempt ─► stage code ─► wait for slots, chat, command
                                    └── notifier: deliver, call webhook   (of whichever event it is)

Owns the ids, the names of spans and the providers. Refuses global providers (four services fit into one test) and
names with an id in them: a name is one of few.
"""

import asyncio
import hashlib
import re
import secrets
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TextIO

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    NoOpTracer,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    TraceState,
)
from prometheus_client import CollectorRegistry, generate_latest

from headgate_contracts import Job
from libs.runtime import exporting
from libs.runtime.logs import Logs, OtlpLogs, about_job, json_lines
from libs.runtime.spans import Attributes, begun, lent_tracer

LAST_EXPORT_S: Final = 3.0  # for all that is left; a receiver that is away must not keep a process from ending
FLAGS: Final = TraceFlags(TraceFlags.SAMPLED | TraceFlags.RANDOM_TRACE_ID)  # a hash is as even as a random number

STATE_CHARACTERS: Final = 512  # of a tracestate, as the first event takes it


@dataclass(frozen=True, slots=True)
class JobTrace:
    """The span that is the parent of all that is done for a job."""

    root: SpanContext

    @property
    def debug_id(self) -> str:
        return trace.format_trace_id(self.root.trace_id)

    @property
    def header(self) -> str:
        return _header(self.root)


def job_trace(job: Job) -> JobTrace:
    """As its first event says; of a job whose writer said nothing, ids that follow from its own."""
    asked = job.submission
    for context in linked(asked.traceparent, asked.tracestate):
        return JobTrace(context)
    digest = hashlib.sha256(f"headgate job {job.id}".encode()).digest()
    trace_id, span_id = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:24], "big")
    return JobTrace(SpanContext(trace_id, span_id, is_remote=True, trace_flags=FLAGS))


def request_trace() -> dict[str, str | None]:
    """What a job's first event holds of the request that is being answered; a new trace where none is recorded."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        context = SpanContext(secrets.randbits(128) | 1, secrets.randbits(64) | 1, is_remote=False, trace_flags=FLAGS)
    return {"traceparent": _header(context), "tracestate": _tracestate()}


@contextmanager
def job_context(job: Job) -> Generator[None]:
    """All that is done inside is about the job: log lines carry both ids, spans are of the job's trace."""
    with carried_context(job.id, job_trace(job).header):
        yield


@contextmanager
def carried_context(job_id: str, header: str | None, *, state: str | None = None) -> Generator[None]:
    """The same where an event of the job is there, with what it carries on, and not the job."""
    parents = linked(header, state)
    with about_job(job_id), trace.use_span(NonRecordingSpan(parents[0])) if parents else nullcontext():
        yield


@contextmanager
def job_parts(parts: Iterable[tuple[str, Job]]) -> Generator[list[str | None]]:
    """A span for each, in the trace of its own job: what the messages carry on that are sent inside."""
    spans = [
        lent_tracer().start_span(
            name, context=_parent(job, None), links=_links(job), attributes={"headgate.job.id": job.id}
        )
        for name, job in parts
    ]
    try:
        yield [traceparent(span.get_span_context()) for span in spans]
    finally:
        for span in spans:
            span.end()


def current_debug_id() -> str:
    """The id of the trace in which this is asked; outside any, one that stands in nothing but the log."""
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else secrets.token_hex(16)


def traceparent(context: SpanContext | None = None) -> str | None:
    """What a message carries on (W3C): the span given, or the current one. Null where there is none."""
    context = context or trace.get_current_span().get_span_context()
    return _header(context) if context.is_valid else None


def trace_headers() -> dict[str, str]:
    """Both headers (W3C), as far as there is something to carry on."""
    told = {"traceparent": traceparent(), "tracestate": _tracestate()}
    return {name: value for name, value in told.items() if value is not None}


def _tracestate() -> str | None:
    """Null where there is none, or more than is kept."""
    state = trace.get_current_span().get_span_context().trace_state.to_header()
    return state if 0 < len(state) <= STATE_CHARACTERS else None


def _header(context: SpanContext) -> str:
    ids = f"{trace.format_trace_id(context.trace_id)}-{trace.format_span_id(context.span_id)}"
    return f"00-{ids}-{context.trace_flags:02x}"


def linked(header: str | None, state: str | None = None) -> tuple[SpanContext, ...]:
    """The span that a message came from; none where it says nothing that can be read. `state` is its tracestate."""
    match = re.fullmatch(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", header or "")
    if match is None:
        return ()
    flags = TraceFlags(int(match[3], 16))
    kept = TraceState.from_header([state]) if state else None
    context = SpanContext(int(match[1], 16), int(match[2], 16), is_remote=True, trace_flags=flags, trace_state=kept)
    return (context,) if context.is_valid else ()


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
        processors = (*span_processors, *exporting.span_processors())
        made = TracerProvider if processors or exporting.has_sampler() else Unrecorded
        self.tracer_provider = made(resource=resource, shutdown_on_exit=False)
        for processor in (_QueryNames(), *processors):
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
        job: Job,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        cause: SpanContext | None = None,
        attributes: Attributes | None = None,
    ) -> Generator[Span]:
        """A span of the job's trace; log lines inside carry its id. `cause` is the span of that trace whose child it
        is, else the current one, else the request's. Inside another trace it links to the span there."""
        with (
            about_job(job.id),
            begun(
                self.tracer,
                _one_of_few(name, job.id),
                context=_parent(job, cause),
                kind=kind,
                links=_links(job),
                attributes={"headgate.job.id": job.id, **(attributes or {})},
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
        parent: str | None = None,
        state: str | None = None,
    ) -> Generator[Span]:
        """A message sent or handled. `template` is the subject with names in braces for what differs, `parent` and
        `state` what a message about this job carried on."""
        attributes = {
            "messaging.system": "nats",
            "messaging.operation.name": operation,
            "messaging.destination.template": template,
        }
        kind = SpanKind.PRODUCER if operation == "publish" else SpanKind.CONSUMER
        about = nullcontext() if job_id is None else carried_context(job_id, parent, state=state)
        with about, begun(self.tracer, f"{operation} {template}", kind=kind, attributes=attributes) as span:
            if job_id is not None:
                span.set_attribute("headgate.job.id", job_id)
            yield span

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
            with suppress(RuntimeError):  # the loop is gone: nothing waits any more
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


class Unrecorded(TracerProvider):
    """The provider of a process that sends no spans: a trace goes through it, under the ids that recorded spans would
    have, and nothing is kept of what they are told. A job has some fifteen of them."""

    def get_tracer(self, *_: Any, **__: Any) -> Tracer:
        return _UnrecordedTracer()


class _UnrecordedTracer(NoOpTracer):
    """Makes spans that are a context and nothing else."""

    _ids: Final = RandomIdGenerator()

    def start_span(self, name: str, context: Context | None = None, *_: Any, **__: Any) -> Span:
        parent, span_id = trace.get_current_span(context).get_span_context(), self._ids.generate_span_id()
        if not parent.is_valid:
            return NonRecordingSpan(SpanContext(self._ids.generate_trace_id(), span_id, False, FLAGS))
        return NonRecordingSpan(SpanContext(parent.trace_id, span_id, False, parent.trace_flags, parent.trace_state))


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


def _parent(job: Job, cause: SpanContext | None) -> Context:
    """What caused it, or the current span, where they belong to the job's trace; else the job's request."""
    current, root = trace.get_current_span(), job_trace(job).root
    if cause is not None and cause.trace_id == root.trace_id:
        kept = SpanContext(cause.trace_id, cause.span_id, True, cause.trace_flags, root.trace_state)
        return trace.set_span_in_context(NonRecordingSpan(kept), Context())
    inside = current.get_span_context().trace_id == root.trace_id
    return trace.set_span_in_context(current if inside else NonRecordingSpan(root), Context())


def _links(job: Job) -> list[Link]:
    current = trace.get_current_span().get_span_context()
    elsewhere = current.is_valid and current.trace_id != job_trace(job).root.trace_id
    return [Link(current)] if elsewhere else []

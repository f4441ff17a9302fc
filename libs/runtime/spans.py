"""Spans inside the one that is current, for code that has no telemetry in its hands.

Owns whose tracer makes them: what begins a job's span or a message's lends its own to all that runs inside. Outside
of one nothing is recorded. Refuses to export what an exception says, as its words may hold a prompt or a token: its
type has to do, and what a user is told is set by who knows it.
"""

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import INVALID_SPAN, Link, NoOpTracer, Span, SpanKind, StatusCode, Tracer

from libs.runtime.terminal import without_credentials

Attributes = Mapping[str, str | int | float | bool | Sequence[str]]

_lent: ContextVar[Tracer | None] = ContextVar("tracer", default=None)


@contextmanager
def lent(tracer: Tracer) -> Generator[None]:
    """What is begun inside is recorded by this tracer, tasks too."""
    token = _lent.set(tracer)
    try:
        yield
    finally:
        _lent.reset(token)


@contextmanager
def begun(
    tracer: Tracer,
    name: str,
    *,
    context: Context | None = None,
    kind: SpanKind = SpanKind.INTERNAL,
    links: Sequence[Link] = (),
    attributes: Attributes | None = None,
) -> Generator[Span]:
    """A span of this tracer, which is lent to what runs inside."""
    span = tracer.start_span(name, context=context, kind=kind, links=links, attributes=attributes)
    lending, inside = _lent.set(tracer), attach(trace.set_span_in_context(span))
    try:
        yield span
    except Exception as fault:
        span.set_attribute("error.type", type(fault).__qualname__)
        span.set_status(StatusCode.ERROR, type(fault).__qualname__)
        raise
    finally:
        detach(inside)
        _lent.reset(lending)
        span.end()


def step(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    links: Sequence[Link] = (),
) -> AbstractContextManager[Span]:
    """A part of what is recorded here."""
    tracer = _lent.get()
    if tracer is None:
        return nullcontext(INVALID_SPAN)
    return begun(tracer, name, kind=kind, links=links, attributes=attributes)


def passed(
    name: str,
    attributes: Attributes,
    *,
    took_s: float,
    kind: SpanKind = SpanKind.INTERNAL,
    wrong: str | None = None,
) -> None:
    """A part of what is recorded here that is over by now, and was done elsewhere."""
    now_ns = time.time_ns()
    span = lent_tracer().start_span(name, kind=kind, attributes=attributes, start_time=now_ns - round(took_s * 1e9))
    if wrong is not None:
        mark(wrong, span)
    span.end(now_ns)


def lent_tracer() -> Tracer:
    """Outside of all that is recorded, one that records nothing."""
    return _lent.get() or NoOpTracer()


def mark(wrong: str, span: Span | None = None) -> None:
    """The span, or the current one, failed: in words that may be shown."""
    (span or trace.get_current_span()).set_status(StatusCode.ERROR, without_credentials(wrong))

"""The trace that a command belongs to, on its way through NATS: the W3C headers, and the span they name as the current
one where it is handled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from faststream import BaseMiddleware
from faststream.message import StreamMessage
from faststream.nats.response import NatsPublishCommand
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan

from libs.runtime.telemetry import linked, trace_headers


class CarriedTrace(BaseMiddleware[NatsPublishCommand, Any]):
    """Of each message that is said in a span. Others, like heartbeats, carry nothing."""

    async def publish_scope(
        self, call_next: Callable[[NatsPublishCommand], Awaitable[Any]], cmd: NatsPublishCommand
    ) -> Any:
        cmd.add_headers(trace_headers())
        return await call_next(cmd)

    async def consume_scope(
        self, call_next: Callable[[StreamMessage[Any]], Awaitable[Any]], msg: StreamMessage[Any]
    ) -> Any:
        for cause in linked(msg.headers.get("traceparent"), msg.headers.get("tracestate")):
            with trace.use_span(NonRecordingSpan(cause)):
                return await call_next(msg)
        return await call_next(msg)

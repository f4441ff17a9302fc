"""The connection for what is said and not kept: commands, positions, lines. FastStream's, apart from the log's, so that
an append that is being settled never delays a heartbeat.

While a server is away that is one line in the log, not one an attempt; nothing is sent late.
"""

import logging
from collections.abc import Awaitable, Callable
from ssl import SSLContext
from typing import Any, Final

from faststream import BaseMiddleware
from faststream.exceptions import FastStreamException
from faststream.message import StreamMessage
from faststream.nats import NatsBroker
from faststream.nats.response import NatsPublishCommand
from faststream.nats.security import NatsSecurity
from nats.errors import Error as NatsError
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan

from libs.eventlog import inbox_prefix
from libs.runtime.telemetry import linked, trace_headers

logger = logging.getLogger(__name__)

AWAY: Final = (NatsError, FastStreamException, TimeoutError, OSError)  # nobody can be told, or asked, at the moment


def live_broker(url: str, *, name: str, tls: SSLContext | None = None) -> NatsBroker:
    """It comes back by itself."""
    return NatsBroker(
        url,
        error_cb=_Complaints(name).log,
        name=name,
        inbox_prefix=inbox_prefix(url),
        pending_size=0,
        max_reconnect_attempts=-1,
        reconnect_time_wait=1,
        ping_interval=5,
        graceful_timeout=2,
        logger=None,
        middlewares=[CarriedTrace],
        security=None if tls is None else NatsSecurity(ssl_context=tls, tls_handshake_first=True),
    )


async def hang_up(broker: NatsBroker) -> None:
    """The end of the connection, also of one that is being sought again: there is nothing to drain then."""
    try:
        await broker.stop()
    except NatsError:
        await broker.connection.close()


class _Complaints:
    """What the client says by itself."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = ""

    async def log(self, error: Exception) -> None:
        words = str(error) or type(error).__name__
        if words != self._last:
            logger.warning("NATS connection %s: %s", self._name, words)
        self._last = words


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

"""The connection for what is said and not kept: commands, positions, lines. FastStream's, apart from the log's, so that
an append that is being settled never delays a heartbeat.

While a server is away that is one line in the log, not one an attempt; nothing is sent late.
"""

from __future__ import annotations

import logging
from ssl import SSLContext
from typing import Final

from faststream.exceptions import FastStreamException
from faststream.nats import NatsBroker
from faststream.nats.security import NatsSecurity
from nats.errors import Error as NatsError

from libs.eventlog import inbox_prefix
from libs.foundation.carrying import CarriedTrace

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

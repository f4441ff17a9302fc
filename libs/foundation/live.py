"""The connection for what is said and not kept: commands, positions, lines. FastStream's, apart from the log's, so that
an append that is being settled never delays a heartbeat."""

from __future__ import annotations

from typing import Final

from faststream.exceptions import FastStreamException
from faststream.nats import NatsBroker
from nats.errors import Error as NatsError

from libs.eventlog import inbox_prefix

AWAY: Final = (NatsError, FastStreamException, TimeoutError, OSError)  # nobody can be told, or asked, at the moment


def live_broker(url: str, *, name: str) -> NatsBroker:
    """It comes back by itself, and sends nothing late."""
    return NatsBroker(
        url,
        name=name,
        inbox_prefix=inbox_prefix(url),
        pending_size=0,
        max_reconnect_attempts=-1,
        reconnect_time_wait=1,
        ping_interval=5,
        graceful_timeout=2,
        logger=None,
    )

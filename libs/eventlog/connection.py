"""A connection to NATS with the options that Headgate needs, and the reasons for them.

Refuses to hide an outage: while there is no connection, a publish fails at once, instead of lying in a buffer and being
sent minutes later, to a log in which everything has changed.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from ssl import SSLContext
from typing import Final
from urllib.parse import urlsplit

from nats.aio.client import Client

from libs.eventlog.edge import translated
from libs.eventlog.errors import LogUnavailable

CONNECT_WITHIN_S = 10.0
SHARED_INBOXES: Final = "_INBOX"
_USER: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_log = logging.getLogger(__name__)


async def connect(
    servers: str | Sequence[str], *, name: str, within_s: float = CONNECT_WITHIN_S, tls: SSLContext | None = None
) -> Client:
    """A connection that comes back by itself as long as the process lives. `LogUnavailable` if it never comes about.

    With `tls` nothing is said or heard before the handshake: by default nats-py speaks TLS only where the server asks
    for it in the clear, and a machine in between could leave that out and be sent the password.
    """
    client, urls = Client(), [servers] if isinstance(servers, str) else list(servers)
    watch = _Watch(client, name)
    try:
        with translated(name):
            async with asyncio.timeout(within_s):
                await client.connect(
                    urls,
                    name=name,
                    inbox_prefix=inbox_prefix(urls[0]),
                    pending_size=0,  # no buffer while there is no connection
                    max_reconnect_attempts=-1,  # after 60, the default, the client would be closed for good
                    reconnect_time_wait=0.2,  # pyright: ignore[reportArgumentType] - it may be a fraction
                    ping_interval=5,  # by default 120 s: a dead connection would be believed for minutes
                    max_outstanding_pings=2,
                    connect_timeout=2,
                    tls=tls,
                    tls_handshake_first=tls is not None,
                    error_cb=watch.failed,
                    disconnected_cb=watch.disconnected,
                    reconnected_cb=watch.reconnected,
                )
    except LogUnavailable:
        await client.close()
        reason = f"no connection within {within_s:g} s, the last attempt ended with: {watch.last_words}"
        raise LogUnavailable(reason=reason) from None
    return client


def inbox_prefix(url: str) -> str:
    """Where answers to this URL's user go: a place of its own, so that no other user need be allowed to hear them."""
    user = urlsplit(url).username
    return f"{SHARED_INBOXES}_{user}" if user and _USER.fullmatch(user) else SHARED_INBOXES


class _Watch:
    """Writes down what becomes of a connection. While it is down, that is one line and not one an attempt."""

    def __init__(self, client: Client, name: str) -> None:
        self.last_words = "nothing"
        self._client = client
        self._name = name

    async def failed(self, error: Exception) -> None:
        words = str(error) or type(error).__name__
        if words != self.last_words:
            _log.warning("NATS connection %s: %s", self._name, words)
        self.last_words = words

    async def disconnected(self) -> None:
        if not self._client.is_closed:
            _log.warning("NATS connection %s is lost", self._name)

    async def reconnected(self) -> None:
        self.last_words = "nothing"
        _log.warning("NATS connection %s is back", self._name)

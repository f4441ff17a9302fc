"""What the kernel lets a process have open, and what it holds for a client that does not read, and for how long.

By itself it takes megabytes for each, tells a process nothing, and asks a client that is gone without a word for a
quarter of an hour. Owns the options that say otherwise; where a kernel lacks one, it is left out.
"""

import asyncio
import resource
import socket
from contextlib import suppress
from typing import Final

UNREAD_BYTES: Final = 64 * 1024  # the kernel doubles it for its own books
INTERNET: Final = (socket.AF_INET, socket.AF_INET6)


def allow_all_descriptors() -> None:
    """As many as the machine lets it have. By itself it has what a shell gives, often 1,024; each stream takes one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS says that there is no limit, and then refuses to be taken at its word
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limit_unread(connection: asyncio.BaseTransport, *, within_s: float) -> None:
    """From now on little is held, and a client that acknowledges or takes nothing for so long is cut off."""
    its: socket.socket | None = connection.get_extra_info("socket")
    if its is None or its.family not in INTERNET:
        return
    its.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        its.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(within_s * 1000))

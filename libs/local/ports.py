"""Free ports on this machine's loopback address, for servers that must come back on the same one.

Ports are taken from below the range that the kernel gives to outgoing connections (32768 on Linux, 49152 on macOS):
while a server is down, no client's connection can sit on its port and keep it from coming back. For the same reason
the servers do not choose for themselves (`-p -1`).

A port is claimed from its choice on, so that no other process that chooses here can take it before its server listens,
or while that server is down: byte N of one file per user is locked for port N, and the kernel lets go of it when the
process ends. Others do not know of the file: a caller that starts a server must be ready for PortTaken and ask again.
"""

import fcntl
import itertools
import os
import random
import socket
import tempfile
from collections import deque
from functools import cache
from pathlib import Path
from typing import Final

LOWEST, HIGHEST = 20_000, 32_000
KEPT: Final = 1_000  # claims of one process; an older one is either listened on or no longer needed


def free_ports(count: int) -> list[int]:
    """`count` different ports that are this process's, and on which nobody listens now."""
    first = random.SystemRandom().randrange(LOWEST, HIGHEST)  # forked processes must not agree
    claims, every_port = _claims(), (*range(first, HIGHEST), *range(LOWEST, first))
    return list(itertools.islice((port for port in every_port if is_free(port) and claims.take(port)), count))


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class PortClaims:
    """The claims of this process. Its file is opened once only: closing any descriptor of it ends every lock."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._mine: deque[int] = deque()

    def take(self, port: int) -> bool:
        """False where it is claimed, by another process or by this one: the kernel tells only of others."""
        if port in self._mine:
            return False
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
        self._mine.append(port)
        if len(self._mine) > KEPT:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._mine.popleft())
        return True


@cache  # POSIX's locks belong to the process, and so does this
def _claims() -> PortClaims:
    return PortClaims(Path(tempfile.gettempdir()) / f"headgate-ports-{os.getuid()}")

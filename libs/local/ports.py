"""Free ports on this machine's loopback address, for servers that must come back on the same one.

Ports are taken from below the range that the kernel gives to outgoing connections (32768 on Linux, 49152 on macOS):
while a server is down, no client's connection can sit on its port and keep it from coming back. For the same reason
the servers do not choose for themselves (`-p -1`). A port is a guess until a server listens on it: whoever starts
one there must be ready to hear PortTaken and ask again.
"""

import itertools
import random
import socket

LOWEST, HIGHEST = 20_000, 32_000


def free_ports(count: int) -> list[int]:
    """`count` different ports on which nobody listens now."""
    every_port = range(LOWEST, HIGHEST)
    shuffled = random.SystemRandom().sample(every_port, k=len(every_port))  # forked processes must not agree
    return list(itertools.islice(filter(is_free, shuffled), count))


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

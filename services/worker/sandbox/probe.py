"""Tries out what the kernel lets this user do. Run as a process of its own: what is tried cannot be undone."""

import json
import os
import sys
from collections.abc import Callable

from services.worker.sandbox import filter, landlock, spaces  # noqa: A004 - says what it is


def main() -> None:
    found = {
        "root": os.getuid() == 0 and _works(lambda: _separate(by_root=True)),
        "user": os.getuid() != 0 and _works(lambda: _separate(by_root=False)),
        "filter": filter.supported() and _works(lambda: filter.install(network="none")),
        "landlock": landlock.version(),
    }
    json.dump(found, sys.stdout)


def _separate(*, by_root: bool) -> None:
    spaces.separate(by_root=by_root, network=False)
    spaces.raise_loopback()
    os._exit(0 if _works(lambda: None) else 1)  # the first of the new namespace


def _works(attempt: Callable[[], None]) -> bool:
    """In a child, which is gone afterwards."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            attempt()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0

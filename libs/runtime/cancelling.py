"""A cancellation that nothing on its way may keep.

`asyncio.wait_for` of Python 3.11 returns the result of what it waits for when that is there in the same turn of the
loop as a cancellation, and the cancellation is gone: a loop that was told to end goes on, and whoever waits for its end
waits for ever. nats-py calls it inside every request. Our own code uses `asyncio.timeout`, which has no such moment.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def cancellable() -> Generator[None]:
    """Around what may keep a cancellation: one that came meanwhile is raised here, whatever else came of it."""
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()  # what cleans up after a cancellation may ask questions of its own
    try:
        yield
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError

"""Waiting for something that another process or task does, without a guess at how long it takes, and without keeping a
cancellation from the task that waits.

Owns the one polling loop of the project, `eventually`. It is for the outside world (a server that starts, a leader that
is elected) and for tests; code of the services waits for messages, futures and the clock, never for this.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar, cast

Result = TypeVar("Result")

PATIENCE_S: Final = 60.0  # a machine under full load; it costs nothing where the answer comes


async def eventually(
    check: Callable[[], Result | Awaitable[Result]], *, within_s: float = PATIENCE_S, every_s: float = 0.01
) -> Result:
    """Calls `check` until its answer is true and gives that answer back.

    A false answer or an AssertionError means "not yet"; any other exception is a fault and passes through at once.
    After `within_s` the last AssertionError is raised, or one that shows the last answer.
    """
    give_up_at = time.monotonic() + within_s
    while True:
        failure: AssertionError | None = None
        answer: Result | None = None
        try:
            answer = await _called(check)
        except AssertionError as not_yet:
            failure = not_yet
        if answer:
            return answer
        if time.monotonic() >= give_up_at:
            raise failure or AssertionError(f"still {answer!r} after {within_s} s")
        await asyncio.sleep(every_s)


async def _called(check: Callable[[], Result | Awaitable[Result]]) -> Result:
    answer = check()
    if isinstance(answer, Awaitable):
        return await cast("Awaitable[Result]", answer)
    return cast("Result", answer)


@contextmanager
def cancellable() -> Generator[None]:
    """Around what may keep a cancellation: one that came meanwhile is raised here, whatever else came of it.

    `asyncio.wait_for` of Python 3.11 returns the result of what it waits for when that is there in the same turn of the
    loop as a cancellation, and the cancellation is gone: a loop that was told to end goes on, and what waits for its
    end waits for ever. nats-py calls it inside every request. Our own code uses `asyncio.timeout`, which has no such
    moment.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()  # what cleans up after a cancellation may ask questions of its own
    try:
        yield
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError

"""How a program of another queue is told to submit, and tells that a job has begun. The standard library alone: it runs
in environments that have nothing of ours.

A client is told `FIRST COUNT` on stdin, submits these numbers one after the other, and answers `BEGUN ENDED` in
nanoseconds. A job is its number, and all that it does is to write it with the moment into the pipe BENCH_STARTS.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from functools import cache

URL = os.environ.get("BENCH_URL", "")
SYNCED = os.environ.get("BENCH_SYNCED") == "yes"


def started(number: int) -> None:
    """In a job: the moment in which it runs. A line this short is written whole, also beside other writers."""
    os.write(_pipe(), f"{number} {time.time_ns()}\n".encode())


@cache
def _pipe() -> int:
    return os.open(os.environ["BENCH_STARTS"], os.O_WRONLY)


def serve(submit: Callable[[int], object]) -> None:
    """A client that blocks."""
    for line in sys.stdin:
        numbers, begun = _numbers(line), time.time_ns()
        for number in numbers:
            submit(number)
        _answer(begun)


async def serve_async(submit: Callable[[int], Awaitable[object]]) -> None:
    """A client with a loop."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        numbers, begun = _numbers(line), time.time_ns()
        for number in numbers:
            await submit(number)
        _answer(begun)


def _numbers(line: str) -> range:
    first, count = map(int, line.split())
    return range(first, first + count)


def _answer(begun: int) -> None:
    sys.stdout.write(f"{begun} {time.time_ns()}\n")
    sys.stdout.flush()

"""The moment in which `asyncio.wait_for` keeps a cancellation for itself."""

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import pytest

from libs.eventlog.edge import translated
from libs.runtime.eventually import cancellable

Around = Callable[[], AbstractContextManager[None]]


@contextmanager
def nothing() -> Generator[None]:
    yield


async def cancelled_as_the_answer_comes(around: Around, *, fault: Exception | None = None) -> asyncio.Task[str]:
    """A loop that hears its answer and its end in one turn, when it is over or has gone on."""
    answer = asyncio.get_running_loop().create_future()
    went_on = asyncio.Event()

    async def ask() -> str:
        with around():
            await asyncio.wait_for(answer, 60)  # as nats-py does
        went_on.set()
        return "went on"

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    if fault is None:
        answer.set_result(None)
    else:
        answer.set_exception(fault)
    asking.cancel()
    await asyncio.wait([asking])
    return asking


async def test_without_it_a_cancelled_task_goes_on_up_to_python_3_11() -> None:
    """Python 3.12 has mended it: `cancellable` can go together with 3.11."""
    asking = await cancelled_as_the_answer_comes(nothing)

    assert asking.cancelled() == (sys.version_info >= (3, 12))


@pytest.mark.parametrize("around", [cancellable, lambda: translated("JOBS")], ids=["plain", "an edge of the log"])
@pytest.mark.parametrize("fault", [None, TimeoutError(), OSError()], ids=["answered", "too late", "cut off"])
async def test_with_it_the_task_ends(around: Around, fault: Exception | None) -> None:
    asking = await cancelled_as_the_answer_comes(around, fault=fault)

    assert asking.cancelled()


async def test_what_cleans_up_after_a_cancellation_may_ask() -> None:
    async def ask() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            with cancellable():
                await asyncio.sleep(0)
            cleaned.append("up")
        return "not reached"

    cleaned = list[str]()
    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])

    assert (cleaned, asking.cancelled()) == (["up"], True)


async def test_timeouts_stay_timeouts() -> None:
    async def wait(*, inside: float | None = None, outside: float | None = None) -> None:
        async with asyncio.timeout(outside):
            with cancellable():
                async with asyncio.timeout(inside):
                    await asyncio.Event().wait()

    for bounds in ({"inside": 0}, {"outside": 0}):
        with pytest.raises(TimeoutError):
            await wait(**bounds)

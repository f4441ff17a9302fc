"""What blocks, beside the loop: in threads that nobody waits for at the end, as Ctrl-C must not wait for their answer.

Refuses to cancel anything: a thread whose outcome nobody wants any more ends with that, or with the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Piece(Generic[T]):
    """One of what a source gives."""

    source: int
    value: T


@dataclass(frozen=True, slots=True)
class _End:
    """Of a source, and the fault that ended it."""

    fault: Exception | None = None


async def in_background(work: Callable[[], T]) -> T:
    """What comes of it."""
    [outcome] = [outcome async for _, outcome in merged([_once(work)])]
    return outcome


async def merged(sources: Sequence[Iterable[T]]) -> AsyncGenerator[tuple[int, T]]:
    """What all sources give, as soon as it is there, each piece with the number of its source; or the first fault."""
    loop, heard = asyncio.get_running_loop(), asyncio.Queue[_Piece[T] | _End]()

    def tell(said: _Piece[T] | _End) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody wants it any more
            loop.call_soon_threadsafe(heard.put_nowait, said)

    for number, source in enumerate(sources):
        threading.Thread(target=_read, args=(number, source, tell), daemon=True).start()
    open_sources = len(sources)
    while open_sources:
        match await heard.get():
            case _Piece(number, value):
                yield number, value
            case _End(fault):
                if fault is not None:
                    raise fault
                open_sources -= 1


def _read(number: int, source: Iterable[T], tell: Callable[[_Piece[T] | _End], None]) -> None:
    try:
        for value in source:
            tell(_Piece(number, value))
    except Exception as fault:  # noqa: BLE001 - it is raised where the pieces are read
        tell(_End(fault))
    else:
        tell(_End())


def _once(work: Callable[[], T]) -> Iterator[T]:
    yield work()

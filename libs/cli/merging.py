"""Several streams read as one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
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


async def merged(sources: Sequence[AsyncIterable[T]]) -> AsyncGenerator[tuple[int, T]]:
    """What all sources give, as soon as it is there, each piece with the number of its source; or the first fault."""
    heard = asyncio.Queue[_Piece[T] | _End]()
    readers = [asyncio.create_task(_read(number, source, heard)) for number, source in enumerate(sources)]
    open_sources = len(sources)
    try:
        while open_sources:
            match await heard.get():
                case _Piece(number, value):
                    yield number, value
                case _End(fault):
                    if fault is not None:
                        raise fault
                    open_sources -= 1
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def _read(number: int, source: AsyncIterable[T], heard: asyncio.Queue[_Piece[T] | _End]) -> None:
    try:
        async for value in source:
            heard.put_nowait(_Piece(number, value))
    except Exception as fault:  # noqa: BLE001 - it is raised where the pieces are read
        heard.put_nowait(_End(fault))
    else:
        heard.put_nowait(_End())

"""Removes what older generations of a view have left.

Nothing reads those keys, so this is about memory alone and may be late. Owns one task, which ends by itself; `start`
and `stop` may be called at any time. Refuses to touch the current generation: it asks which that is after it has seen
the keys, so a generation begun meanwhile is safe.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Final, cast

from redis.asyncio import Redis

from libs.capacity.errors import ViewError
from libs.capacity.keys import every_key, generation_of, view_key
from libs.capacity.store_errors import translated

BATCH: Final = 500  # keys in one step, so that the server is held for well under a millisecond

log = logging.getLogger(__name__)


class GenerationCleaner:
    """Cleans one shard, in the background."""

    def __init__(self, client: Redis, *, shard: str) -> None:
        self._client = cast(Any, client)
        self._shard = shard
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """A generation has become old. What a run under way may have passed by already is left to another run."""
        self._wanted.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._clean_while_wanted(), name=f"clean view {self._shard}")

    async def stop(self) -> None:
        """What is left over is removed when the next generation begins."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def wait(self) -> None:
        """Until there is nothing left to do."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _clean_while_wanted(self) -> None:
        while self._wanted.is_set():
            self._wanted.clear()
            try:
                with translated():
                    await self._clean()
            except ViewError as error:
                log.warning("old generations of view %s are left until the next one begins: %s", self._shard, error)

    async def _clean(self) -> None:
        async for names in self._batches():
            current = await self._client.hget(view_key(self._shard), "generation")
            if current is None:
                return
            old = [name for name in names if generation_of(name) not in (None, current)]
            if old:
                await self._client.unlink(*old)

    async def _batches(self) -> AsyncIterator[list[str]]:
        names: list[str] = []
        async for name in self._client.scan_iter(match=every_key(self._shard), count=BATCH):
            names.append(name)
            if len(names) == BATCH:
                yield names
                names = []
        yield names

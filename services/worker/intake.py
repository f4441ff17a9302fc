"""How a worker comes by work: one open request to the pool while a slot is free, and an attempt for what comes.

    slot free ─► its turn ─► room ─► dispatch ─► serve: it is claimed and run, or dropped ─► slot free

The server answers requests in the order in which they came. With one from each worker that is round by round; with one
from each slot a worker would be filled before the next got anything, and to take it away would move all that there is.

Owns the slots. What an attempt is does not concern them: they are given what serves a dispatch.
"""

import asyncio
from collections.abc import Awaitable, Callable

from libs.eventlog.ports import Dispatch, Dispatches


class Intake:
    """The slots of a worker. Each waits for its turn, for room and a dispatch, and for the attempt that it became."""

    name = "intake"

    def __init__(
        self,
        dispatches: Dispatches,
        serve: Callable[[Dispatch], asyncio.Task[None]],
        *,
        slots: int,
        room: Callable[[], Awaitable[None]],
    ) -> None:
        self._dispatches = dispatches
        self._serve = serve
        self._room = room
        self._slots = slots
        self._turn = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._slot(), name=f"slot {number}") for number in range(self._slots)]

    async def stop(self) -> None:
        """Take nothing new. What was taken goes on: it is not the slot's."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def ended(self) -> None:
        """A slot ends by a fault alone, and raises it."""
        if not self._tasks:
            return
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            if not task.cancelled():
                task.result()

    async def _slot(self) -> None:
        while True:
            async with self._turn:
                await self._room()
                dispatch = await self._dispatches.next()
            await asyncio.shield(self._serve(dispatch))

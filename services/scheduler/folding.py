"""The fold of a turn into the view, beside what the turn decides: a plan needs the ledger alone.

    take ──► fold into the view ───────────────┐
       └───► plan ──► commit                   ├──► the next turn
               └── asks the view? waits here ──┘

Owns the wait: before the view is asked anything, and at the end of the turn. Refuses to fold: its caller says how.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing
from typing import Any


class Folding:
    """The task in which one replica folds a turn's records into the view."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def beside(self, fold: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
        """It has ended when this does, which raises what it has raised. It begins one turn of the event loop late: what
        is decided without a question is on its way into the log before the first row is made."""
        with closing(fold):  # also where its task is cancelled before it has begun
            task = self._task = asyncio.create_task(_late(fold))
            try:
                yield
            finally:
                self._task = None
                await task

    async def over(self) -> None:
        """The view has all that was taken. Raises what the fold has raised: then nothing is to be asked."""
        if self._task is not None:
            await asyncio.shield(self._task)


async def _late(fold: Coroutine[Any, Any, None]) -> None:
    await asyncio.sleep(0)
    await fold

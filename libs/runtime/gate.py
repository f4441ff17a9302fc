"""What a request passes before any route sees it: a gate that is open while the service can serve.

Refuses to look into a request: who asks and for what is for the routes.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from libs.runtime.problems import Problem

logger = logging.getLogger(__name__)

DRAIN_S: Final = 5.0
OPENS_WITHIN_S: Final = 10.0  # as long as a gateway waits for a service that does not listen yet
MOST_WAITING: Final = 1_000
CLOSED: Final = Problem(
    status=503,
    slug="unavailable",
    title="Not now",
    detail="This replica is starting or stopping. Try again.",
    retry_after_s=1,
    headers={"Connection": "close"},  # so that the next attempt may reach another one
)


class Gate:
    """Lets requests through between `start` and `stop`. Streams watch `draining`.

    What comes before `start` waits for it: nothing of it has been done, so a restart is a pause to its clients.
    """

    name = "gate"

    def __init__(self, *, patience_s: float = DRAIN_S, opens_within_s: float = OPENS_WITHIN_S) -> None:
        self.draining = asyncio.Event()
        self.is_open = False
        self._patience_s = patience_s
        self._opens_within_s = opens_within_s
        self._inside: set[asyncio.Task[Any]] = set()
        self._left = asyncio.Event()  # somebody has
        self._waiting = 0
        self._decided = asyncio.Event()  # that it opens, or that it never will

    async def start(self) -> None:
        self.draining.clear()
        self.is_open = True
        self._decided.set()

    async def stop(self) -> None:
        """Until every request has ended; those that take longer than the patience are cut off."""
        self.is_open = False
        self.draining.set()
        self._decided.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                await self._until_empty()
        for late in self._inside:
            logger.warning("a request was cut off: it ran on for %s s", self._patience_s)
            late.cancel()

    async def opens(self) -> bool:
        """Whether it is open, or will be in a moment. Closed again it stays closed."""
        if not (self.is_open or self._decided.is_set()) and self._waiting < MOST_WAITING:
            self._waiting += 1
            try:
                async with asyncio.timeout(self._opens_within_s):
                    await self._decided.wait()
            except TimeoutError:
                pass
            finally:
                self._waiting -= 1
        return self.is_open

    @contextmanager
    def inside(self) -> Generator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._inside.add(task)
        try:
            yield
        finally:
            self._inside.discard(task)
            self._left.set()

    async def _until_empty(self) -> None:
        while self._inside:
            self._left.clear()
            await self._left.wait()


class Gated:
    """Refuses what comes while the gate is closed and does not open soon."""

    def __init__(self, app: ASGIApp, *, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if await self._gate.opens():
            with self._gate.inside():
                await self._app(scope, receive, send)
        else:
            await CLOSED.response()(scope, receive, send)

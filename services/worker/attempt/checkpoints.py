"""A job's work between two stages: in the object store first, then named by the next event, then the one before goes.

    stage ends ─► packed by its process ─► stored here as <job>-<attempt>-<n> ─► `stage` names it ─► n-1 is deleted
                                                                                    │ given back, confirmed, tried again
    another worker ◄─ unpacked by its process ◄─ fetched here ◄────────────────────┘

Owns those names and when one of them is not needed any more. The newest few small ones of an attempt stay until some
time after the job's end, so that it can be run again from the stages that began with them (policy). A name is never
used twice, so a worker that was given up can put nothing in the place of what a later attempt has stored. What is
stored and never named (its worker died in between) is found by its name and deleted with all else of the job, after its
end.
"""

import asyncio
import logging
from collections import deque
from typing import Final

from headgate_contracts import Job
from libs.eventlog import LogError
from libs.eventlog.ports import Objects
from libs.policy import Retention
from libs.runtime.clock import Clock
from services.worker.attempt.patience import insist
from services.worker.domain import checkpoint_name, superseded

logger = logging.getLogger(__name__)

FORGOTTEN_WITHIN_S: Final = 1.0


class Shelf:
    """The workspaces of all attempts of a worker."""

    def __init__(self, bucket: Objects, clock: Clock) -> None:
        self._bucket = bucket
        self._clock = clock
        self._forgetting: set[asyncio.Task[None]] = set()

    async def put(self, name: str, content: bytes) -> None:
        await insist(lambda: self._bucket.put(name, content), self._clock, about=f"workspace {name}")

    async def get(self, name: str) -> bytes | None:
        return await insist(lambda: self._bucket.get(name), self._clock, about=f"workspace {name}")

    def forget(self, name: str) -> None:
        """It is not waited for, and where it fails it is found later."""
        task = asyncio.create_task(self._forget(name), name=f"forget {name}")
        self._forgetting.add(task)
        task.add_done_callback(self._forgetting.discard)

    async def stop(self) -> None:
        """What is being deleted goes, or is left."""
        if self._forgetting:
            _, late = await asyncio.wait(tuple(self._forgetting), timeout=FORGOTTEN_WITHIN_S)
            for task in late:
                task.cancel()

    async def _forget(self, name: str) -> None:
        try:
            await self._bucket.delete(name)
        except LogError as away:
            logger.info("workspace %s is left to retention: %s", name, away)


class Checkpoints:
    """The checkpoints of one attempt."""

    def __init__(self, job: Job, shelf: Shelf, kept: Retention) -> None:
        self.newest: str | None = None  # stored, and in no event yet
        self._kept = kept
        self._sizes: dict[str, int] = {}
        self._earlier: deque[str] = deque()  # which the job needs no more, oldest first
        self._job = job
        self._shelf = shelf
        self._count = 0

    async def fetch(self) -> bytes | None:
        """What the job goes on from; null where it is gone."""
        assert self._job.checkpoint is not None
        content = await self._shelf.get(self._job.checkpoint)
        if content is not None:
            self._sizes[self._job.checkpoint] = len(content)
        return content

    async def keep(self, content: bytes) -> None:
        """Stored when this returns."""
        self._count += 1
        name, before = checkpoint_name(self._job, self._count), self.newest
        await self._shelf.put(name, content)
        self.newest, self._sizes[name] = name, len(content)
        if before is not None:
            self._shelf.forget(before)

    def written(self, job: Job, *, before: str | None) -> None:
        """An event is in the log, and the job with it as it is now: what it does not name is not needed."""
        if self.newest is not None and job.checkpoint != self.newest:
            self._shelf.forget(self.newest)
        self.newest = None
        gone = superseded(before, job)
        if gone is not None:
            for name in self._beyond(gone):
                self._shelf.forget(name)

    def _beyond(self, superseded: str) -> list[str]:
        """Of those that the job needs no more, what is too large or too old to be kept for another run."""
        size = self._sizes.get(superseded)
        if size is None or size > self._kept.stage_workspace_bytes:
            return [superseded]
        self._earlier.append(superseded)
        too_many = max(0, len(self._earlier) - (self._kept.stage_workspaces - 1))
        return [self._earlier.popleft() for _ in range(too_many)]

"""How far the stage of an attempt is, as it says: told at most twice a second, without what looks like a secret.

Owns that pace, whatever the process says. What comes between two words is told with the next one, if nothing newer
has come; nothing waits for it, and what an attempt has not told when it ends is not told.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from headgate_contracts import Job
from headgate_contracts.commands import JobProgress
from libs.eventlog.ports import ProgressBucket
from libs.runtime.clock import Clock
from services.worker.attempt.secrets import Mask
from services.worker.child.messages import Progressed

EVERY_MS: Final = 500


class AttemptProgress:
    """The progress that one attempt reports."""

    def __init__(self, job: Job, out: ProgressBucket, clock: Clock, *, secrets: Iterable[str]) -> None:
        self._job = job
        self._out = out
        self._clock = clock
        self._secrets = tuple(secrets)
        self._newest: JobProgress | None = None
        self._telling: asyncio.Task[None] | None = None

    def show(self, stage: str, said: Progressed) -> None:
        self._newest = JobProgress(
            job_id=self._job.id,
            user_id=self._job.user_id,
            attempt=self._job.attempt,
            stage=stage,
            fraction=said.fraction,
            message=Mask(self._secrets).line(said.message)[:200],
        )
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell(), name=f"progress of {self._job.id}")

    def close(self) -> None:
        if self._telling is not None:
            self._telling.cancel()

    async def _tell(self) -> None:
        while (newest := self._newest) is not None:
            self._newest = None
            await self._out.report(newest)
            await self._clock.sleep_ms(EVERY_MS)

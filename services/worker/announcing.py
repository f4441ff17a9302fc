"""Says which pipelines this worker has, once, when it starts: the bucket keeps it, so that admission knows them.

A worker that cannot say it works nevertheless, and tries again. Refuses to take a word back: a pool that is scaled to
zero still takes jobs in; an operator removes what is not to come back.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from headgate_pipeline.rules import KnownPipeline
from libs.eventlog import LogError
from libs.eventlog.pipelines import AnnouncedPipeline, fitting
from libs.eventlog.ports import PipelineBucket
from libs.runtime.clock import Clock

logger = logging.getLogger(__name__)

AGAIN_MS: Final = 2000


class Announcing:
    """Announces the pipelines of one worker."""

    def __init__(
        self, bucket: PipelineBucket, pipelines: Mapping[str, KnownPipeline], *, pool: str, clock: Clock
    ) -> None:
        self._bucket, self._pool, self._clock = bucket, pool, clock
        self._left = [self._told(name, known) for name, known in sorted(pipelines.items())]

    async def tried(self) -> None:
        """Before the worker is ready: who waits for that may submit at once."""
        try:
            while self._left:
                await self._bucket.announce(self._left[0])
                self._left.pop(0)
        except LogError as fault:
            logger.warning("the pipeline %s is not announced yet: %s", self._left[0].name, fault)

    async def run(self, stopping: asyncio.Event) -> None:
        """Until all of them are told."""
        while self._left and not stopping.is_set():
            await self._clock.sleep_ms(AGAIN_MS)
            await self.tried()

    def _told(self, name: str, known: KnownPipeline) -> AnnouncedPipeline:
        schema = fitting(known.input_schema)
        if known.input_schema is not None and schema is None:
            logger.warning("the input of %s is checked by its stages alone: its schema is too large", name)
        return AnnouncedPipeline(
            name=name,
            pool=self._pool,
            version=known.version,
            titles=known.titles,
            again_at=known.again_at,
            input_schema=schema,
        )

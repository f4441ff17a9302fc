"""The lines of one job on one stream, and up to which of them its client has them.

The lines are in a stream of their own, so they come by another way than the statuses. Where a client begins, and where
its job ends, they are read from there: up to the newest that the leader has, as a copy may lag behind it.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from libs.eventlog import LogUnavailable
from libs.eventlog.lines import Gaps, Line
from libs.eventlog.ports import Lines
from libs.runtime.clock import Clock

SCANS: Final = 20
AGAIN_AFTER_MS: Final = 100


@dataclass(slots=True)
class Said:
    """`heard` is the place of the last line that the client has; 0 where it has none."""

    job_id: str
    lines: Lines
    clock: Clock
    heard: int = 0

    async def rest(self) -> AsyncGenerator[Line]:
        """All that was said by now and not heard, with a mark where the beginning is not kept any more."""
        reached = await self.lines.last(self.job_id)
        gaps = None if self.heard else Gaps()
        for _ in range(SCANS):
            if self.heard >= reached:
                return
            async with aclosing(self.lines.of(self.job_id, after=self.heard)) as pages:
                async for page in pages:
                    for line in gaps.marked(page.lines) if gaps else page.lines:
                        yield line
                    self.heard = page.seq
            if self.heard < reached:
                await self.clock.sleep_ms(AGAIN_AFTER_MS)
                reached = min(reached, await self.lines.last(self.job_id))  # lines go by age, and are erased
        raise LogUnavailable(reason=f"no copy of the lines has come as far as their leader, {reached}")

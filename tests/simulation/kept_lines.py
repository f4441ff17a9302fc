"""The stream of the lines of jobs at its server: each is kept once, under the id that its writer gave."""

from __future__ import annotations

import asyncio

from headgate_contracts.commands import LogLine
from headgate_contracts.envelope import utc
from libs.eventlog.lines import Line
from libs.runtime.clock import Clock


class KeptLines:
    """All of them, in the order in which they arrived."""

    def __init__(self, clock: Clock) -> None:
        self.kept: list[Line] = []
        self.grown = asyncio.Event()
        self.erased: set[str] = set()  # jobs
        self._clock = clock
        self._ids: dict[str, int] = {}

    @property
    def end(self) -> int:
        return len(self.kept)

    async def erase(self, job_id: str) -> None:
        """Nobody reads them where anything is erased."""
        self.erased.add(job_id)

    def keep(self, line: LogLine, line_id: str) -> int:
        """Its place; of one that comes again the first one's."""
        if line_id not in self._ids:
            seq = self._ids[line_id] = self.end + 1
            number = int(line_id.rpartition(":")[2])
            self.kept.append(Line(seq, utc(self._clock.now_ms()), number, line))
            self.grown.set()
            self.grown = asyncio.Event()
        return self._ids[line_id]

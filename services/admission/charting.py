"""Figures over time, and what workers have done, from the index; refusals from the view, which alone knows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate_contracts.envelope import utc
from headgate_contracts.shown import ShownStats, WorkerAttempt
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ports import ViewReadings
from libs.runtime.clock import Clock
from services.admission.figures import ChartSpan, stats_of
from services.admission.indexing import Progress
from services.admission.listing import Listing


@dataclass(frozen=True, slots=True)
class Charting:
    """The use cases, with what they need."""

    listing: Listing
    view: ViewReadings
    clock: Clock

    async def stats(self, since: datetime, *, step_s: int | None) -> tuple[Progress, ShownStats] | None:
        """Null while there is no index."""
        now_ms = self.clock.now_ms()
        span = ChartSpan.between(since, utc(now_ms), step_s=step_s)
        counted = await self.listing.ask(lambda reader: reader.counted(span))
        if counted is None:
            return None
        try:
            refused = await self.view.refused()
        except (ViewLost, ViewUnavailable):
            refused = {}
        return counted[0], stats_of(span, counted[1], refused, now_ms=now_ms)

    async def attempts(self, worker: str | None, *, count: int) -> tuple[Progress, Sequence[WorkerAttempt]] | None:
        """What workers took up, the newest first; of one, or of all."""
        return await self.listing.ask(lambda reader: reader.attempts(worker, count=count))

"""What held a job while it waited, from its own events and from what the index has of pauses and slots."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from headgate_contracts import Event, Job
from headgate_contracts.events import JobData
from headgate_contracts.shown import ShownWaits
from libs.capacity.projection import epoch_ms
from libs.eventlog import Record
from libs.eventlog.decoding import job_in
from libs.forecast.waited import LifeStep, scopes_and_groups, waits_of
from libs.runtime.clock import Clock
from services.admission.indexing import Progress
from services.admission.listing import Listing


@dataclass(frozen=True, slots=True)
class Waiting:
    """The use case, with what it needs."""

    listing: Listing
    clock: Clock

    async def waits(self, job_id: str, *, owner: bool) -> tuple[Progress, ShownWaits] | None:
        """Null while there is no index."""
        life = tuple(life_of(await self.listing.log.read(job_id)))
        scopes, groups = scopes_and_groups(life)
        since_ms, until_ms = epoch_ms(life[0].job.created_at), self.clock.now_ms() + 1
        found = await self.listing.ask(
            lambda reader: reader.holds(sorted(scopes), sorted(groups), since_ms=since_ms, until_ms=until_ms)
        )
        if found is None:
            return None
        progress, holds = found
        return progress, ShownWaits(job_id=job_id, waits=waits_of(life, holds, owner=owner))


def life_of(records: Iterable[Record]) -> Iterator[LifeStep]:
    """The job after each of its events."""
    job: Job | None = None
    for record in records:
        job = cast("Job", job_in([record], onto=job))
        data = record.event.data if isinstance(record.event, Event) else None
        yield LifeStep(job, data if isinstance(data, JobData) else None)

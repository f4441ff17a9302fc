"""Lists of jobs, from the index: by all that the log's leader has when it is asked, unless the index is far behind."""

from __future__ import annotations

from dataclasses import dataclass

from libs.eventlog import LogError
from services.admission.finding import JobFilter, Sort
from services.admission.indexing import Indexing, JobPage
from services.admission.ports import Log


@dataclass(frozen=True, slots=True)
class Listing:
    """The use case, with what it needs."""

    index: Indexing
    log: Log

    async def page(
        self, wanted: JobFilter, sort: Sort = Sort.NEWEST, *, before: int | None, count: int
    ) -> JobPage | None:
        """At most `count` jobs; null while there is no index to look in. What the caller was told before is in it: a
        job that was just taken in, on whatever replica. Where the log is away, it is what is known here."""
        try:
            head = (await self.log.mark()).seq
        except LogError:
            head = 0
        return await self.index.page(wanted, sort, before=before, count=count, head=head)

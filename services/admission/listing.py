"""Lists of jobs, from the index: by all that the log's leader has when it is asked, unless the index is far behind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from libs.eventlog import LogError
from libs.eventlog.ports import EventLog
from services.admission.finding import Facet, JobFilter, Sort
from services.admission.index_reader import IndexReader
from services.admission.indexing import Indexing, JobPage, Progress

T = TypeVar("T")
NAMES: Final = 100  # of each kind, the most frequent ones


@dataclass(frozen=True, slots=True)
class Listing:
    """The use case, with what it needs."""

    index: Indexing
    log: EventLog

    async def page(
        self, wanted: JobFilter, sort: Sort = Sort.NEWEST, *, before: int | None, count: int
    ) -> JobPage | None:
        """At most `count` jobs; null while there is no index to look in. What the caller was told before is in it: a
        job that was just taken in, on whatever replica. Where the log is away, it is what is known here."""
        return await self.index.page(wanted, sort, before=before, count=count, head=await self._head())

    async def counts(
        self, wanted: JobFilter, facets: Sequence[Facet]
    ) -> tuple[Progress, dict[Facet, dict[str, int]]] | None:
        """How many jobs have each name, the most frequent ones; null while there is no index."""
        return await self.ask(lambda reader: {each: reader.counts(wanted, each, most=NAMES) for each in facets})

    async def ask(self, question: Callable[[IndexReader], T]) -> tuple[Progress, T] | None:
        """Null while there is no index."""
        return await self.index.ask(question, head=await self._head())

    async def _head(self) -> int:
        try:
            return (await self.log.mark()).seq
        except LogError:
            return 0

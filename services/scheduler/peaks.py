"""The most slots that were taken at one moment of the last minute, by group: what happens between two looks at the view
is noted where it happens, as a job is dispatched or a stage gets its slots.

Owns the window. A group that shares its label with others is noted by looks alone, which add them up.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from headgate_contracts import Job
from headgate_contracts.events import JobData, JobDispatched
from libs.capacity.ledger import Ledger
from libs.runtime.clock import Clock
from services.scheduler.labels import GroupLabels

WINDOW_MS: Final = 60_000


class Peaks:
    """The peaks of slots in use that one replica has seen."""

    def __init__(self, meter: Meter, *, ledger: Ledger, labels: GroupLabels, clock: Clock) -> None:
        self._ledger = ledger
        self._labels = labels
        self._clock = clock
        self._noted: defaultdict[str, deque[tuple[int, int]]] = defaultdict(deque)  # falling: the first is the most
        description = "the most slots that were taken at one moment of the last minute, by group"
        meter.create_observable_gauge("headgate_concurrency_slots_peak", [self._observe], description=description)

    def dispatched(self, begun: Iterable[JobData]) -> None:
        """These begin beside those that run."""
        starts = [data for data in begun if isinstance(data, JobDispatched)]
        if not starts:
            return
        taken = Counter(group for job in self._ledger.roster.running.values() for group in _slots_of(job))
        for data in starts:
            taken.update((*data.groups, f"pool:{data.pool}"))
        self.taken(taken.items())

    def taken(self, groups: Iterable[tuple[str, int]]) -> None:
        """So many slots of a group are taken now."""
        self.looked({group: count for group, count in groups if self._labels.of_group(group) == group})

    def looked(self, by_label: Mapping[str, int]) -> None:
        """So many slots are taken now under each label."""
        now_ms = self._clock.monotonic_ms()
        for label, count in by_label.items():
            noted = self._noted[label]
            while noted and noted[-1][1] <= count:
                noted.pop()
            noted.append((now_ms, count))
            while noted[0][0] < now_ms - WINDOW_MS:
                noted.popleft()

    def _observe(self, _: CallbackOptions) -> Iterator[Observation]:
        since_ms = self._clock.monotonic_ms() - WINDOW_MS
        for label, noted in list(self._noted.items()):  # in one go: this reads in the exporter's thread
            recent = [count for at_ms, count in tuple(noted) if at_ms >= since_ms]
            if recent:
                yield Observation(recent[0], {"group": label})


def _slots_of(job: Job) -> tuple[str, ...]:
    return (*job.groups, f"pool:{job.submission.pool}")

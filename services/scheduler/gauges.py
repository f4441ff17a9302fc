"""What can be measured at any moment: how many wait, who leads, how full the groups are that many share.

Owns which groups are looked at: those that policy names, the pools, and those that a job or a stage holds or waits for.
Under which label is in `labels`; of those that share one what is taken is added up, and shown from its first use on.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from headgate_contracts import Job, Priority
from libs.capacity.answers import GroupStatus
from libs.capacity.errors import ViewError
from libs.capacity.ledger import Ledger
from libs.capacity.ports import ViewReadings
from libs.eventlog.errors import LogError
from libs.eventlog.ports import EventLog
from libs.eventlog.values import Fill
from libs.forecast.making import durations_of
from libs.runtime.clock import Clock
from services.scheduler.crowding import Crowding
from services.scheduler.labels import ALL_PROVIDERS, OTHER, STAGE, WORKFLOWS, GroupLabels
from services.scheduler.leader import Leader
from services.scheduler.peaks import Peaks

LOOK_EVERY_MS: Final = 5000
GROUPS_MAX: Final = 1000  # a look is a question each, of a fraction of a millisecond


class Gauges:
    """One replica's. Groups are shown by the leader alone, so that they are not counted twice."""

    def __init__(
        self,
        meter: Meter,
        *,
        ledger: Ledger,
        log: EventLog,
        view: ViewReadings,
        leader: Leader,
        clock: Clock,
        peaks: Peaks,
    ) -> None:
        self._ledger = ledger
        self._view = view
        self._leader = leader
        self._clock = clock
        self._labels = GroupLabels(ledger.policy)
        self._peaks = peaks
        self._groups: tuple[GroupStatus, ...] = ()
        self._used: dict[str, int] = {}  # label → limit; 0: of several groups, so it has none
        self._fullness = Fullness(meter, log=log, leader=leader)
        self._crowding = Crowding(meter, policy=ledger.policy, view=view, leader=leader)
        for name, observe, description in (
            ("headgate_queue_length", self._queued, "jobs in the queue, by pool"),
            ("headgate_backlog_seconds", self._backlog, "work that is queued or under way, of one slot, by pool"),
            ("headgate_queue_oldest_seconds", self._oldest, "how long who waits longest has waited, by class"),
            ("headgate_scheduler_leads", self._leads, "1 while this replica leads"),
            ("headgate_concurrency_slots_active", self._active, "slots taken, by group"),
            ("headgate_concurrency_slots_limit", self._limit, "slots there are, by group"),
            ("headgate_llm_in_flight", self._in_flight, "calls under way, by provider; `total` is over all of them"),
        ):
            meter.create_observable_gauge(name, [observe], description=description)

    async def look(self) -> None:
        """Ask the log how full it is, the view about inputs, and about each group that many share."""
        await self._fullness.look()
        await self._crowding.look()
        try:
            names = self._names(await self._view.groups()) if self._leader.leads else ()
            self._groups = tuple([await self._view.group(name) for name in names])
        except ViewError:
            self._groups = ()  # nothing is known, so nothing is shown
        self._used = {label: limit for label, limit in self._used.items() if self._labels.has(label)}
        for each in self._groups:
            label = self._labels.of_group(each.group) or OTHER
            self._used[label] = each.limit if label == each.group or is_stage(each.group) else 0
        self._peaks.looked(self._taken())

    async def run(self, stopping: asyncio.Event) -> None:
        """Look every few seconds."""
        while not stopping.is_set():
            await self.look()
            await self._clock.sleep_ms(LOOK_EVERY_MS)

    def _names(self, in_use: Iterable[str]) -> tuple[str, ...]:
        jobs = tuple(self._ledger.roster.unfinished)
        pools = (f"pool:{job.submission.pool}" for job in jobs)
        held = (group for job in jobs for group in job.groups)
        leased = sorted(filter(is_group, in_use), key=is_stage, reverse=True)
        names = dict.fromkeys((*sorted(filter(is_group, self._labels.names)), *pools, *held, *leased))
        return tuple(name for name in names if self._labels.of_group(name))[:GROUPS_MAX]

    def _queued(self, _: CallbackOptions) -> Iterable[Observation]:
        pools = Counter(dict.fromkeys(self._ledger.policy.pools.served, 0))
        queued = tuple(self._ledger.roster.queued.values())  # in one go: this is asked in the exporter's thread
        pools.update(job.submission.pool for job in queued)
        return [Observation(count, {"pool": pool}) for pool, count in pools.items()]

    def _backlog(self, _: CallbackOptions) -> Iterable[Observation]:
        """As long as half the jobs of each one's tier took lately; what runs counts with what is left of it."""
        ledger, now = self._ledger, self._leader.now
        tiers, work = durations_of(dict(ledger.paces), ledger.policy), dict.fromkeys(ledger.policy.pools.served, 0.0)
        for job in (*tuple(ledger.roster.queued.values()), *tuple(ledger.roster.running.values())):
            age_s = (now - job.dispatched_at).total_seconds() if job.status.is_running and job.dispatched_at else 0.0
            left_s = tiers[job.submission.tier.value].draw(0.5, age_s=max(0.0, age_s))
            work[job.submission.pool] = work.get(job.submission.pool, 0.0) + left_s
        return [Observation(seconds, {"pool": pool}) for pool, seconds in work.items()]

    def _oldest(self, _: CallbackOptions) -> Iterable[Observation]:
        ages, now = dict.fromkeys(Priority, 0.0), self._leader.now
        for job in tuple(self._ledger.roster.queued.values()):
            ages[job.priority] = max(ages[job.priority], (now - _waits_since(job, now)).total_seconds())
        return [Observation(age_s, {"class": name.value}) for name, age_s in ages.items()]

    def _leads(self, _: CallbackOptions) -> Iterable[Observation]:
        return [Observation(int(self._leader.leads))]

    def _active(self, _: CallbackOptions) -> Iterator[Observation]:
        return (Observation(count, {"group": label}) for label, count in self._taken().items())

    def _taken(self) -> Counter[str]:
        """Those that share a label are added up."""
        taken = Counter(dict.fromkeys(tuple(self._used) if self._groups else (), 0))
        for each in self._groups:
            taken[self._labels.of_group(each.group) or OTHER] += each.active
        return taken

    def _limit(self, _: CallbackOptions) -> Iterator[Observation]:
        used = tuple(self._used.items()) if self._groups else ()
        return (Observation(limit, {"group": label}) for label, limit in used if limit)

    def _in_flight(self, _: CallbackOptions) -> Iterator[Observation]:
        for each in self._groups:
            provider = "total" if each.group == ALL_PROVIDERS else self._labels.of_provider(each.group)
            if provider:
                yield Observation(each.active, {"provider": provider})


def _waits_since(job: Job, now: datetime) -> datetime:
    """What came back waits since then, whenever it came first."""
    entered_at = job.standing.entered_at if job.standing else now
    return job.aged_at or entered_at if job.attempt else entered_at


def is_group(name: str) -> bool:
    """Whether it is one group, and not the last part of many."""
    return name == WORKFLOWS or ":" in name


def is_stage(name: str) -> bool:
    """Whether it is the group that a stage has by its author's limit."""
    return name.startswith(STAGE)


UNKNOWN: Final = Fill(0, None)


class Fullness:
    """One replica's. The leader's is shown, as there is one log."""

    def __init__(self, meter: Meter, *, log: EventLog, leader: Leader) -> None:
        self._log = log
        self._leader = leader
        self._fill = UNKNOWN
        for name, observe, description in (
            ("headgate_log_bytes", self._held, "what the log holds"),
            ("headgate_log_limit_bytes", self._limit, "what it takes"),
        ):
            meter.create_observable_gauge(name, [observe], unit="By", description=description)

    async def look(self) -> None:
        try:
            self._fill = await self._log.fill() if self._leader.leads else UNKNOWN
        except LogError:
            self._fill = UNKNOWN

    def _held(self, _: CallbackOptions) -> Iterable[Observation]:
        return () if self._fill.limit is None else (Observation(self._fill.held),)

    def _limit(self, _: CallbackOptions) -> Iterable[Observation]:
        return () if self._fill.limit is None else (Observation(self._fill.limit),)

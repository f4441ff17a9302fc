"""Servers killed in the middle of appends and batches: nothing acknowledged is lost, and nothing is half there."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

import pytest

from headgate_contracts import Event, Job, JobEvent, advance
from headgate_contracts.events import JobData, SchedulerCommitted
from libs.eventlog import Appended, Entry, EventLog, LogUnavailable, OutcomeUnknown, Record
from libs.eventlog.api import state_of
from libs.eventlog.streams import JOBS
from libs.local.cluster import NatsCluster
from libs.local.servers import NatsServer
from libs.runtime.eventually import eventually
from tests.fixtures.lives import queued, step
from tests.fixtures.logs import CHAIN, caught_up, commit, connected, opened

WRITERS = 8
IN_A_BATCH = 20
ROUND = "dispatched started scaffold code deps checks given_back:drained"
"""What a job can go through again and again."""


class Traffic:
    """Jobs that go round and round and commits of batches, each written until its outcome is known."""

    def __init__(self, log: EventLog) -> None:
        self.acknowledged: dict[int, object] = {}
        self.followed: list[Record] = []
        self._log = log
        self._over = asyncio.Event()

    async def run(self, faults: Callable[["Traffic"], Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self._follow())
            writing = [tasks.create_task(self._live(f"job-{number}")) for number in range(WRITERS)]
            writing.append(tasks.create_task(self._commit()))
            writing.append(tasks.create_task(self._start_alone()))
            await faults(self)
            self._over.set()
            await asyncio.gather(*writing)
            await eventually(lambda: len(self.followed) >= len(self.acknowledged))
            following.cancel()

    async def acknowledges(self, more: int) -> None:
        target = len(self.acknowledged) + more
        await eventually(lambda: len(self.acknowledged) >= target)

    async def _live(self, job_id: str) -> None:
        job: Job | None = None
        words = ["queued"]
        while not self._over.is_set():
            event = step(job or job_id, words.pop(0))
            [seq] = await self._stored([Entry(event, job)])
            job = advance(job, event, seq=seq)
            words = words or ROUND.split()

    async def _commit(self) -> None:
        number, last = 0, 0
        while not self._over.is_set():
            number += 1
            jobs = [f"batch-{number}-{each}" for each in range(IN_A_BATCH)]
            entries = [Entry(commit(number, *jobs), last), *(Entry(queued(job), 0) for job in jobs)]
            last, *_ = await self._stored(entries)

    async def _start_alone(self) -> None:
        """Starts that expect where the whole log ends; mostly another is there first."""
        number = 0
        while not self._over.is_set():
            number += 1
            first = queued(f"alone-{number}")
            [seq] = await self._stored([Entry(first, None)])
            await eventually(lambda seq=seq: bool(self.followed) and self.followed[-1].seq >= seq)
            await self._try_alone(advance(None, first, seq=seq), over=self.followed[-1].seq)

    async def _try_alone(self, job: Job, *, over: int) -> None:
        entry = Entry(step(job, "dispatched", salt=str(over)), job, over=over)
        while True:
            with suppress(OutcomeUnknown, LogUnavailable):
                outcome = await self._log.append_batch([entry])
                if isinstance(outcome, Appended):
                    assert outcome.records[0].seq == over + 1
                    self.acknowledged[over + 1] = entry.event
                return

    async def _stored(self, entries: list[Entry]) -> list[int]:
        """The same entries again until it is known what became of them, as every service does it."""
        while True:
            with suppress(OutcomeUnknown, LogUnavailable):
                outcome = await self._log.append_batch(entries)
                assert isinstance(outcome, Appended), outcome
                self.acknowledged |= {stored.seq: stored.event for stored in outcome.records}
                return [stored.seq for stored in outcome.records]

    async def _follow(self) -> None:
        async with aclosing(self._log.follow(after=0)) as follow:
            async for page in follow:
                self.followed += page.records


@pytest.mark.kills
async def test_killing_the_server_loses_nothing_and_halves_nothing(nats_server: NatsServer) -> None:
    async def kill_it(traffic: Traffic) -> None:
        for _ in range(5):
            await traffic.acknowledges(500)
            await nats_server.kill()
            await nats_server.start()
        await traffic.acknowledges(500)

    async with opened(nats_server.url) as log:
        await _require_all_of_it(log, kill_it)


@pytest.mark.timeout(600)
async def test_killing_whoever_leads_loses_nothing_and_halves_nothing(nats_cluster: NatsCluster) -> None:
    async def kill_the_leader(traffic: Traffic) -> None:
        for _ in range(4):
            await traffic.acknowledges(300)
            leader = nats_cluster.node((await state_of(client, JOBS)).leader or "")
            await leader.kill()
            await traffic.acknowledges(100)
            await leader.start()
            await nats_cluster.healthy()
        await traffic.acknowledges(300)

    async with opened(nats_cluster.urls, replicas=3) as log, connected(nats_cluster.urls) as client:
        await _require_all_of_it(log, kill_the_leader)


@pytest.mark.timeout(600)
async def test_killing_all_servers_at_once_loses_nothing_and_halves_nothing(nats_cluster: NatsCluster) -> None:
    async def kill_them(traffic: Traffic) -> None:
        for _ in range(2):
            await traffic.acknowledges(300)
            await nats_cluster.kill()
            await nats_cluster.start()
        await traffic.acknowledges(300)

    async with opened(nats_cluster.urls, replicas=3) as log:
        await _require_all_of_it(log, kill_them)


async def _require_all_of_it(log: EventLog, faults: Callable[[Traffic], Awaitable[None]]) -> None:
    traffic = Traffic(log)

    await traffic.run(faults)

    records = await eventually(lambda: _read_to_its_end(log))
    assert {record.seq: record.event for record in records} == traffic.acknowledged
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert traffic.followed == records
    _require_legal_chains(records)
    _require_whole_batches(records)
    last = await log.last(CHAIN)
    assert last is not None
    assert isinstance(last.event, Event)


async def _read_to_its_end(log: EventLog) -> list[Record]:
    """A replica that is behind takes its own end for the log's: the leader says where that is."""
    records: list[Record] = (await caught_up(log)).records
    assert records[-1].seq == (await log.mark()).seq
    return records


def _require_legal_chains(records: list[Record]) -> None:
    jobs: dict[str, Job | None] = defaultdict(lambda: None)
    for record in records:
        if isinstance(record.event, Event) and isinstance(record.event.data, JobData):
            event: JobEvent = record.event  # type: ignore[assignment]
            jobs[event.data.job_id] = advance(jobs[event.data.job_id], event, seq=record.seq)


def _require_whole_batches(records: list[Record]) -> None:
    events = [record.event for record in records]
    commits = [(place, event) for place, event in enumerate(events) if _is_commit(event)]
    assert commits
    for place, event in commits:
        followers = [each.data.job_id for each in events[place + 1 : place + 1 + IN_A_BATCH]]  # type: ignore[union-attr]
        assert tuple(followers) == event.data.jobs  # type: ignore[union-attr]


def _is_commit(event: object) -> bool:
    return isinstance(event, Event) and isinstance(event.data, SchedulerCommitted)

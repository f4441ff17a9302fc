"""The view always equals a fold of the log, whatever happened on the way.

Jobs are submitted with and without a reservation, go on through random legal lives, operators interfere, two folders
take turns at any pace, one starts again from a snapshot, the view is flushed or put back to an older copy at any step.
After each look the view is compared with a new one that is seeded from the log alone.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any, Protocol

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from headgate_contracts import Event, JobEvent, Writer
from headgate_contracts.events import Group, JobQueued, LimitSet, LimitUnset, QueuePaused, QueueResumed
from libs.capacity.answers import Request, Reserved
from libs.capacity.errors import ViewLost
from libs.capacity.folder import Folder
from libs.capacity.ledger import Ledger
from libs.capacity.memory import MemoryStore, MemoryView
from libs.capacity.ports import View
from libs.capacity.snapshot import dump, load
from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from libs.eventlog.memory import MemoryLog, MemoryServer
from libs.policy import Policy
from libs.runtime.clock import ManualClock
from tests.fixtures.lives import STARTED_AT, event_id, wander
from tests.fixtures.observing import Observation, observe

EPOCH = "01JB00000000000000000000EP"
POLICY = Policy()
LEASE_MS, LAPSE_MS = 30_000, 60_000
GROUPS = ("group:shop:db", "group:shop:cache")
OPERATIONS = (
    *("submit", "submit blind", "act", "look", "hurt", "restart", "take"),
    *("go on", "go on", "go on", "bring", "bring"),
)


class Place(Protocol):
    """Where a view is kept, and how it is hurt there."""

    @property
    def view(self) -> View: ...
    async def lose(self) -> None: ...
    async def copy(self) -> Any: ...
    async def put_back(self, older: Any) -> None: ...
    def now_ms(self) -> int: ...


class InMemory:
    def __init__(self) -> None:
        self.clock = ManualClock(round(STARTED_AT.timestamp() * 1000))
        self.store = MemoryStore()
        self.view: View = MemoryView(EPOCH, clock=self.now_ms, store=self.store)

    async def lose(self) -> None:
        self.store.lose()

    async def copy(self) -> object:
        return copy.deepcopy(self.store.state)

    async def put_back(self, older: Any) -> None:
        self.store.state = copy.deepcopy(older)

    def now_ms(self) -> int:
        return self.clock.now_ms()


class OnValkey:
    def __init__(self, client: Redis, raw: Redis) -> None:
        self.client = client
        self.raw = raw
        self.view = RedisView(client, shard="main", epoch=EPOCH)

    async def lose(self) -> None:
        await self.raw.flushall()

    async def copy(self) -> object:
        found = {key: await self.raw.dump(key) for key in await self.raw.keys("*")}
        return {key: value for key, value in found.items() if value is not None}  # some end by themselves

    async def put_back(self, older: Any) -> None:
        await self.raw.flushall()
        for key, value in (older or {}).items():
            await self.raw.restore(key, 0, value)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def close(self) -> None:
        await self.view.close()
        await self.client.aclose()
        await self.raw.aclose()


@dataclass
class Bench:
    """A log, a view over it, two folders, and the jobs' lives that are still to be written."""

    random: Random
    place: Place
    clock: ManualClock = field(default_factory=lambda: ManualClock(round(STARTED_AT.timestamp() * 1000)))
    lives: dict[str, list[JobEvent]] = field(default_factory=dict)
    lasts: dict[str, int] = field(default_factory=dict)
    hurts: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.server = MemoryServer(self.clock, epoch=EPOCH)
        self.log = MemoryLog(self.server, clock=self.clock)
        self.view = self.place.view
        self.folders = [self.folder(Ledger(POLICY)) for _ in range(2)]
        self.older: Any = None

    def folder(self, ledger: Ledger) -> Folder:
        generation = lambda: f"generation-{next(self.numbers)}"  # noqa: E731 a name for one line
        return Folder(self.view, ledger, epoch=EPOCH, lease_ms=LEASE_MS, new_generation=generation)

    async def run(self, operation: str) -> None:
        await self.clock.advance_ms(self.random.choice((0, 10, 1000)))
        folder = self.random.choice(self.folders)
        await {
            "submit": lambda: self.submit(reserve=True),
            "submit blind": lambda: self.submit(reserve=False),
            "go on": self.go_on,
            "act": lambda: self.log.append(self.act(), after=None),
            "take": lambda: self.take(folder),
            "bring": lambda: self.bring(folder),
            "look": lambda: self.look(folder),
            "hurt": self.hurt,
            "restart": lambda: self.restart(folder),
        }[operation]()

    async def submit(self, *, reserve: bool) -> None:
        job_id = f"job-{next(self.numbers)}"
        life = list(wander(self.random, job_id=job_id, steps=self.random.randint(1, 25), ends=True))
        first = self.asking(life[0])
        if reserve and isinstance(first.data, JobQueued):
            first = await self.reserved(first, first.data)
            if first is None:
                return
        answer = await self.log.append(first, after=None)
        self.lasts[job_id] = answer.records[0].seq  # type: ignore[union-attr]
        self.lives[job_id] = life[1:]

    def asking(self, first: JobEvent) -> JobEvent:
        """Half of all jobs name one of two groups, half of those bring its limit."""
        limit = self.random.choice((None, self.random.randint(1, 3)))
        groups = (Group(name=self.random.choice(GROUPS), limit=limit),) if self.random.random() < 0.5 else ()
        asked = first.data.submission.model_copy(update={"groups": groups})  # type: ignore[union-attr]
        return replace(first, data=first.data.model_copy(update={"submission": asked}))

    async def reserved(self, event: JobEvent, data: JobQueued) -> JobEvent | None:
        """The first event as admission makes it: with the place that the view gave."""
        try:
            answer = await self.view.reserve(self.request(data))
        except ViewLost:
            return None
        assert isinstance(answer, Reserved), answer
        if self.random.random() < 0.2:
            return None  # admission died before it wrote: the reservation lapses
        placed = data.model_copy(update={"arrival": answer.arrival, "place": answer.place, "passed": answer.passed})
        return replace(event, data=placed)

    def request(self, data: JobQueued) -> Request:
        return Request(
            job=data.job_id,
            user=data.user_id,
            project=data.project_id,
            pool="default",
            class_number=50,
            boost=self.random.choice((0, 2, 5)),
            per_day=10_000,
            horizon_days=30,
            cap=10_000,
            user_share=10_000,
            passed_bound=10,
            lapse_ms=LAPSE_MS,
        )

    async def go_on(self) -> None:
        alive = [job_id for job_id, life in self.lives.items() if life]
        if alive:
            job_id = self.random.choice(alive)
            answer = await self.log.append(self.lives[job_id].pop(0), after=self.lasts[job_id])
            self.lasts[job_id] = answer.records[0].seq  # type: ignore[union-attr]

    def act(self) -> Event[Any]:
        scope = self.random.choice(("all", "user:user-1", "priority:normal", "pool:default", "project:elsewhere"))
        data = self.random.choice(
            (
                QueuePaused(scope=scope, by="olga"),
                QueueResumed(scope=scope, by="olga"),
                LimitSet(group="user:user-1", limit=self.random.randint(1, 9), by="olga"),
                LimitSet(group=self.random.choice(GROUPS), limit=self.random.randint(1, 9), by="olga"),
                LimitUnset(group=self.random.choice((*GROUPS, "user:user-1")), by="olga"),
            )
        )
        return Event(event_id("act", next(self.numbers)), Writer.ADMISSION, STARTED_AT, data)

    async def take(self, folder: Folder) -> None:
        async with aclosing(self.log.follow(after=folder.ledger.applied)) as pages:
            page = await anext(pages)
        records = page.records
        folder.take(records[: self.random.randint(0, len(records))])

    async def bring(self, folder: Folder) -> None:
        await self.take(folder)
        await folder.update_view()

    async def restart(self, folder: Folder) -> None:
        ledger = load(dump(folder.ledger, epoch=EPOCH), epoch=EPOCH, policy=POLICY)
        self.folders[self.folders.index(folder)] = self.folder(ledger)

    async def hurt(self) -> None:
        if self.random.random() < 0.5:
            self.hurts["flushed"] += 1
            await self.place.lose()
        else:
            self.hurts["put back"] += 1
            await self.place.put_back(self.older)

    async def look(self, folder: Folder) -> None:
        """Everything folded, every reservation over: what is there now comes from the log alone."""
        while folder.ledger.applied < self.server.last_seq:
            await self.take(folder)
        await folder.update_view()
        await self.view.sweep(now_ms=self.place.now_ms() + LAPSE_MS)
        assert told(await observe(self.view)) == told(await self.from_the_log_alone(folder.ledger))
        self.older = await self.place.copy()
        self.looks += 1

    async def from_the_log_alone(self, held: Ledger) -> Observation:
        ledger = Ledger(POLICY)
        async with aclosing(self.log.follow(after=0)) as pages:
            while ledger.applied < self.server.last_seq:
                for record in (await anext(pages)).records:
                    ledger.apply(record)
        assert (ledger.jobs, ledger.passed, ledger.orders) == (held.jobs, held.passed, held.orders)
        assert ledger.patience == held.patience
        fresh = MemoryView(EPOCH, clock=self.clock.now_ms)
        await self.folder_over(fresh, ledger).rebuild()
        return await observe(fresh)

    def folder_over(self, view: View, ledger: Ledger) -> Folder:
        return Folder(view, ledger, epoch=EPOCH, lease_ms=LEASE_MS, new_generation=lambda: "fresh")


def told(seen: Observation) -> dict[str, object]:
    """What the log tells: which life of the view it is, and when leases end by its clock, it does not."""
    return {
        "applied": seen.mark.applied,
        "queue": seen.queue,
        "statuses": seen.statuses,
        "held": seen.groups,
        "quotas": seen.quotas,
        "timers": seen.timers,
        "limits": seen.limits,
        "pauses": seen.pauses,
        "running": sorted(seen.leases),
    }


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32), operations=st.lists(st.sampled_from(OPERATIONS), min_size=5, max_size=60))
async def test_the_view_always_equals_a_fold_of_the_log(seed: int, operations: list[str]) -> None:
    bench = Bench(Random(seed), InMemory())

    for operation in [*operations, "look"]:
        await bench.run(operation)

    assert bench.looks > 0


@pytest_asyncio.fixture(params=["memory", "valkey"])
async def place(request: pytest.FixtureRequest, redis_url: str) -> AsyncIterator[Place]:
    if request.param == "memory":
        yield InMemory()
        return
    place = OnValkey(open_client(redis_url), Redis.from_url(redis_url))
    yield place
    await place.close()


@pytest.mark.lives
async def test_a_long_history_with_many_losses_is_still_a_fold(place: Place) -> None:
    bench = Bench(Random(1), place)

    for _ in range(1000):
        await bench.run(bench.random.choice(OPERATIONS))
    await bench.run("look")

    assert bench.hurts["flushed"] > 20
    assert bench.hurts["put back"] > 20
    assert bench.server.last_seq > 200

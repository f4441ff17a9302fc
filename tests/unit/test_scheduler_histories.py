"""Random histories of a whole system in memory: whatever happens in it, its log proves that no rule was broken.

A seed decides everything: who submits what, which worker dies, which answer is lost, which replica has its turn, when
the store is flushed, who is cut off from it. Every commit goes through the real cycle; two replicas may both believe to
lead. In the end the system is left in peace, and everything must come to an end.

`make test-lives` runs hundreds; HISTORIES=10000 in the environment as many.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from headgate_contracts import Event, Job, Priority, Status, Tier
from headgate_contracts.commands import AcquireLease, GiveUpLease, NamedLease
from headgate_contracts.events import Group, JobDispatched
from headgate_contracts.vocabulary import UNSTARTED
from libs.capacity.answers import Deferred, QueueEntry, Reserved
from libs.capacity.errors import ViewError
from libs.capacity.lead import MemoryLead
from libs.capacity.ledger import Ledger
from libs.eventlog.errors import LogError
from libs.eventlog.expectation import Message
from libs.eventlog.memory import Fate
from libs.policy import Policy
from services.scheduler.replica import Replica
from tests.fixtures.audit import Report, audit
from tests.fixtures.cuts import Cut, look
from tests.fixtures.lives import step, submission
from tests.fixtures.schedulers import MemorySchedulers, a_world

EVERY_DAY = 6
SEEDS = int(os.environ.get("HISTORIES", "200"))
STEPS = 250
NEXT = {"starting": "scaffold", "scaffold": "code", "code": "deps", "deps": "checks"}
GROUPS = ("group:shop:db", "group:shop:gpu")
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
SCOPES = ("all", "user:u1", "project:p1", "priority:normal", "pool:default", "workflow:flow-1")
POLICY = Policy.model_validate(
    {
        "queue": {"cap": 12, "user_share": 12, "release_spread_s": 60},
        "order": {"max_passed": 3, "ageing_after_s": 120, "starved_after_s": 20, "starved_every": 3},
        "tiers": {
            "bootstrapper": {"jobs_per_day": 2},
            "partner": {"jobs_per_day": 3},
            "cto_scale": {"jobs_per_day": 4},
        },
    }
)


@dataclass
class Worker:
    """A worker as it sees itself: what it has claimed, and what it holds inside."""

    name: str
    slots: int
    runs: dict[str, Job] = field(default_factory=dict)
    leases: dict[str, NamedLease] = field(default_factory=dict)


class History:
    """One system's life."""

    def __init__(self, world: MemorySchedulers, seed: int) -> None:
        self.world = world
        self.random = Random(seed)
        self.troubled = True
        self.workers = [Worker("w1", 3), Worker("w2", 2)]
        self._names = 0
        self._seen = 0
        self._messages: list[tuple[str, int]] = []
        self._late: list[tuple[int, Event[Any]]] = []  # reserved, when, and not appended yet
        self.view_was_lost = False
        self._flushes = self.random.random() < 0.5
        self.ways: list[Cut] = []
        two_leads = self.random.random() < 0.3
        self.replicas = [self._replica(name, MemoryLead(world.clock.now_ms) if two_leads else None) for name in "ab"]

    def _replica(self, name: str, lead: MemoryLead | None) -> Replica:
        way = Cut(self.world, lead=lead)
        self.ways.append(way)
        return self.world.replica(name, fate=self._fate, **way.adapters)

    def _fate(self, messages: Sequence[Message]) -> Fate:
        if not self.troubled or self.random.random() < 0.8:
            return Fate.ARRIVES
        return self.random.choice([Fate.LOST, Fate.UNHEARD, Fate.LATE])

    async def live(self) -> None:
        for _ in range(3):
            await self.turn()
        actions: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (30, self.turn),
            (12, self.submit),
            (20, self.claim),
            (30, self.go_on),
            (12, self.beat),
            (8, self.pass_time),
            (4, self.append_late),
            (3, self.schedule),
            (4, self.cancel),
            (2, self.confirm),
            (4, self.ask_for_slots),
            (3, self.give_slots_up),
            (2, self.order),
            (2, self.submit_flow),
            (5, self.move),
            (1, self.submit_many),
            (3, self.reprioritize),
            (2, self.force),
            (1, self.shut),
            (2, self.crash),
            (1, self.flush),
            (2, self.cut),
            (1, self.land),
        ]
        weights, steps = zip(*actions, strict=True)
        for act in self.random.choices(steps, weights, k=STEPS):
            await act()

    async def check_order(self) -> None:
        """The view's order is the one that anybody reads out of the log."""
        self.troubled = False
        for way in self.ways:
            way.is_cut = False
        for _ in range(200):
            await self.turn(*self.replicas)
            mark = await self.world.view.mark()
            if mark and mark.open and mark.applied == self.world.server.last_seq:
                break
            await self.world.clock.advance_ms(500)
        report = audit(self.world.records(), policy=POLICY, drained=False, view_was_lost=self.view_was_lost)
        assert [entry.job for entry in await self._queue() if not entry.reserved] == report.order

    async def end(self) -> Report:
        """Peace: everybody lives, nothing is lost, and all that was begun is brought to its end."""
        world, self.troubled = self.world, False
        for scope in SCOPES:
            await world.resume(scope)
        await self.append_late(everything=True)
        for _ in range(3000):
            await self.turn(*self.replicas)
            await self.claim()
            for _ in range(6):
                await self.go_on(peacefully=True)
            await self.beat()
            await self.confirm()
            await world.clock.advance_ms(await self._next_ms())
            if await self._all_ended():
                break
        return audit(world.records(), policy=POLICY, view_was_lost=self.view_was_lost)

    async def _next_ms(self) -> int:
        """A little; or to the next day, where all that is left waits for that."""
        if any(not (job.status.is_end or job.status is Status.SCHEDULED) for job in self.ledger.jobs.values()):
            return 2000
        return min(HOUR_MS, DAY_MS - self.world.clock.now_ms() % DAY_MS)

    @property
    def ledger(self) -> Ledger:
        return self.replicas[0].ledger

    async def _all_ended(self) -> bool:
        ledger = self.replicas[0].ledger
        return ledger.applied == self.world.server.last_seq and all(job.status.is_end for job in ledger.jobs.values())

    # ── the scheduler ─────────────────────────────────────────────────────────

    async def turn(self, *replicas: Replica) -> None:
        for replica in replicas or self.random.sample(self.replicas, k=self.random.randint(1, 2)):
            try:
                for _ in range(self.random.randint(1, 6)):
                    await look(replica)
            except (ViewError, LogError):
                pass

    async def flush(self) -> None:
        if not self._flushes:
            return
        self.view_was_lost = True
        for _ in range(4):  # whose places nobody knows of any more when they are written
            await self.submit(late=True)
        self.world.store.lose()
        if self.random.random() < 0.5:
            self.world.lead.lose()

    async def cut(self) -> None:
        """A replica loses its way to the store, or finds it again."""
        way = self.random.choice(self.ways)
        way.is_cut = not way.is_cut

    async def land(self) -> None:
        self.world.server.land()

    async def pass_time(self) -> None:
        await self.world.clock.advance_ms(self.random.choice([200, 1000, 3000, 6000, 20_000]))

    # ── admission ─────────────────────────────────────────────────────────────

    async def submit(self, *, late: bool = False) -> None:
        self._names += 1
        name = f"job-{self._names:03}"
        wanted = submission(
            tier=self.random.choice(list(Tier)),
            priority=self.random.choice(list(Priority)),
            queue_ttl_s=self.random.choice([None, None, 600]),
            run_timeout_s=self.random.choice([None, None, 60]),
            groups=self._some_groups(),
        )
        user, project = self.random.choice(["u1", "u2", "u3"]), self.random.choice(["p1", "p2", "p3"])
        request = self.world.request(name, user=user, project=project, wanted=wanted, takes_day=True)
        try:
            answer = await self.world.view.reserve(request)
        except ViewError:
            return
        if not isinstance(answer, Reserved | Deferred):
            return
        event = self.world.first_event(request, answer, wanted)
        self._late.append((self.world.clock.now_ms(), event))
        if not late and self.random.random() < 0.8:
            await self.append_late()

    def _some_groups(self) -> tuple[Group, ...]:
        names = self.random.sample(GROUPS, k=self.random.choice([0, 0, 1, 2]))
        return tuple(Group(name=name, limit=self.random.choice([None, 1, 2])) for name in names)

    async def append_late(self, *, everything: bool = False) -> None:
        """Admission gives up half a minute after it reserved."""
        while self._late:
            reserved_ms, event = self._late.pop(0)
            if self.world.clock.now_ms() - reserved_ms < 30_000:
                await self.world.log.append(event, after=None)
            if not everything:
                return

    async def schedule(self) -> None:
        self._names += 1
        await self.world.schedule(f"job-{self._names:03}", in_ms=self.random.randrange(60_000), user="u2")

    async def cancel(self) -> None:
        job = await self._any_job()
        if job is not None and not job.status.is_end and job.cancel_requested_by is None:
            await self.world.write(job.id, "cancel_requested" if job.status.is_running else "cancelled")

    async def confirm(self) -> None:
        for job in list(self.replicas[0].ledger.jobs.values()):
            current = await self.world.job(job.id) if job.status is Status.AWAITING_CONFIRMATION else None
            if current and current.status is Status.AWAITING_CONFIRMATION:
                await self.world.write(job.id, "confirmed")
                return

    async def submit_flow(self) -> None:
        self._names += 1
        flow, user = f"flow-{self._names:03}", self.random.choice(["u1", "u2"])
        asked = {"tier": self.random.choice(list(Tier)), "priority": self.random.choice(list(Priority))}
        with suppress(ViewError):
            await self.world.submit_flow(flow, phases=self.random.randint(2, 4), user=user, project="p1", **asked)

    async def move(self) -> None:
        """An operator drags one job before or after another."""
        names = [entry.job for entry in await self._queue() if not entry.reserved]
        if len(names) > 1:
            job, neighbour = self.random.sample(names, k=2)
            with suppress(ViewError):
                await self.world.move(job, **{self.random.choice(["before", "after"]): neighbour})

    async def submit_many(self) -> None:
        """One after the other behind the same one, until no number is left."""
        names = [entry.job for entry in await self._queue() if not entry.reserved]
        for job in names[1:6]:
            with suppress(ViewError):
                await self.world.move(job, after=names[0])
                await self.turn()

    async def _queue(self) -> tuple[QueueEntry, ...]:
        try:
            return await self.world.view.queue()
        except ViewError:
            return ()

    async def reprioritize(self) -> None:
        job = await self._any_job()
        if job is not None and job.status in UNSTARTED:
            await self.world.reprioritize(job.id, self.random.choice(list(Priority)))

    async def force(self) -> None:
        job = await self._any_job()
        if job is not None and job.holder:
            await self.world.force(f"user:{job.user_id}", job.holder)

    async def shut(self) -> None:
        with suppress(ViewError):
            await self.world.view.shut("llm:ollama", self.world.clock.now_ms() + self.random.choice([5000, 60_000]))

    async def order(self) -> None:
        world, random = self.world, self.random
        scope = random.choice(SCOPES)
        match random.randrange(3):
            case 0:
                await world.pause(scope)
            case 1:
                await world.resume(scope)
            case _:
                await world.set_limit(random.choice([*GROUPS, "user:u1", "project:p1"]), random.randint(1, 4))

    async def _any_job(self) -> Job | None:
        names = self.world.jobs()
        return await self.world.job(self.random.choice(names)) if names else None

    # ── workers ───────────────────────────────────────────────────────────────

    async def claim(self) -> None:
        """A free slot takes the next message; the log says what it is worth."""
        for record in self.world.records()[self._seen :]:
            self._seen += 1
            if isinstance(record.event, Event) and isinstance(record.event.data, JobDispatched):
                self._messages.append((record.event.data.job_id, record.event.data.attempt))
        for worker in self.workers:
            while self._messages and len(worker.runs) < worker.slots:
                name, attempt = self._messages.pop(0)
                job = await self.world.job(name)
                if (job.status, job.attempt, job.worker) == (Status.STARTING, attempt, None):
                    await self._write(worker, job, "started", worker=worker.name)

    async def go_on(self, *, peacefully: bool = False) -> None:
        for worker in self.workers:
            for holder, job in list(worker.runs.items()):
                if self.random.random() < 0.4:
                    del worker.runs[holder]
                    await self._write(worker, job, self._next_word(job, peacefully=peacefully))

    def _next_word(self, job: Job, *, peacefully: bool) -> str:
        if job.cancel_requested_by is not None:
            return "cancelled"
        if not peacefully and self.random.random() < 0.1:
            return self.random.choice(["given_back:drained", "given_back:provider", "failed"])
        if job.status is Status.CHECKS:
            return (
                "ready" if peacefully else self.random.choice(["ready", "ready", "awaiting_confirmation", "scaffold"])
            )
        return NEXT[job.status]

    async def _write(self, by: Worker, job: Job, word: str, **details: Any) -> None:
        """After the job as the worker knows it. Accepted or refused, it goes on with what the log says is its own."""
        if word == "awaiting_confirmation":
            details["expires_at"] = (self.world.clock.now_ms() + DAY_MS) / 1000
        if word == "given_back:provider":
            details["provider"] = "ollama"
        event = step(job, word, salt=f"{by.name}{self.world.server.last_seq}", **details)
        await self.world.log.append(event, after=job)
        current = await self.world.job(job.id)
        if current.holder and current.attempt == job.attempt and current.worker == by.name:
            by.runs[current.holder] = current
        else:
            by.leases = {name: held for name, held in by.leases.items() if held.holder != job.holder}

    async def beat(self) -> None:
        for worker in self.workers:
            reply = await self.world.beat(
                worker.name,
                slots=worker.slots,
                by=self.random.choice(self.replicas),
                holders=tuple(worker.runs),
                leases=tuple(worker.leases.values()),
            )
            for holder in reply.not_yours:
                worker.runs.pop(holder, None)
            for lease in reply.lost_leases:
                worker.leases.pop(lease, None)

    async def crash(self) -> None:
        """The process is gone with all that it knew; another comes."""
        gone = self.random.randrange(len(self.workers))
        self._names += 1
        self.workers[gone] = Worker(f"w{self._names + 2}", self.random.randint(1, 3))

    async def ask_for_slots(self) -> None:
        for worker in self.workers:
            for holder in worker.runs:
                self._names += 1
                groups = tuple(self.random.sample(GROUPS, k=self.random.randint(1, 2)))
                command = AcquireLease(lease=f"l{self._names}", groups=groups, holder=holder, wait_ms=30_000)
                replica = self.replicas[0]
                reply = await replica.handlers.acquire(command)
                if reply.state == "granted":
                    worker.leases[command.lease] = NamedLease(lease=command.lease, holder=holder, groups=groups)
                return

    async def give_slots_up(self) -> None:
        for worker in self.workers:
            for lease in list(worker.leases)[:1]:
                del worker.leases[lease]
                replica = self.replicas[0]
                command = GiveUpLease(lease=lease)
                await replica.handlers.give_up(command)


async def history(seed: int) -> tuple[Report, MemorySchedulers]:
    async with a_world(policy=POLICY) as world:
        life = History(world, seed)
        await life.live()
        await life.check_order()
        report = await life.end()
        for _ in range(20):
            await life.turn()
        assert await world.view_is_the_log(), f"seed {seed}"
        return report, world


@pytest.mark.parametrize(
    "seed", [*range(EVERY_DAY), *(pytest.param(seed, marks=pytest.mark.lives) for seed in range(EVERY_DAY, SEEDS))]
)
async def test_whatever_happens_no_rule_is_broken_and_all_ends(seed: int) -> None:
    report, _ = await history(seed)

    assert not report.violations, f"seed {seed}: {report}"


async def test_the_same_seed_gives_the_same_log() -> None:
    (_, first), (_, second) = await history(3), await history(3)

    assert [record.event for record in first.records()] == [record.event for record in second.records()]
    assert first.dispatched()

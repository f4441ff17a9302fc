"""What follows from the log alone, done by scheduler processes on real servers: phases, forced attempts, days put
right, spacing, retention."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest_asyncio

from headgate_contracts import Event, Job, Status, Tier, Writer
from headgate_contracts.commands import ProviderShut, RedeemTicket, ShutProvider, TicketRedeemed, command_subject
from headgate_contracts.events import JobMoved, JobScheduled, LeaseReleased
from libs.capacity.answers import Between, Reserved
from libs.capacity.ledger import Ledger
from libs.eventlog import Appended, Entry
from libs.eventlog.buckets import JetStreamInputs, JetStreamObjects
from libs.eventlog.streams import WORKSPACES
from libs.local.permissions import NATS_USERS, nats_users
from libs.local.servers import DEFAULT_NATS_USERS, NatsServer
from libs.policy import Policy, Retention
from libs.runtime.clock import SystemClock
from libs.runtime.eventually import eventually
from services.scheduler.janitor import Janitor, kept_inputs, kept_workspaces
from tests.fixtures.clients import nats_client
from tests.fixtures.lives import event_id, life_of, step, submission
from tests.fixtures.logs import connected, opened
from tests.fixtures.scheduler_system import SHARD, SchedulerSystem, a_scheduler_system
from tests.fixtures.sources import running


@pytest_asyncio.fixture
async def system(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[SchedulerSystem]:
    async with a_scheduler_system(nats_url, redis_url, tmp_path) as system:
        yield system


async def written(system: SchedulerSystem, kind: type[Any]) -> list[Any]:
    datas = [record.event.data for record in await system.records() if isinstance(record.event, Event)]
    return [data for data in datas if isinstance(data, kind)]


async def is_so(system: SchedulerSystem, name: str, status: Status) -> Job:
    """Within seconds."""

    async def look() -> Job:
        job = await system.read(name)
        assert job.status is status, job.status
        return job

    return await eventually(look, every_s=0.1)


async def flow_of(system: SchedulerSystem, name: str, *, phases: int) -> list[str]:
    """A workflow, as admission writes it: whole, in one batch."""
    asked = [submission(workflow=name, phase=phase, phases=phases) for phase in range(1, phases + 1)]
    answer = await system.view.reserve(system._request(f"{name}-1", "u1", asked[0]))
    assert isinstance(answer, Reserved)
    first = step(f"{name}-1", "queued", arrival=answer.arrival, place=answer.place, quota_day=None, submission=asked[0])
    later = [
        step(f"{name}-{phase}", "waiting", workflow=name, phase=phase, submission=asked[phase - 1])
        for phase in range(2, phases + 1)
    ]
    stored = await system.log.append_batch([Entry(event, 0) for event in (first, *later)])
    assert isinstance(stored, Appended)
    names = [f"{name}-{phase}" for phase in range(1, phases + 1)]
    system.submitted += names
    return names


async def test_phases_run_one_after_the_other_also_when_the_view_is_lost_in_between(system: SchedulerSystem) -> None:
    await system.scheduler("a")
    await system.scheduler("b")
    system.worker("w1", slots=4, run_s=0.3)
    flows = [await flow_of(system, f"flow-{number}", phases=4) for number in range(3)]
    await is_so(system, flows[0][1], Status.READY)

    await system.client.flushall()
    await system.all_end()

    report = await system.audited(view_was_lost=True)
    assert not report.violations, report
    assert report.ends == {"ready": 12}
    assert report.most["workflows"] <= 3


async def test_a_failed_phase_ends_those_after_it(system: SchedulerSystem) -> None:
    await system.scheduler("a")
    names = await flow_of(system, "flow", phases=3)

    await system.write(await system.read(names[0]), "cancelled")
    await system.all_end()

    report = await system.audited()
    assert not report.violations, report
    assert report.ends == {"cancelled": 3}


async def test_an_attempt_that_was_forced_free_is_refused_and_another_runs(system: SchedulerSystem) -> None:
    await system.scheduler("a")
    worker = system.worker("w1", slots=1, run_s=30)
    name = await system.submit(user="u1")
    first = await is_so(system, name, Status.STARTING)

    release = LeaseReleased(group="user:u1", lease=f"{name}:1", by="olga")
    await system.log.append(Event(event_id("release"), Writer.ADMISSION, datetime.now(UTC), release), after=None)

    async def again() -> Job:
        job = await system.read(name)
        await system.beat("w1", slots=1, stopped=(f"{name}:1",))  # as its worker does, once it was told
        assert job.attempt == 2
        return job

    second = await eventually(again, every_s=0.1)
    assert await system.write(first, "failed") is None
    worker.die()
    assert (second.lost, second.quota_day) == (0, first.quota_day)
    report = await system.audited(drained=False)
    assert not report.violations, report


async def test_jobs_over_the_daily_cap_get_the_first_free_days(system: SchedulerSystem) -> None:
    """Five a day: nine were written while nobody could count them."""
    today, wanted = datetime.now(UTC).date(), submission(tier=Tier.BOOTSTRAPPER)
    names = [f"slipped-{number}" for number in range(12)]
    for arrival, name in enumerate(names, start=1):
        details = {"arrival": arrival, "place": arrival << 16, "quota_day": today, "submission": wanted}
        assert isinstance(await system.log.append(step(name, "queued", **details), after=None), Appended)

    await system.scheduler("a")
    await is_so(system, names[-1], Status.SCHEDULED)

    days = [data.quota_day - today for data in await written(system, JobScheduled)]
    assert days == [timedelta(days=1)] * 5 + [timedelta(days=2)] * 2
    report = await system.audited(drained=False)
    assert not report.violations, report


async def test_neighbours_without_room_are_spread(system: SchedulerSystem) -> None:
    await system.scheduler("a")
    names = await system.submit_many(5, users=1000)
    jobs = [await is_so(system, name, Status.QUEUED) for name in names]
    assert jobs[0].standing is not None
    moved = await system.write(jobs[4], "moved:operator", place=jobs[0].standing.place + 1)
    assert moved is not None

    async def spaced() -> list[JobMoved]:
        moves = [data for data in await written(system, JobMoved) if data.reason.value == "spaced"]
        assert moves
        return moves

    await eventually(spaced, every_s=0.1)

    async def room() -> bool:
        return isinstance(await system.view.between(names[1], after=names[0]), Between)

    await eventually(room, every_s=0.1)
    report = await system.audited(drained=False)
    assert not report.violations, report
    assert report.order == [names[0], names[4], *names[1:4]]


async def test_a_provider_is_shut_and_a_ticket_redeemed_over_nats(system: SchedulerSystem, nats_url: str) -> None:
    await system.scheduler("a")
    async with nats_client(nats_url) as nats:

        async def asked(command: Any, verb: Any) -> bytes:
            reply = await nats.request(command_subject(SHARD, verb), command.model_dump_json().encode(), timeout=30)
            return reply.data

        shut = ProviderShut.model_validate_json(await asked(ShutProvider(provider="ollama", for_ms=60_000), "shut"))
        ticket = TicketRedeemed.model_validate_json(await asked(RedeemTicket(ticket="A" * 43), "redeem"))

    assert shut.until is not None
    assert (await system.view.group("llm:ollama")).shut_until_ms == round(shut.until.timestamp() * 1000)
    assert ticket == TicketRedeemed()


class Leading:
    """A leader to whom it is two days later."""

    leads = True
    now = datetime.now(UTC) + timedelta(days=2)


async def test_the_scheduler_may_delete_workspaces_and_read_why(tmp_path: Path) -> None:
    passwords: dict[str, str] = dict.fromkeys(NATS_USERS, "secret")
    users = nats_users(passwords, shard=SHARD, pools=("default",))
    server = NatsServer(tmp_path / "nats", users=(*DEFAULT_NATS_USERS, *users.values()))
    async with running(server), opened(server.url) as log, nats_client(server.url) as nc:
        job: Job | None = None
        for event in life_of("gone", "queued cancelled"):
            stored = await log.append(event, after=job)
            assert isinstance(stored, Appended)
            job = (await _fold(log, "gone")).jobs["gone"]
        objects = JetStreamObjects(nc, WORKSPACES)
        for name in ("gone-1-1", "kept"):
            await objects.put(name, b"work" * 50_000)
        given = JetStreamInputs(nc)
        for name in (f"gone-{'0' * 22}", f"gone-{'1' * 22}", f"kept-{'0' * 22}"):
            await given.put(name, b"{}")
        await given.delete(f"gone-{'1' * 22}")  # an operator has erased it: a marker is left

        async with connected(server.url_for(users["scheduler"])) as own:
            bucket = JetStreamObjects(own, WORKSPACES)
            leading: Any = Leading()
            ledger, clock = Ledger(Policy()), SystemClock()
            remains = kept_workspaces(bucket, Retention())
            janitor = Janitor(remains, log, ledger=ledger, leader=leading, clock=clock)
            deleted = await asyncio.wait_for(janitor.sweep(), 30)
            remains = kept_inputs(JetStreamInputs(own), Retention())
            janitor = Janitor(remains, log, ledger=ledger, leader=leading, clock=clock)
            await asyncio.wait_for(janitor.sweep(), 30)

        assert deleted == 1
        assert await objects.names() == ["kept"]
        assert await objects.get("gone-1-1") is None
        assert await given.names() == [f"kept-{'0' * 22}"]


async def _fold(log: Any, name: str) -> Ledger:
    ledger = Ledger(Policy())
    for record in await log.read(name):
        ledger.apply(record)
    return ledger

"""The log read backwards: in memory and on JetStream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.client import Client

from headgate_contracts import Event, Status, Writer
from headgate_contracts.envelope import AnyEvent
from headgate_contracts.events import QueuePaused
from libs.eventlog import Appended, EventLog, history, migrate, open_log
from libs.eventlog.history import History, JetStreamScans, MemoryScans
from libs.eventlog.memory import MemoryLog
from tests.fixtures.lives import STARTED_AT, event_id, job_after, life_of, queued, step
from tests.fixtures.logs import act, connected, in_memory, new_epoch, settings


@pytest_asyncio.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    async with connected(nats_url) as client:
        await migrate(client, settings(), new_epoch=new_epoch())
        yield client


@pytest.fixture(params=["memory", "one"])
def server(request: pytest.FixtureRequest) -> Client | None:
    return None if request.param == "memory" else request.getfixturevalue("nc")


@pytest_asyncio.fixture
async def log(server: Client | None) -> EventLog:
    return await open_log(server, settings()) if server else in_memory()


@pytest.fixture
def read(log: EventLog, server: Client | None) -> History:
    if isinstance(log, MemoryLog):
        return History(MemoryScans(log.wire.server))
    assert server is not None
    return History(JetStreamScans(server))


async def stored(log: EventLog, *events: AnyEvent) -> int:
    seq = 0
    for event in events:
        outcome = await log.append(event, after=seq)
        assert isinstance(outcome, Appended)
        seq = outcome.records[0].seq
    return seq


def jobs_in(records: list[Any]) -> list[str]:
    return [record.event.data.job_id for record in records]


async def test_a_users_first_events_are_read_newest_first(log: EventLog, read: History) -> None:
    for number, user in enumerate(("u1", "u2", "u1", "u1")):
        await stored(log, queued(f"job-{number}", user_id=user))

    assert jobs_in(await read.first_events("u1", count=2)) == ["job-3", "job-2"]
    assert jobs_in(await read.first_events("u1", count=9)) == ["job-3", "job-2", "job-0"]
    assert await read.first_events("u3", count=9) == []


async def test_a_log_that_never_held_anything_has_no_first_events(read: History) -> None:
    assert await read.first_events("u1", count=9) == []


async def test_a_page_goes_on_where_the_last_one_ended(log: EventLog, read: History) -> None:
    for number in range(5):
        await stored(log, queued(f"job-{number}"))

    pages, before = list[list[str]](), None
    while page := await read.first_events("user-1", before=before, count=2):
        pages.append(jobs_in(page))
        before = page[-1].seq

    assert pages == [["job-4", "job-3"], ["job-2", "job-1"], ["job-0"]]


async def test_a_job_that_comes_back_to_the_queue_is_listed_once(log: EventLog, read: History) -> None:
    await stored(log, *life_of("job-1", "scheduled queued"))
    await stored(log, *life_of("job-2", "queued dispatched given_back:lost dispatched"))

    assert jobs_in(await read.first_events("user-1", count=9)) == ["job-2", "job-1"]


async def test_jobs_far_back_are_found_window_by_window(
    log: EventLog, read: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "FIRST_SPAN", 2)
    await stored(log, queued("job-old", user_id="u1"))
    for number in range(12):
        await stored(log, queued(f"job-{number}", user_id="u2"))
    await stored(log, queued("job-new", user_id="u1"))

    assert jobs_in(await read.first_events("u1", count=5)) == ["job-new", "job-old"]


async def test_a_window_full_of_later_events_is_not_taken_for_the_end(
    log: EventLog, read: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "FIRST_SPAN", 2)
    await stored(log, queued("job-old"))
    await stored(log, *life_of("job-new", "scheduled queued"))

    assert jobs_in(await read.first_events("user-1", count=2)) == ["job-new", "job-old"]


async def test_one_project_is_read_alone(log: EventLog, read: History) -> None:
    await stored(log, queued("job-1", project_id="shop"))
    await stored(log, queued("job-2", project_id="blog"))

    assert jobs_in(await read.first_events("user-1", project="shop", count=5)) == ["job-1"]


async def test_jobs_are_folded_as_their_own_records_say(log: EventLog, read: History) -> None:
    await stored(log, *life_of("job-1"))
    seq = await stored(log, *life_of("job-2", "queued cancelled"))
    await stored(log, queued("job-3"))

    found = await read.jobs(["job-1", "job-2", "nobody"])

    assert {name: job.status for name, job in found.items()} == {"job-1": Status.READY, "job-2": Status.CANCELLED}
    assert found["job-2"].seq == seq


async def test_of_many_jobs_each_is_found(log: EventLog, read: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "JOBS_AT_ONCE", 2)
    names = [f"job-{number}" for number in range(5)]
    for name in names:
        await stored(log, queued(name))

    assert sorted(await read.jobs(names)) == names


async def test_acts_are_read_in_order_from_a_moment_on(log: EventLog, read: History) -> None:
    paused = Event(event_id("pause"), Writer.ADMISSION, STARTED_AT, QueuePaused(by="ops-1", scope="all"))
    for event in (act(1), paused, act(2)):
        await log.append(event, after=None)
    first = (await read.acts(count=1))[0]

    assert [record.event for record in await read.acts(count=9)] == [act(1), paused, act(2)]
    assert [record.event for record in await read.acts(after=first.seq, count=1)] == [paused]
    assert await read.acts(since=first.at + timedelta(days=1), count=9) == []
    assert len(await read.acts(since=first.at, count=9)) == 3


async def test_what_was_done_to_others_jobs_is_an_act_and_what_their_users_did_is_none(
    log: EventLog, read: History
) -> None:
    for name, by in (("job-1", "ops-1"), ("job-2", "user-1")):
        await stored(log, queued(name), step(job_after("queued", job_id=name), "cancelled", by=by))
    ended = step(job_after("waiting", job_id="job-3"), "cancelled", by="scheduler", writer=Writer.SCHEDULER)
    await stored(log, *life_of("job-3", "waiting"), ended)

    assert jobs_in(await read.acts(count=9)) == ["job-1"]

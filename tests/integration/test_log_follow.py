"""Reading on while servers come and go."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.client import Client

from headgate_contracts.commands import LogLine, logs_subject
from headgate_contracts.subjects import LOG_SUBJECTS
from libs.eventlog import EpochDiffers, JetStreamLog, LogMissing, Page, RecordsMissing, Unreadable, WentBack, migrate
from libs.eventlog.api import ask, state_of
from libs.eventlog.lines import JetStreamLines, LinePage
from libs.eventlog.pools import pool_consumer
from libs.eventlog.streams import JOBS, LOGS
from libs.local.servers import NatsServer
from libs.runtime.eventually import eventually
from tests.fixtures.lives import queued
from tests.fixtures.logs import HastyClock, act, caught_up, connected, new_epoch, opened, settings

LOOSE = {"name": JOBS, "subjects": [*LOG_SUBJECTS], "storage": "file", "metadata": {"headgate.epoch": "E1"}}


@pytest_asyncio.fixture
async def nc(nats_server: NatsServer) -> AsyncIterator[Client]:
    async with connected(nats_server.url) as client:
        await migrate(client, settings(), new_epoch=new_epoch())
        yield client


async def log_on(client: Client) -> JetStreamLog:
    """A log whose patience costs no time."""
    epoch = (await state_of(client, JOBS)).epoch
    return JetStreamLog(client, epoch=epoch or "", clock=HastyClock(), settle_within_s=600)


async def loose_log_on(client: Client) -> JetStreamLog:
    """A log whose records can be taken away, as no migration would make it."""
    await ask(client, "STREAM.DELETE", stream=JOBS, question={})
    await ask(client, "STREAM.CREATE", stream=JOBS, question=LOOSE)
    return await log_on(client)


async def test_following_goes_on_after_the_server_was_killed(nats_server: NatsServer, nc: Client) -> None:
    async with opened(nats_server.url) as log, contextlib.aclosing(log.follow(after=0)) as follow:
        await anext(follow)
        await log.append(queued("job-1"), after=None)
        before = await anext(follow)
        await nats_server.kill()
        await nats_server.start()
        await log.append(queued("job-2"), after=None)

        after = await anext(follow)

    assert [record.seq for page in (before, after) for record in page.records] == [1, 2]


async def test_following_begins_while_the_server_is_away(nats_server: NatsServer, nc: Client) -> None:
    log = await log_on(nc)
    await log.append(queued("job-1"), after=None)
    await nats_server.kill()
    first: asyncio.Task[Page] = asyncio.create_task(_first_page(log))

    await nats_server.start()

    assert [record.seq for record in (await first).records] == [1]


async def test_a_consumer_that_somebody_deleted_is_replaced(nc: Client) -> None:
    log = await log_on(nc)
    async with contextlib.aclosing(log.follow(after=0)) as follow:
        await anext(follow)
        await log.append(queued("job-1"), after=None)
        await anext(follow)
        [consumer] = await _consumers(nc)
        await ask(nc, "CONSUMER.DELETE", stream=f"{JOBS}.{consumer}", question={})
        await log.append(queued("job-2"), after=None)

        page = await anext(follow)

    assert [record.seq for record in page.records] == [2]


async def test_a_reader_that_leaves_leaves_nothing_behind(nc: Client) -> None:
    log = await log_on(nc)
    await log.append(queued("job-1"), after=None)
    tasks = asyncio.all_tasks()

    await caught_up(log)

    async def gone() -> bool:
        return await _consumers(nc) == []

    await eventually(gone)
    await eventually(lambda: asyncio.all_tasks() == tasks)


async def test_a_reader_that_is_cancelled_leaves_nothing_behind(nc: Client) -> None:
    log = await log_on(nc)

    async def read_on() -> None:
        async with contextlib.aclosing(log.follow(after=0)) as follow:
            async for _ in follow:
                pass

    reading = asyncio.create_task(read_on())

    async def there() -> bool:
        return len(await _consumers(nc)) == 1

    async def gone() -> bool:
        return await _consumers(nc) == []

    await eventually(there)
    reading.cancel()

    with pytest.raises(asyncio.CancelledError):
        await reading
    await eventually(gone)


async def test_what_is_no_event_is_handed_out_as_unreadable(nc: Client) -> None:
    log = await log_on(nc)
    await nc.request("headgate.ops.v1.paused", b"\xff not an event", timeout=30)
    await log.append(act(), after=None)

    strange, ours = (await caught_up(log)).records

    assert isinstance(strange.event, Unreadable)
    assert strange.event.subject == "headgate.ops.v1.paused"
    assert strange.event.reason.startswith("event: ")
    assert ours.event == act()
    assert await log.last("headgate.ops.v1.paused") == strange


async def test_a_reader_behind_the_oldest_record_goes_on_from_there(nc: Client) -> None:
    log = await loose_log_on(nc)
    await _append_some(log, 5)
    await ask(nc, "STREAM.UPDATE", stream=JOBS, question={**LOOSE, "max_msgs": 2})

    caught = await caught_up(log)

    assert [record.seq for record in caught.records] == [4, 5]


async def test_a_hole_that_is_not_age_is_a_fault(nc: Client) -> None:
    log = await loose_log_on(nc)
    await _append_some(log, 5)
    for seq in (3, 4):
        await ask(nc, "STREAM.MSG.DELETE", stream=JOBS, question={"seq": seq, "no_erase": True})

    with pytest.raises(RecordsMissing) as fault:
        await caught_up(log)

    assert str(fault.value) == (
        "The log has a hole: 3 to 4 are missing, and not by age. "
        "Do not go on: bring back a whole store, or begin a new epoch."
    )


async def test_a_log_that_went_back_stops_its_readers(nats_server: NatsServer, nc: Client, tmp_path: Path) -> None:
    follow = (await log_on(nc)).follow(after=0)
    async with opened(nats_server.url) as log:
        await log.append(queued("job-1"), after=None)
        async with _restored(nats_server, tmp_path):
            await log.append(queued("job-2"), after=None)
            page = await anext(follow)

    assert page.last_seq == 2
    with pytest.raises(WentBack, match="it ends at 1, but 2 was seen"):
        await anext(follow)


async def test_another_log_in_its_place_stops_its_readers(nc: Client) -> None:
    log = await log_on(nc)
    await _append_some(log, 1)
    follow = log.follow(after=0)
    await anext(follow)
    await ask(nc, "STREAM.DELETE", stream=JOBS, question={})
    await migrate(nc, settings(), new_epoch="01KA0000000000000000000000")

    with pytest.raises(EpochDiffers, match="its epoch is 01KA0000000000000000000000"):
        await anext(follow)
    with pytest.raises(EpochDiffers, match="its epoch is 01KA0000000000000000000000"):
        await log.mark()


async def test_a_log_that_is_gone_stops_its_readers(nc: Client) -> None:
    log = await log_on(nc)
    await _append_some(log, 1)
    follow = log.follow(after=0)
    await anext(follow)
    await ask(nc, "STREAM.DELETE", stream=JOBS, question={})

    with pytest.raises(LogMissing, match="There is no stream JOBS"):
        await anext(follow)


async def _first_page(log: JetStreamLog) -> Page:
    async with contextlib.aclosing(log.follow(after=0)) as follow:
        return await anext(follow)


async def _append_some(log: JetStreamLog, count: int) -> None:
    for number in range(count):
        await log.append(queued(f"job-{number}"), after=None)


async def _consumers(nc: Client, stream: str = JOBS) -> list[str]:
    """Those of readers."""
    all_of_them = (await ask(nc, "CONSUMER.NAMES", stream=stream, question={}))["consumers"] or []
    return [name for name in all_of_them if name not in map(pool_consumer, settings().pools)]


@contextlib.asynccontextmanager
async def _restored(server: NatsServer, folder: Path) -> AsyncGenerator[None]:
    """On leaving, the store is as it was on entering."""
    await server.kill()
    shutil.copytree(server.folder / "jetstream", folder / "old")
    await server.start()
    yield
    await server.kill()
    shutil.rmtree(server.folder / "jetstream")
    shutil.copytree(folder / "old", server.folder / "jetstream")
    await server.start()


# ── lines of jobs ─────────────────────────────────────────────────────────────


async def said(nc: Client, *texts: str, job_id: str = "job-1") -> None:
    for text in texts:
        line = LogLine(job_id=job_id, attempt=1, stage="code", line=text, ts=datetime(2026, 1, 1, tzinfo=UTC))
        await nc.request(logs_subject(job_id), line.model_dump_json().encode(), timeout=30)


async def heard(follow: AsyncGenerator[LinePage], count: int) -> list[str]:
    lines = list[str]()
    while len(lines) < count:
        lines += [each.line.line for each in (await anext(follow)).lines]
    return lines


async def test_lines_are_followed_past_a_killed_server_a_lost_consumer_and_an_erased_job(
    nats_server: NatsServer, nc: Client
) -> None:
    """Each once and in order. What was erased leaves a hole in the stream, which is none in what is sent."""
    lines = JetStreamLines(nc, HastyClock())
    await said(nc, "before anybody listened")
    async with contextlib.aclosing(lines.follow(after=await lines.end())) as follow:
        await said(nc, "a", "b", job_id="job-2")
        there = await heard(follow, 2)
        await said(nc, "secret", job_id="erased")
        await said(nc, "c")
        await lines.erase("erased")
        [consumer] = await _consumers(nc, LOGS)
        await ask(nc, "CONSUMER.DELETE", stream=f"{LOGS}.{consumer}", question={})
        await said(nc, "d")
        there += [text for text in await heard(follow, 2) if text != "secret"]
        await nats_server.kill()
        await nats_server.start()
        async with connected(nats_server.url) as other:
            await said(other, "e")
        while there[-1] != "e":
            there += await heard(follow, 1)

    assert there == ["a", "b", "c", "d", "e"]

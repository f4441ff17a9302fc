"""What is told to everybody: read where somebody listens to it, and by the subject alone where nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from faststream.nats import NatsBroker, TestNatsBroker
from pydantic import ValidationError

from headgate_contracts.commands import JobProgress, PositionChanged, position_subject
from libs.eventlog import Page, Record, Wanted
from libs.eventlog.memory import MemoryLog
from services.notifier.fanout import Fanout, Interest, OfJob, OfUser
from services.notifier.rendering import item_of
from services.notifier.subscribers import spread_log, subscribe
from tests.fixtures.lives import life_of
from tests.fixtures.memory_notifier import EPOCH, MemoryNotifier, patient

SUBJECT = position_subject("main", "ann", "job-1")


@pytest.mark.parametrize("interest", [OfJob("job-1"), OfUser("ann")])
async def test_a_position_reaches_who_listens_to_its_job_or_its_user(interest: Interest) -> None:
    broker, fanout = NatsBroker(), Fanout()
    subscribe(broker, fanout, shard="main")

    async with TestNatsBroker(broker):
        with fanout.attached([interest]) as tap, fanout.attached([OfJob("job-2"), OfUser("bob")]) as other:
            await broker.publish(PositionChanged(job_id="job-1", queue=None), SUBJECT)
            [told] = await tap.take(within_s=1)
            nothing = await other.take(within_s=0)

    assert told.frames.startswith(b"event: position\ndata: ")
    assert b'"job-1"' in told.frames
    assert nothing == []


async def test_a_position_that_nobody_listens_to_is_not_read() -> None:
    """It is told by its subject: what is said is looked at only where somebody is to be sent it."""
    broker, fanout = NatsBroker(), Fanout()
    subscribe(broker, fanout, shard="main")

    async with TestNatsBroker(broker):
        await broker.publish({"no": "position"}, SUBJECT)
        with fanout.attached([OfUser("ann")]), pytest.raises(ValidationError):
            await broker.publish({"no": "position"}, SUBJECT)


@pytest.mark.parametrize("interest", [OfJob("job-1"), OfUser("ann")])
async def test_progress_reaches_who_listens_to_its_job_or_its_user(interest: Interest) -> None:
    broker, fanout = NatsBroker(), Fanout()
    subscribe(broker, fanout, shard="main")
    said = JobProgress(job_id="job-1", user_id="ann", attempt=1, stage="code", fraction=0.4, message="12 of 30")

    async with TestNatsBroker(broker):
        with fanout.attached([interest]) as tap:
            await broker.publish(said, "$KV.PROGRESS.job-1")
            await broker.publish(said, "$KV.PROGRESS.job-2")  # says of another what it cannot know
            await broker.publish(b"", "$KV.PROGRESS.job-1")  # erased
            heard = await tap.take(within_s=1)

    assert [told.frames.partition(b"\n")[0] for told in heard] == [b"event: progress"]
    assert b'"fraction":0.4' in heard[0].frames
    assert b"ann" not in heard[0].frames


class Noted(MemoryLog):
    """Keeps what its follower decoded."""

    decoded: list[Record]

    async def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[Page, None]:
        self.decoded = []
        async with aclosing(super().follow(after=after, wanted=wanted)) as pages:
            async for page in pages:
                self.decoded += page.records
                yield page


@asynccontextmanager
async def heard(notifier: MemoryNotifier) -> AsyncIterator[Noted]:
    log = Noted(notifier.server, clock=notifier.clock)
    hearing = asyncio.create_task(spread_log(log, notifier.fanout, after=0, epoch=EPOCH))
    try:
        yield log
    finally:
        hearing.cancel()


async def breathe() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("interest", [OfJob("job-1"), OfUser("ann")])
async def test_who_listens_hears_each_record_once_and_nothing_else_is_read(interest: Interest) -> None:
    notifier, ours = MemoryNotifier(patient()), life_of("job-1", user_id="ann")
    async with heard(notifier) as log:
        with notifier.fanout.attached([interest]) as one, notifier.fanout.attached([interest]) as two:
            await breathe()
            await notifier.write(*life_of("job-2", user_id="bob"), *ours)
            await breathe()
            taken = [await tap.take(within_s=0) for tap in (one, two)]
        await notifier.write(*life_of("job-3", user_id="ann"))
        await breathe()

    ours_told = [item_of(record, epoch=EPOCH) for record in notifier.server.records(["headgate.jobs.v1.job-1.>"])]
    assert taken == [[told for told in ours_told if told is not None]] * 2
    assert [record.event for record in log.decoded] == ours


async def test_who_comes_while_a_record_is_passed_over_finds_it_in_the_past() -> None:
    """It had no listener when it came. It was in the log by then, and a client that attaches later reads that."""
    notifier = MemoryNotifier(patient())
    async with heard(notifier):
        await breathe()
        await notifier.write(*life_of("job-1", "queued dispatched started"))
        await breathe()
        client = notifier.of_job("job-1")
        begun = await client.heard()
        await notifier.write(*life_of("job-1", "queued dispatched started scaffold")[3:])
        await breathe()
        later = await client.heard()
        await client.close()

    assert [data["status"] for _, _, data in (*begun, *later)] == ["starting", "scaffold"]

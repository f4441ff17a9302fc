"""How work is claimed: races, stale messages, and a worker that is told to stop in the middle."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytest_asyncio

from headgate_contracts import Job
from headgate_contracts.tokens import input_name
from libs.eventlog import Appended, Record, Unreadable
from libs.eventlog.buckets import MemoryBucket
from libs.eventlog.decoding import job_in
from libs.eventlog.memory import Fate, MemoryLog, MemoryServer
from libs.eventlog.ports import EventLog
from libs.policy import Policy
from libs.runtime.telemetry import Telemetry
from services.worker.attempt.process import Limits
from services.worker.attempt.run import Tools
from services.worker.claiming import take
from services.worker.intake import Intake
from services.worker.sandbox.command import Level
from services.worker.signals import Signals
from tests.fixtures.lives import event_id, step
from tests.fixtures.logs import HastyClock

LIMITS = Limits(
    workspaces=Path("/nowhere"),
    end_grace_s=1,
    runs=Policy().runs,
    commands=Policy().sandbox,
    level=Level("plain"),
    providers={},
)


async def enough() -> None:
    """Of room on the disk."""


class Dispatch:
    tries = 1

    def __init__(self, record: Record) -> None:
        self.record = record
        self.acked = self.naked = False

    async def ack(self, *, sure: bool = True) -> None:
        self.acked = True

    async def nak(self, *, after_s: float = 0) -> None:
        self.naked = True


class Unread:
    """A log that cannot be read."""

    def __init__(self, log: EventLog) -> None:
        self.append = log.append

    async def read(self, job_id: str) -> list[Record]:
        raise AssertionError(f"{job_id} was read")


class Scene:
    """A log, one job in it, and any number of workers."""

    def __init__(self) -> None:
        self.clock = HastyClock()
        self.server = MemoryServer(self.clock, epoch="E1")
        self._ids = count()
        self._telemetry = Telemetry("worker", instance="w", logs=None)

    async def write(self, *words: str) -> None:
        log = MemoryLog(self.server, clock=self.clock)
        for word in words:
            event = step(self.job or "job-1", word, salt=str(next(self._ids)))
            assert isinstance(await log.append(event, after=self.job), Appended)

    def worker(self, name: str = "worker-1", *, fate: Any = lambda _: Fate.ARRIVES) -> Tools:
        """Of its tools a claim needs these alone."""
        nothing = cast("Any", None)
        return Tools(
            worker=name,
            policy=Policy(),
            limits=LIMITS,
            log=MemoryLog(self.server, clock=self.clock, fate=fate, settle_within_s=1),
            inputs=MemoryBucket(),
            results=nothing,
            shelf=nothing,
            scheduler=nothing,
            spawner=cast("Any", SimpleNamespace(pipelines={})),
            pump=nothing,
            progress=nothing,
            signals=Signals(self._telemetry, pool="default"),
            clock=self.clock,
            new_id=lambda: event_id(name, next(self._ids)),
        )

    def dispatch(self, number: int = 2) -> Dispatch:
        return Dispatch(self.server._kept[number - 1].record())

    @property
    def job(self) -> Job | None:
        return job_in([kept.record() for kept in self.server._kept])

    @property
    def story(self) -> str:
        return " ".join(kept.message.subject.split(".")[6] for kept in self.server._kept)


@pytest_asyncio.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    await scene.write("queued", "dispatched")
    yield scene


async def test_a_claim_is_the_event_started_and_the_message_is_done_with(scene: Scene) -> None:
    dispatch = scene.dispatch()

    claimed = await take(dispatch, scene.worker(), wanted=lambda: True)

    assert claimed is not None
    assert (claimed.job.worker, claimed.job.holder) == ("worker-1", "job-1:1")
    assert dispatch.acked
    assert scene.story == "queued dispatched started"


async def test_of_two_workers_with_the_same_message_one_has_the_job(scene: Scene) -> None:
    dispatches = [scene.dispatch(), scene.dispatch()]

    claims = await asyncio.gather(
        take(dispatches[0], scene.worker("worker-1"), wanted=lambda: True),
        take(dispatches[1], scene.worker("worker-2"), wanted=lambda: True),
    )

    assert [claim is None for claim in claims].count(False) == 1
    assert all(dispatch.acked for dispatch in dispatches)
    assert scene.story == "queued dispatched started"


async def test_a_stale_message_is_dropped_and_nothing_is_written(scene: Scene) -> None:
    await scene.write("given_back:lost", "dispatched")
    dispatch = scene.dispatch(2)

    assert await take(dispatch, scene.worker(), wanted=lambda: True) is None
    assert dispatch.acked
    assert scene.story == "queued dispatched given_back dispatched"


async def test_a_wish_that_overtakes_the_claim_ends_the_job(scene: Scene) -> None:
    await scene.write("cancel_requested")

    claimed = await take(scene.dispatch(), scene.worker(), wanted=lambda: True)

    assert claimed is None
    assert scene.story == "queued dispatched cancel_requested cancelled"


async def test_a_job_whose_end_was_asked_for_before_it_was_dispatched_is_ended(scene: Scene) -> None:
    await scene.write("cancel_requested", "given_back:lost", "dispatched")

    assert await take(scene.dispatch(5), scene.worker(), wanted=lambda: True) is None
    assert scene.story.endswith("given_back dispatched cancelled")


async def test_a_claim_reads_nothing_where_nobody_has_written_since(scene: Scene) -> None:
    tools = scene.worker()
    object.__setattr__(tools, "log", Unread(tools.log))

    claimed = await take(scene.dispatch(), tools, wanted=lambda: True)

    assert claimed is not None
    assert claimed.job.worker == "worker-1"


async def test_the_input_is_on_its_way_while_the_claim_is_written(scene: Scene) -> None:
    tools, fetched = scene.worker(fate=lambda _: Fate.ARRIVES if fetched else Fate.LOST), list[str]()

    class Watched(MemoryBucket):
        async def get(self, name: str) -> bytes | None:
            fetched.append(name)
            return await super().get(name)

    object.__setattr__(tools, "inputs", Watched())

    claimed = await take(scene.dispatch(), tools, wanted=lambda: True)

    assert claimed is not None
    assert await claimed.content is None
    assert fetched == [input_name("job-1", claimed.job.submission.input_digest)]


async def test_what_is_no_dispatch_is_dropped_and_said(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    good = scene.dispatch()
    dispatch = Dispatch(Record(7, good.record.at, Unreadable("headgate.jobs.v1.x", "no JSON")))

    assert await take(dispatch, scene.worker(), wanted=lambda: True) is None
    assert dispatch.acked
    assert "record 7" in caplog.text


async def test_a_worker_that_is_told_to_stop_hands_the_message_to_another(scene: Scene) -> None:
    dispatch = scene.dispatch()

    claimed = await take(dispatch, scene.worker(), wanted=lambda: False)

    assert claimed is None
    assert (dispatch.acked, dispatch.naked) == (False, True)
    assert scene.story == "queued dispatched"


async def test_a_worker_that_is_told_to_stop_while_the_log_is_away_hands_the_message_back(scene: Scene) -> None:
    dispatch, tools = scene.dispatch(), scene.worker()
    wanted = iter([True, True, True, False])
    cast("MemoryLog", tools.log).wire.connected = False

    claimed = await take(dispatch, tools, wanted=lambda: next(wanted, False))

    assert claimed is None
    assert (dispatch.acked, dispatch.naked) == (False, True)


async def test_a_claim_whose_answer_was_lost_is_ours(scene: Scene) -> None:
    fates = iter([Fate.UNHEARD, *[Fate.LOST] * 30])

    claimed = await take(scene.dispatch(), scene.worker(fate=lambda _: next(fates, Fate.ARRIVES)), wanted=lambda: True)

    assert claimed is not None
    assert scene.story == "queued dispatched started"


class Pool:
    """Hands out numbers to waiters, and counts them."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Any] = asyncio.Queue()
        self.waiting = 0

    async def next(self) -> Any:
        self.waiting += 1
        try:
            return await self.queue.get()
        finally:
            self.waiting -= 1


async def test_a_worker_has_one_open_request_while_a_slot_is_free_and_none_else() -> None:
    pool, done = Pool(), asyncio.Event()
    intake = Intake(pool, lambda _: asyncio.create_task(_until(done)), slots=2, room=enough)
    await intake.start()
    waiting: list[int] = []
    for number in range(2):
        await breathe()
        waiting.append(pool.waiting)
        pool.queue.put_nowait(number)
    await breathe()
    with_all_busy = pool.waiting
    done.set()
    await breathe()

    assert (waiting, with_all_busy, pool.waiting) == ([1, 1], 0, 1)
    await intake.stop()


async def test_stopping_the_intake_ends_requests_and_no_attempt() -> None:
    pool, done = Pool(), asyncio.Event()
    attempts: list[asyncio.Task[None]] = []

    def serve(_: object) -> asyncio.Task[None]:
        attempts.append(asyncio.create_task(_until(done)))
        return attempts[-1]

    intake = Intake(pool, serve, slots=2, room=enough)
    await intake.start()
    pool.queue.put_nowait(1)
    await breathe()

    await intake.stop()
    await intake.stop()

    assert pool.waiting == 0
    assert not attempts[0].done()
    done.set()
    await attempts[0]


async def test_a_fault_of_the_pool_ends_the_intake_with_it() -> None:
    class Broken(Pool):
        async def next(self) -> Any:
            raise PermissionError("no")

    intake = Intake(Broken(), lambda _: asyncio.create_task(_until(asyncio.Event())), slots=1, room=enough)
    await intake.start()

    with pytest.raises(PermissionError):
        await intake.ended()


async def test_a_worker_without_room_asks_for_nothing_until_there_is_some() -> None:
    pool, freed = Pool(), asyncio.Event()
    intake = Intake(pool, lambda _: asyncio.create_task(_until(asyncio.Event())), slots=2, room=lambda: _until(freed))
    await intake.start()
    await breathe()
    without = pool.waiting

    freed.set()
    await breathe()

    assert (without, pool.waiting) == (0, 1)
    await intake.stop()


async def _until(done: asyncio.Event) -> None:
    await done.wait()


async def breathe() -> None:
    for _ in range(6):
        await asyncio.sleep(0)

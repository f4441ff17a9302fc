"""How an attempt writes: conflicts, outages, and the end of what is ours."""

import asyncio
from collections.abc import Callable
from itertools import count

import pytest

from headgate_contracts import Job, Priority
from headgate_contracts.events import JobCancelled, JobStage
from libs.eventlog import Appended
from libs.eventlog.decoding import job_in
from libs.eventlog.expectation import Message
from libs.eventlog.memory import Fate, MemoryLog, MemoryServer
from libs.runtime.telemetry import job_trace
from services.worker.attempt.chain import Chain
from services.worker.domain import finish, next_stage
from tests.fixtures.lives import event_id, step
from tests.fixtures.logs import HastyClock

STARTED = "queued dispatched started"


class Scene:
    """A log, the job in it, and others who write."""

    def __init__(self) -> None:
        self.clock = HastyClock()
        self.server = MemoryServer(self.clock, epoch="E1")
        self.log = MemoryLog(self.server, clock=self.clock)
        self.ours = True
        self._ids = count()

    async def write(self, *words: str) -> Job:
        for word in words:
            job = self.job
            event = step(job or "job-1", word, salt=str(next(self._ids)))
            assert isinstance(await self.log.append(event, after=job), Appended)
        assert self.job is not None
        return self.job

    def chain(self, *, fate: Callable[[object], Fate] = lambda _: Fate.ARRIVES) -> Chain:
        assert self.job is not None
        log = MemoryLog(self.server, clock=self.clock, fate=fate, settle_within_s=1)
        new_id = lambda: event_id("worker", next(self._ids))  # noqa: E731 - a name for an argument
        return Chain(self.job, log=log, clock=self.clock, new_id=new_id, ours=lambda: self.ours)

    @property
    def job(self) -> Job | None:
        return job_in([kept.record() for kept in self.server._kept])

    @property
    def story(self) -> str:
        return " ".join(kept.message.subject.split(".")[6] for kept in self.server._kept)


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_what_is_written_is_the_jobs_next_event(scene: Scene) -> None:
    chain = Chain(await scene.write(*STARTED.split()), log=scene.log, clock=scene.clock, new_id=_id, ours=lambda: True)

    written = await chain.write(next_stage(chain.job))

    assert isinstance(written, JobStage)
    assert chain.job.status == "scaffold"
    assert scene.job == chain.job.model_copy(update={"updated_at": scene.job and scene.job.updated_at})


async def test_every_event_carries_the_jobs_own_trace(scene: Scene) -> None:
    await scene.write(*STARTED.split())
    chain = scene.chain()

    await chain.write(next_stage(chain.job))

    record = scene.server._kept[-1].record()
    assert record.traceparent == job_trace(chain.job).header


async def test_an_event_of_another_that_is_nothing_to_us_is_stepped_over(scene: Scene) -> None:
    await scene.write(*STARTED.split(), "cancel_requested")
    chain = scene.chain()
    chain.job = chain.job.model_copy(update={"seq": 3, "sequence": 3})  # as it was before that was asked

    written = await chain.write(next_stage(chain.job))

    assert isinstance(written, JobCancelled)
    assert scene.story == "queued dispatched started cancel_requested cancelled"


async def test_nothing_is_written_after_somebody_else_has_ended_the_attempt(scene: Scene) -> None:
    await scene.write(*STARTED.split(), "scaffold")
    chain = scene.chain()
    await scene.write("given_back:lost")

    written = await chain.write(next_stage(chain.job))

    assert written is None
    assert scene.story.endswith("stage given_back")


async def test_nothing_is_written_into_the_attempt_of_another(scene: Scene) -> None:
    await scene.write(*STARTED.split(), "scaffold")
    chain = scene.chain()
    await scene.write("given_back:lost", "dispatched", "started", "scaffold")

    assert await chain.write(next_stage(chain.job)) is None


async def test_what_became_of_a_job_that_was_given_away_is_not_read(scene: Scene) -> None:
    """A worker was not told its job's class, and a change of it could not follow."""
    await scene.write(*STARTED.split(), "scaffold")
    chain = scene.chain()
    chain.job = chain.job.model_copy(update={"priority": Priority.BACKGROUND})
    await scene.write("given_back:lost", "reprioritized")

    assert await chain.look_again() is False


async def test_nothing_is_tried_once_the_attempt_is_not_ours(scene: Scene) -> None:
    await scene.write(*STARTED.split())
    chain, scene.ours = scene.chain(), False

    assert await chain.write(next_stage(chain.job)) is None
    assert await chain.look_again() is False
    assert scene.story == STARTED


async def test_an_outage_is_waited_out_with_the_same_event(scene: Scene) -> None:
    await scene.write(*STARTED.split())
    tries: list[str] = []

    def fate(messages: object) -> Fate:
        assert isinstance(messages, tuple)
        message: Message = messages[0]
        tries.append(message.id)
        return Fate.ARRIVES if len(tries) > 60 else Fate.LOST

    chain = scene.chain(fate=fate)
    written = await chain.write(next_stage(chain.job))

    assert written is not None
    assert len(set(tries)) == 1
    assert scene.story == f"{STARTED} stage"


async def test_an_event_whose_answer_was_lost_is_not_taken_for_a_conflict(scene: Scene) -> None:
    await scene.write(*STARTED.split())
    fates = iter([Fate.UNHEARD, *[Fate.LOST] * 40])
    chain = scene.chain(fate=lambda _: next(fates, Fate.ARRIVES))

    written = await chain.write(next_stage(chain.job))

    assert isinstance(written, JobStage)
    assert scene.story == f"{STARTED} stage"


async def test_an_outage_that_outlasts_the_lease_writes_nothing(scene: Scene) -> None:
    await scene.write(*STARTED.split())
    chain = scene.chain(fate=lambda _: Fate.LOST)
    writing = asyncio.create_task(chain.write(next_stage(chain.job)))
    await asyncio.sleep(0)

    scene.ours = False

    assert await writing is None


async def test_a_look_finds_what_was_asked_meanwhile(scene: Scene) -> None:
    await scene.write(*STARTED.split(), "scaffold")
    chain = scene.chain()
    await scene.write("cancel_requested")

    ours = await chain.look_again()

    assert ours
    assert chain.job.cancel_requested_by == "user-1"


async def test_a_look_waits_for_a_write_that_is_under_way(scene: Scene) -> None:
    await scene.write(*STARTED.split(), "scaffold", "code", "deps", "checks")
    chain = scene.chain()

    written, ours = await asyncio.gather(chain.write(finish(chain.job, result=None, duration_s=1)), chain.look_again())

    assert written is not None
    assert ours is False  # it has ended
    assert chain.job.status == "ready"


def _id() -> str:
    return event_id("worker")

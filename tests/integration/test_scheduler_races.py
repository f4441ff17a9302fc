"""The scheduler's batch against admission's event, each over a connection of its own: one of them wins, every time.

The scheduler writes what it decided, behind a link of its chain; admission writes after the job as it saw it. Which is
first changes by chance and by a few milliseconds' start.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from headgate_contracts import Job, JobEvent, advance
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobData, JobDispatched, SchedulerCommitted
from libs.eventlog import Appended, Conflicted, Entry, JetStreamLog
from libs.policy import Policy
from services.scheduler.batches import Batch, compose, linked, signed
from services.scheduler.domain import Circumstances, Due, decide, start
from tests.fixtures.lives import STARTED_AT, event_id, life_of, queued, step
from tests.fixtures.logs import caught_up, opened
from tests.fixtures.suites import some_or_many

MANY = 1000
some_or_many_races = some_or_many("races", 50, MANY, suite="races")
AT_ONCE = 25  # so many races at a time, each on a chain of its own
HEAD_START_S = 0.004  # of either
GROUPS = ("user:user-1", "project:project-1")
ASKED = "queued dispatched started scaffold code deps checks awaiting_confirmation"


@some_or_many_races
@pytest.mark.parametrize(
    ("story", "word", "then"),
    [
        ("queued", "cancelled", {"cancelled", "starting"}),
        ("queued", "moved:operator", {"queued", "starting"}),
        (ASKED, "confirmed", {"queued", "failed"}),
    ],
)
async def test_of_a_batch_and_an_event_one_wins(
    nats_url: str, story: str, word: str, then: set[str], races: int
) -> None:
    random, names = Random(word), [f"{word.partition(':')[0]}-{number}" for number in range(races)]
    async with opened(nats_url) as scheduler, opened(nats_url) as admission:
        committed: list[str] = []
        for first in range(0, races, AT_ONCE):
            jobs = await _brought_there(admission, names[first : first + AT_ONCE], story)
            rivals = (_race(scheduler, admission, job, step(job, word, salt="admission"), random) for job in jobs)
            committed += [name for name in await asyncio.gather(*rivals) if name]
        records = (await caught_up(scheduler)).records

    events = [record.event.data for record in records]
    ends = {data.job_id: data.status.value for data in events if isinstance(data, JobData)}
    written = Counter(data.job_id for data in events if isinstance(data, JobData))
    assert sorted(data.jobs[0] for data in events if isinstance(data, SchedulerCommitted)) == sorted(committed)
    assert set(written.values()) == {len(story.split()) + 1}, "the loser has written nothing"
    assert len(ends) == races
    won = set(ends.values())
    assert won == then if races == MANY else won <= then, "of many, each of the two has won at least one"


@some_or_many_races
async def test_of_two_starts_over_the_same_records_and_a_strangers_event_one_stands_behind_them(
    nats_url: str, races: int
) -> None:
    """Each a message of its own, of different jobs: nothing but where the log ends stands between them."""
    random, won = Random("alone"), list[int]()
    async with opened(nats_url) as one, opened(nats_url) as other, opened(nats_url) as admission:
        for number in range(races):
            mine, yours = await _brought_there(admission, [f"a-{number}", f"b-{number}"], "queued")
            outcomes = await asyncio.gather(
                _after(random.uniform(0, HEAD_START_S / 4), one.append_batch([_alone(mine, over=yours.seq)])),
                _after(random.uniform(0, HEAD_START_S / 4), other.append_batch([_alone(yours, over=yours.seq)])),
                _after(random.uniform(0, HEAD_START_S / 4), admission.append(queued(f"c-{number}"), after=None)),
            )
            places = [each.records[0].seq if isinstance(each, Appended) else None for each in outcomes]
            won.append(places.index(yours.seq + 1))
            assert set(places[:2]) <= {None, yours.seq + 1}, "a start stands there, or nowhere"
        written = [record.event.data for record in (await caught_up(one)).records]

    starts = [data for data in written if isinstance(data, JobDispatched)]
    assert len(starts) == sum(winner < 2 for winner in won)
    assert set(won) == {0, 1, 2} if races == MANY else set(won)


async def _race(
    scheduler: JetStreamLog, admission: JetStreamLog, job: Job, theirs: JobEvent, random: Random
) -> str | None:
    """The job's id, where the batch was the first."""
    late = random.uniform(-HEAD_START_S, HEAD_START_S)
    committed, written = await asyncio.gather(
        _after(max(0.0, late), scheduler.append_batch(_entries(_batch(job, shard=job.id)))),
        _after(max(0.0, -late), admission.append(theirs, after=job)),
    )

    assert {type(committed), type(written)} == {Appended, Conflicted}
    return job.id if isinstance(committed, Appended) else None


def _batch(job: Job, *, shard: str) -> Batch:
    """What the scheduler would write now: the start of a queued job, the end of an unanswered question."""
    given = Circumstances(now=utc(0), policy=Policy(), debug_id="d" * 32)
    unanswered = decide(Due.CONFIRM_TIMEOUT, job, given=given)
    starts = [] if unanswered else [start(job, groups=GROUPS, given=given)]
    limits: dict[str, int] = dict.fromkeys(GROUPS, 3)
    batch = compose(
        [unanswered] if unanswered else [], starts, shard=shard, leader="s", limits=limits, slots={"default": 1}
    )
    assert batch is not None
    return batch


def _alone(job: Job, *, over: int) -> Entry:
    return Entry(step(job, "dispatched", salt="alone"), job, over=over)


def _entries(batch: Batch) -> list[Entry]:
    [decision] = batch.decisions
    job = decision.job
    link = linked(batch.link, event_id=event_id("link", job.id), now=STARTED_AT)
    return [Entry(link, 0), Entry(signed(decision, event_id=event_id("scheduler", job.id), now=STARTED_AT), job)]


async def _after(seconds: float, write: Any) -> Any:
    await asyncio.sleep(seconds)
    return await write


async def _brought_there(log: JetStreamLog, names: list[str], story: str) -> list[Job]:
    """Jobs with that story behind them, one batch a word."""
    jobs: dict[str, Job] = {}
    for events in zip(*(life_of(name, story) for name in names), strict=True):
        stored = await log.append_batch([Entry(event, jobs.get(event.data.job_id, 0)) for event in events])
        assert isinstance(stored, Appended)
        for record, event in zip(stored.records, events, strict=True):
            jobs[event.data.job_id] = advance(jobs.get(event.data.job_id), event, seq=record.seq)
    return list(jobs.values())

"""Two replicas of admission on real servers, asked for the same at the same instant: one winner, every time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest_asyncio

from headgate_contracts import Job, Status, advance
from headgate_contracts.vocabulary import Priority
from libs.eventlog import Appended, JetStreamLog
from libs.policy import Policy
from services.admission.domain import etag_of
from services.admission.events import Actor
from services.admission.outcomes import Accepted, Changed, KeyReused, NotAsked, TooManyChanges
from tests.fixtures.lives import life_of
from tests.fixtures.observing import observe
from tests.fixtures.replicas import Replica, replicas
from tests.fixtures.suites import some_or_many

some_or_many_races = some_or_many("races", 50, 1000, suite="races")
AT_ONCE = 50
PLENTY = {
    "queue": {"cap": 10_000, "user_share": 5_000},
    "tiers": {"partner": {"jobs_per_day": 10_000}},
    "submissions": {"per_minute": 100_000, "changes_per_minute": 100_000},
}
QUESTION = "queued dispatched started scaffold code deps checks awaiting_confirmation"
Pair = tuple[Replica, Replica]


@pytest_asyncio.fixture
async def pair(nats_url: str, redis_url: str) -> AsyncIterator[Pair]:
    async with replicas(nats_url, redis_url, policy=Policy.model_validate(PLENTY)) as pair:
        yield pair


@some_or_many_races
async def test_of_two_submissions_with_one_key_one_makes_the_job(pair: Pair, races: int) -> None:
    one, other = pair

    async def race(number: int) -> None:
        user, key = f"u{number % 20}", f"key-{number}"
        body = {"input": {"n": number}}
        outcomes = await asyncio.gather(
            *(replica.submitting.submit(replica.new(user, key=key, **body)) for replica in pair)
        )
        jobs = [outcome.job for outcome in outcomes if isinstance(outcome, Accepted)]
        assert len(jobs) == 2, outcomes
        assert {job.id for job in jobs} == {one.new(user, key=key).id}
        assert len({job.seq for job in jobs}) == 1
        assert sorted(outcome.again for outcome in outcomes if isinstance(outcome, Accepted)) == [False, True]

    await _many(race, races=races)

    assert (await one.log.mark()).seq == races
    await other.fold()
    assert len(await other.view.queue(count=2 * races)) == races
    today = (await observe(other.view)).quotas
    assert sum(map(len, today.values())) == races


@some_or_many_races
async def test_of_two_bodies_under_one_key_one_is_told_that_it_is_taken(pair: Pair, races: int) -> None:
    async def race(number: int) -> None:
        news = [replica.new("u1", key=f"key-{number}", input={"from": place}) for place, replica in enumerate(pair)]
        outcomes = await asyncio.gather(
            *(replica.submitting.submit(new) for replica, new in zip(pair, news, strict=True))
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [Accepted.__name__, KeyReused.__name__]

    await _many(race, races=races)

    assert (await pair[0].log.mark()).seq == races


@some_or_many_races
async def test_of_two_answers_to_a_question_one_is_taken(pair: Pair, races: int) -> None:
    async def race(number: int) -> None:
        job = await _brought_to(pair[0].log, f"job-{number}", QUESTION)
        outcomes = await asyncio.gather(*(replica.changing.confirm(job, by="user-1") for replica in pair))
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [Accepted.__name__, NotAsked.__name__]
        jobs = [outcome.job for outcome in outcomes if not isinstance(outcome, TooManyChanges)]
        assert {(job.status, job.confirmations) for job in jobs} == {(Status.QUEUED, 1)}

    await _many(race, races=races)


@some_or_many_races
async def test_of_two_who_saw_the_same_one_changes_the_priority(pair: Pair, races: int) -> None:
    async def race(number: int) -> None:
        job = await _brought_to(pair[0].log, f"job-{number}", "queued")
        seen = frozenset({etag_of(job)})
        outcomes = await asyncio.gather(
            *(
                replica.changing.prioritize(job, to, act=Actor("user-1"), expected=seen)
                for replica, to in zip(pair, (Priority.LOW, Priority.BACKGROUND), strict=True)
            )
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [Accepted.__name__, Changed.__name__]
        jobs = [outcome.job for outcome in outcomes if not isinstance(outcome, TooManyChanges)]
        assert len({(job.seq, job.priority) for job in jobs}) == 1

    await _many(race, races=races)

    assert (await pair[0].log.mark()).seq == 2 * races


async def _many(race: Callable[[int], Coroutine[Any, Any, None]], *, races: int) -> None:
    for start in range(0, races, AT_ONCE):
        await asyncio.gather(*(race(number) for number in range(start, min(start + AT_ONCE, races))))


async def _brought_to(log: JetStreamLog, job_id: str, story: str) -> Job:
    job: Job | None = None
    for event in life_of(job_id, story):
        answer = await log.append(event, after=job)
        assert isinstance(answer, Appended)
        job = advance(job, event, seq=answer.records[0].seq)
    assert job is not None
    return job

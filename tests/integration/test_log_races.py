"""Two writers, each over a connection of its own, who want the same transition: one of them wins, every time."""

import asyncio
from collections.abc import Sequence

import pytest

from headgate_contracts import Job, JobEvent, advance
from libs.eventlog import Appended, Conflicted, Entry, EventLog
from libs.local.cluster import NatsCluster
from tests.fixtures.lives import life_of, step
from tests.fixtures.logs import caught_up, opened
from tests.fixtures.suites import some_or_many

some_or_many_races = some_or_many("races", 50, 1000, suite="races")
AT_ONCE = 50
TO_CHECKS = "queued dispatched started scaffold code deps checks"
# what a job has behind it, and the two that both follow from there
TRANSITIONS = [
    ("", "queued", "queued"),
    ("", "queued", "scheduled"),
    ("queued", "dispatched", "cancelled"),
    ("queued", "dispatched", "dispatched"),
    ("queued", "reprioritized:operator", "dispatched"),
    ("scheduled", "queued:released", "cancelled"),
    ("waiting", "queued:phase_ready", "failed"),
    ("queued dispatched", "started", "started"),
    ("queued dispatched started", "scaffold", "given_back:lost"),
    ("queued dispatched started scaffold", "code", "cancel_requested"),
    (TO_CHECKS, "ready", "given_back:lost"),
    (TO_CHECKS, "awaiting_confirmation", "cancel_requested"),
    (f"{TO_CHECKS} awaiting_confirmation", "confirmed", "failed"),
]


@some_or_many_races
async def test_of_two_writers_one_wins_on_one_server(nats_url: str, races: int) -> None:
    async with opened(nats_url) as one, opened(nats_url) as other:
        await _require_one_winner_each(one, other, races=races)


@pytest.mark.timeout(600)
async def test_of_two_writers_one_wins_on_three_servers(nats_cluster: NatsCluster) -> None:
    first, second, _ = nats_cluster.urls
    async with opened(first, replicas=3) as one, opened(second, replicas=3) as other:
        await _require_one_winner_each(one, other, races=1000)


async def _require_one_winner_each(one: EventLog, other: EventLog, *, races: int) -> None:
    stories = {f"race-{number}": TRANSITIONS[number % len(TRANSITIONS)] for number in range(races)}
    jobs = await _brought_there(one, {job_id: story for job_id, (story, _, _) in stories.items()})

    for start in range(0, races, AT_ONCE):
        raced = list(stories)[start : start + AT_ONCE]
        await asyncio.gather(*(_race(one, other, jobs.get(job_id), job_id, stories[job_id][1:]) for job_id in raced))

    lengths = {job_id: len(story.split()) + 1 for job_id, (story, _, _) in stories.items()}
    await _require_lengths(one, lengths)


async def _race(one: EventLog, other: EventLog, job: Job | None, job_id: str, words: Sequence[str]) -> None:
    rivals = [step(job or job_id, word, salt=f"rival {number}") for number, word in enumerate(words)]

    outcomes = await asyncio.gather(one.append(rivals[0], after=job), other.append(rivals[1], after=job))

    [winner] = [outcome for outcome in outcomes if isinstance(outcome, Appended)]
    [loser] = [outcome for outcome in outcomes if isinstance(outcome, Conflicted)]
    assert loser.winner is not None
    assert loser.winner.event == winner.records[0].event


async def _brought_there(log: EventLog, stories: dict[str, str]) -> dict[str, Job]:
    """All jobs, each with its story behind it, event by event in batches."""
    jobs: dict[str, Job] = {}
    lives = {job_id: life_of(job_id, story) for job_id, story in stories.items() if story}
    while lives:
        for batch in _slices(list(lives)):
            entries = [Entry(lives[job_id].pop(0), jobs.get(job_id)) for job_id in batch]
            outcome = await log.append_batch(entries)
            assert isinstance(outcome, Appended)
            for stored in outcome.records:
                event: JobEvent = stored.event  # type: ignore[assignment]
                jobs[event.data.job_id] = advance(jobs.get(event.data.job_id), event, seq=stored.seq)
        lives = {job_id: rest for job_id, rest in lives.items() if rest}
    return jobs


async def _require_lengths(log: EventLog, lengths: dict[str, int]) -> None:
    found = dict.fromkeys(lengths, 0)
    for record in (await caught_up(log)).records:
        found[record.event.data.job_id] += 1
    assert found == lengths


def _slices(jobs: list[str]) -> list[list[str]]:
    return [jobs[start : start + AT_ONCE] for start in range(0, len(jobs), AT_ONCE)]

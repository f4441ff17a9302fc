"""How admission changes a job that is in, on the twins of log and view."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_contracts import Event, Job, Status, Tier, Writer, advance
from headgate_contracts.events import JobReprioritized
from headgate_contracts.vocabulary import ChangeReason, Priority
from libs.eventlog import Appended, Conflicted
from services.admission.domain import etag_of
from services.admission.events import Actor
from services.admission.outcomes import (
    Accepted,
    Changed,
    Ended,
    NeighbourGone,
    NoRoomBetween,
    NotAsked,
    TooManyChanges,
    Underway,
)
from tests.fixtures.lives import job_after, life_of, step
from tests.fixtures.memory_admission import MemoryAdmission


async def test_a_waiting_job_is_cancelled_at_once_and_gives_its_day_back(admission: MemoryAdmission) -> None:
    job = await admission.submitted()

    outcome = await admission.changing.cancel(job, act=Actor("u1", "changed my mind"))
    await admission.fold()

    assert isinstance(outcome, Accepted)
    assert outcome.job.status is Status.CANCELLED
    assert await admission.view.day_used("u1", 20_833) == 0
    assert await admission.view.queue() == ()


async def test_a_running_job_is_asked_to_end_once(admission: MemoryAdmission) -> None:
    job = await admission.submitted()
    await admission.log.append(step(job, "dispatched"), after=job)

    outcome = await admission.changing.cancel(job, act=Actor("u1", ""))
    assert isinstance(outcome, Accepted)
    again = await admission.changing.cancel(outcome.job, act=Actor("u1", ""))

    events = [record.event.data.EVENT for record in await admission.log.read(job.id)]  # type: ignore[union-attr]
    assert events == ["queued", "dispatched", "cancel_requested"]
    assert isinstance(again, Accepted)
    assert again.again


async def test_a_wish_that_outlived_its_attempt_is_granted_at_once(admission: MemoryAdmission) -> None:
    job = await admission.submitted()
    for word in ("dispatched", "started", "cancel_requested", "given_back:drained"):
        event = step(job, word)
        answer = await admission.log.append(event, after=job)
        assert isinstance(answer, Appended)
        job = advance(job, event, seq=answer.records[0].seq)

    outcome = await admission.changing.cancel(job, act=Actor("u1", ""))

    assert isinstance(outcome, Accepted)
    assert outcome.job.status is Status.CANCELLED


async def test_a_question_is_answered_once_with_what_the_cap_leaves(admission: MemoryAdmission) -> None:
    job = await asked(admission)

    outcome = await admission.changing.confirm(job, by="u1")
    again = await admission.changing.confirm(job, by="u1")

    assert isinstance(outcome, Accepted)
    assert (outcome.job.status, outcome.job.granted, outcome.job.standing) == (Status.QUEUED, 3, job.standing)
    assert isinstance(again, NotAsked)
    assert again.job.seq == outcome.job.seq


async def test_a_job_that_has_ended_is_left_alone(admission: MemoryAdmission) -> None:
    ended = job_after("queued cancelled")

    assert await admission.changing.cancel(ended, act=Actor("u1", "")) == Ended(ended)


async def test_cancel_and_dispatch_at_once_leave_one_legal_history(admission: MemoryAdmission) -> None:
    for _ in range(20):
        job = await admission.submitted()
        dispatched = await admission.log.append(step(job, "dispatched"), after=job)

        outcome = await admission.changing.cancel(job, act=Actor("u1", ""))

        assert isinstance(outcome, Accepted)
        expected = Status.CANCELLED if isinstance(dispatched, Conflicted) else Status.STARTING
        assert outcome.job.status is expected


async def test_the_last_batch_is_what_the_cap_leaves() -> None:
    admission = MemoryAdmission(tiers={"partner": {"cycles_per_batch": 3, "hard_cap": 3}})

    outcome = await admission.changing.confirm(await asked(admission), by="u1")

    assert isinstance(outcome, Accepted)
    assert outcome.job.granted == 2


# ── class and place ───────────────────────────────────────────────────────────


async def queued_jobs(admission: MemoryAdmission, count: int, **body: Any) -> list[Job]:
    found: list[Job] = []
    for number in range(count):
        outcome = await admission.submit(user=f"u{number}", tier=Tier.BOOTSTRAPPER, **body)
        assert isinstance(outcome, Accepted)
        found.append(outcome.job)
    await admission.fold()
    return found


async def order(admission: MemoryAdmission) -> list[str]:
    await admission.fold()
    return [entry.job for entry in await admission.view.queue()]


async def test_another_class_is_entered_by_arrival(admission: MemoryAdmission) -> None:
    first, second, third = await queued_jobs(admission, 3)

    for job in (third, first):
        outcome = await admission.changing.prioritize(job, Priority.LOW, act=Actor("op", "calm", operator=True))
        assert isinstance(outcome, Accepted)

    assert await order(admission) == [second.id, first.id, third.id]
    [*_, record] = await admission.log.read(first.id)
    assert isinstance(record.event, Event)
    changed = record.event.data
    assert isinstance(changed, JobReprioritized)
    assert (changed.from_, changed.to, changed.by, changed.reason, changed.note) == (
        Priority.NORMAL,
        Priority.LOW,
        "op",
        ChangeReason.OPERATOR,
        "calm",
    )


async def test_the_class_it_has_is_no_change(admission: MemoryAdmission) -> None:
    [job] = await queued_jobs(admission, 1)

    outcome = await admission.changing.prioritize(job, Priority.NORMAL, act=Actor("u0"))

    assert outcome == Accepted((job,), again=True)
    assert len(await admission.log.read(job.id)) == 1


async def test_a_scheduled_job_changes_its_class_too() -> None:
    admission = MemoryAdmission(tiers={"bootstrapper": {"jobs_per_day": 1}})
    await admission.fold()
    await admission.submit(tier=Tier.BOOTSTRAPPER)
    scheduled = await admission.submit(tier=Tier.BOOTSTRAPPER)
    assert isinstance(scheduled, Accepted)

    outcome = await admission.changing.prioritize(scheduled.job, Priority.LOW, act=Actor("u1"))

    assert isinstance(outcome, Accepted)
    assert (outcome.job.status, outcome.job.priority) == (Status.SCHEDULED, Priority.LOW)


@pytest.mark.parametrize("story", ["dispatched", "cancelled"])
async def test_what_has_started_or_ended_has_no_place(admission: MemoryAdmission, story: str) -> None:
    [job] = await queued_jobs(admission, 1)
    await admission.log.append(step(job, story), after=job)

    outcome = await admission.changing.prioritize(job, Priority.LOW, act=Actor("u0"))

    assert isinstance(outcome, Underway)
    assert outcome.job.status in (Status.STARTING, Status.CANCELLED)


async def test_of_two_who_saw_the_same_one_changes_it(admission: MemoryAdmission) -> None:
    [job] = await queued_jobs(admission, 1)

    first = await admission.changing.prioritize(job, Priority.LOW, act=Actor("u0"), expected=frozenset({etag_of(job)}))
    second = await admission.changing.prioritize(
        job, Priority.BACKGROUND, act=Actor("u0"), expected=frozenset({etag_of(job)})
    )

    assert isinstance(first, Accepted)
    assert second == Changed(first.job)


async def test_a_client_may_have_seen_more_than_the_view(admission: MemoryAdmission) -> None:
    [stale] = await queued_jobs(admission, 1)
    first = await admission.changing.prioritize(stale, Priority.LOW, act=Actor("u0"))
    assert isinstance(first, Accepted)

    outcome = await admission.changing.prioritize(
        stale, Priority.BACKGROUND, act=Actor("u0"), expected=frozenset({etag_of(first.job)})
    )

    assert isinstance(outcome, Accepted)
    assert outcome.job.priority is Priority.BACKGROUND


async def test_a_job_is_moved_before_and_after_others(admission: MemoryAdmission) -> None:
    first, second, third = await queued_jobs(admission, 3)

    before = await admission.changing.move(third, before=first.id, after=None, act=Actor("op", operator=True))
    moved = await order(admission)
    after = await admission.changing.move(first, before=None, after=second.id, act=Actor("op", operator=True))

    assert isinstance(before, Accepted)
    assert moved == [third.id, first.id, second.id]
    assert isinstance(after, Accepted)
    assert await order(admission) == [third.id, second.id, first.id]


async def test_a_move_beside_a_job_of_another_class_is_a_change_of_class(admission: MemoryAdmission) -> None:
    [low] = await queued_jobs(admission, 1, priority="low")
    first, second = await queued_jobs(admission, 2)

    outcome = await admission.changing.move(low, before=second.id, after=None, act=Actor("op", operator=True))

    assert isinstance(outcome, Accepted)
    assert outcome.job.priority is Priority.NORMAL
    assert await order(admission) == [first.id, low.id, second.id]


async def test_a_neighbour_that_is_not_queued_is_named(admission: MemoryAdmission) -> None:
    job, gone = await queued_jobs(admission, 2)
    await admission.changing.cancel(gone, act=Actor("op"))
    await admission.fold()

    outcome = await admission.changing.move(job, before=gone.id, after=None, act=Actor("op"))
    other = await admission.changing.move(gone, before=job.id, after=None, act=Actor("op"))

    assert outcome == NeighbourGone(gone.id)
    assert isinstance(other, Underway)


async def test_between_neighbours_on_consecutive_numbers_there_is_no_room(admission: MemoryAdmission) -> None:
    first, second, third = await queued_jobs(admission, 3)
    close = step(second, "moved:operator", writer=Writer.ADMISSION, place=first.standing.place + 1)  # type: ignore[union-attr]
    await admission.log.append(close, after=second)
    await admission.fold()

    outcome = await admission.changing.move(third, before=second.id, after=None, act=Actor("op"))

    assert outcome == NoRoomBetween()


# ── conflicts ─────────────────────────────────────────────────────────────────


async def test_a_reminder_between_question_and_answer_changes_nothing_about_the_answer(
    admission: MemoryAdmission,
) -> None:
    job = await asked(admission)
    reminded = step(job, "confirmation_reminder")
    await admission.log.append(reminded, after=job)

    outcome = await admission.changing.confirm(job, by="u1")

    assert isinstance(outcome, Accepted)
    assert outcome.job.status is Status.QUEUED


async def test_an_answer_to_the_first_question_does_not_answer_the_second(admission: MemoryAdmission) -> None:
    first = await asked(admission)
    answered = await admission.changing.confirm(first, by="u1")
    assert isinstance(answered, Accepted)
    job = answered.job
    for word in ["dispatched", "started", "scaffold", "code", "deps", "checks", "awaiting_confirmation"]:
        event = step(job, word)
        answer = await admission.log.append(event, after=job)
        assert isinstance(answer, Appended)
        job = advance(job, event, seq=answer.records[0].seq)

    late = await admission.changing.confirm(first, by="u1")

    assert isinstance(late, NotAsked)


async def test_the_unfinished_jobs_of_one_project_are_found_over_many_pages() -> None:
    admission = MemoryAdmission(
        queue={"cap": 500, "user_share": 400},
        tiers={"partner": {"jobs_per_day": 500}},
        submissions={"per_minute": 1000},
    )
    await admission.fold()
    for number in range(230):
        await admission.submit(project_id="blog" if number % 10 == 0 else "shop")
    ended = await admission.submit(project_id="blog")
    assert isinstance(ended, Accepted)
    await admission.changing.cancel(ended.job, act=Actor("u1"))
    await admission.fold()

    found = await admission.changing.unfinished("u1", wanted=lambda job: job.project_id == "blog")

    assert len(found) == 23
    assert [job.seq for job in found] == sorted((job.seq for job in found), reverse=True)


async def asked(admission: MemoryAdmission) -> Job:
    """A job that has asked its first question."""
    story = "queued dispatched started scaffold code deps checks awaiting_confirmation"
    job = None
    for event in life_of("job-1", story):
        answer = await admission.log.append(event, after=job)
        assert isinstance(answer, Appended)
        job = advance(job, event, seq=answer.records[0].seq)
    assert job is not None
    return job


async def test_a_change_costs_by_the_events_that_it_writes_and_operators_pay_nothing() -> None:
    admission = MemoryAdmission(submissions={"changes_per_minute": 6})
    await admission.fold()
    outcome = await admission.submitting.submit(*admission.phases(3))
    assert isinstance(outcome, Accepted)
    first = outcome.job
    user, operator = Actor("u1", "why not"), Actor("boss", "why not", operator=True)

    for to in (Priority.LOW, Priority.LOW, Priority.NORMAL):  # the second writes nothing
        assert isinstance(await admission.changing.prioritize(first, to, act=user), Accepted)
        first = await admission.reading.find(first.id) or first
    head = await admission.log.mark()
    refused = await admission.changing.prioritize(first, Priority.LOW, act=user)
    unwritten = await admission.log.mark() == head
    by_operator = await admission.changing.prioritize(first, Priority.LOW, act=operator)
    await admission.clock.advance_ms(30_000)
    later = await admission.changing.cancel(*outcome.jobs, act=user)

    assert refused == TooManyChanges(6, 30_000)
    assert unwritten
    assert isinstance(by_operator, Accepted)
    assert isinstance(later, Accepted)

"""How admission takes a workflow in, and submits one again, on the twins of log and view."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate_contracts import Event, Job, Status, advance
from headgate_contracts.events import JobScheduled, JobWaiting
from headgate_contracts.tokens import input_name, workflow_id_for_key
from headgate_contracts.vocabulary import Priority
from services.admission.domain import NewJob
from services.admission.events import Actor
from services.admission.outcomes import (
    Accepted,
    InputGone,
    KeyReused,
    NotOver,
    OverShare,
    Previewed,
    Underway,
)
from services.admission.phases import workflow_phases
from tests.fixtures.lives import step
from tests.fixtures.memory_admission import MemoryAdmission

TODAY = 20_833


async def taken_in(admission: MemoryAdmission, phases: tuple[NewJob, ...]) -> tuple[Job, ...]:
    outcome = await admission.submitting.submit(*phases)
    assert isinstance(outcome, Accepted), outcome
    await admission.fold()
    return outcome.jobs


async def lived(admission: MemoryAdmission, job: Job, story: str) -> Job:
    """The job after these events, in the log."""
    job = await admission.go_on(job, *story.split())
    await admission.fold()
    return job


async def test_a_workflow_is_in_the_log_as_a_whole_and_takes_one_place(admission: MemoryAdmission) -> None:
    phases = admission.phases(3)

    jobs = await taken_in(admission, phases)

    assert [job.status for job in jobs] == [Status.QUEUED, Status.WAITING, Status.WAITING]
    assert [job.seq for job in jobs] == [jobs[0].seq, jobs[0].seq + 1, jobs[0].seq + 2]
    assert await admission.view.day_used("u1", TODAY) == 1
    assert [entry.job for entry in await admission.view.queue()] == [jobs[0].id]
    for new in phases:
        assert await admission.inputs.get(input_name(new.id, new.submission.input_digest)) == new.input


async def test_a_workflow_that_is_refused_is_not_there_at_all() -> None:
    admission = MemoryAdmission(queue={"cap": 10, "user_share": 1})
    await admission.fold()
    await admission.submit()
    phases = admission.phases(3)

    assert await admission.submitting.submit(*phases) == OverShare(1)
    for new in phases:
        assert await admission.log.read(new.id) == []
        assert await admission.inputs.get(input_name(new.id, new.submission.input_digest)) is None


async def test_a_workflow_whose_later_phase_is_taken_is_not_there_at_all(admission: MemoryAdmission) -> None:
    phases = admission.phases(2, workflow_id="w1")
    await admission.submit(job_id=phases[1].id)

    assert await admission.submitting.submit(*phases) == KeyReused("w1-1")
    assert await admission.log.read("w1-1") == []


async def test_a_workflow_over_the_days_cap_waits_as_a_whole_for_tomorrow() -> None:
    admission = MemoryAdmission(tiers={"partner": {"jobs_per_day": 1}})
    await admission.fold()
    await admission.submit()

    jobs = await taken_in(admission, admission.phases(2))

    assert [job.status for job in jobs] == [Status.SCHEDULED, Status.WAITING]
    [record] = await admission.log.read(jobs[0].id)
    assert isinstance(record.event, Event)
    assert isinstance(record.event.data, JobScheduled)
    assert await admission.view.day_used("u1", TODAY + 1) == 1


async def test_the_same_key_is_the_same_workflow(admission: MemoryAdmission) -> None:
    workflow_id = workflow_id_for_key("u1", "key")
    first = await taken_in(admission, admission.phases(2, workflow_id=workflow_id))

    again = await admission.submitting.submit(*admission.phases(2, workflow_id=workflow_id))
    longer = await admission.submitting.submit(*admission.phases(3, workflow_id=workflow_id))
    other = await admission.submitting.submit(*admission.phases(2, workflow_id=workflow_id, priority="low"))
    begins_alike, _ = admission.phases(2, workflow_id=workflow_id)
    _, ends_otherwise = admission.phases(2, workflow_id=workflow_id, phases=[{"input": {"phase": 1}}, {"input": {}}])
    mixed = await admission.submitting.submit(begins_alike, ends_otherwise)

    assert isinstance(again, Accepted)
    assert ([job.seq for job in again.jobs], again.again) == ([job.seq for job in first], True)
    assert longer == other == mixed == KeyReused(f"{workflow_id}-1")
    assert await admission.view.day_used("u1", TODAY) == 1


async def test_a_dry_run_of_a_workflow_keeps_nothing(admission: MemoryAdmission) -> None:
    phases = admission.phases(2)

    outcome = await admission.submitting.preview(*phases)

    assert isinstance(outcome, Previewed)
    assert [job.status for job in outcome.jobs] == [Status.QUEUED, Status.WAITING]
    assert await admission.log.read(phases[0].id) == []
    assert await admission.view.day_used("u1", TODAY) == 0


async def test_a_workflow_is_cancelled_as_a_whole(admission: MemoryAdmission) -> None:
    first, *later = await taken_in(admission, admission.phases(3))
    running = await lived(admission, first, "dispatched started scaffold")

    outcome = await admission.changing.cancel(running, *later, act=Actor("u1", "enough"))
    again = await admission.changing.cancel(*(await workflow_phases(admission.log, "w1")), act=Actor("u1"))

    assert isinstance(outcome, Accepted)
    assert [job.status for job in outcome.jobs] == [Status.SCAFFOLD, Status.CANCELLED, Status.CANCELLED]
    assert outcome.job.cancel_requested_by == "u1"
    assert isinstance(again, Accepted)
    assert again.again


async def test_phases_that_have_not_started_change_their_class_together(admission: MemoryAdmission) -> None:
    first, second, third = await taken_in(admission, admission.phases(3))
    await lived(admission, first, "dispatched")

    outcome = await admission.changing.prioritize(second, Priority.HIGH, act=Actor("u1"))
    refused = await admission.changing.prioritize(first, Priority.HIGH, act=Actor("u1"))

    assert isinstance(outcome, Accepted)
    phases = await workflow_phases(admission.log, "w1")
    assert [job.priority for job in phases] == [Priority.NORMAL, Priority.HIGH, Priority.HIGH]
    assert isinstance(refused, Underway)
    assert (outcome.job.id, third.id) == ("w1-2", "w1-3")


async def test_a_phase_that_is_queued_meanwhile_changes_all_the_same(admission: MemoryAdmission) -> None:
    first, second = await taken_in(admission, admission.phases(2))
    await lived(admission, first, "dispatched started scaffold code deps checks ready")
    stale = second
    await lived(admission, second, "queued:phase_ready")

    outcome = await admission.changing.prioritize(stale, Priority.LOW, act=Actor("u1"))

    assert isinstance(outcome, Accepted)
    assert (outcome.job.status, outcome.job.priority) == (Status.QUEUED, Priority.LOW)


# ── once more ─────────────────────────────────────────────────────────────────

FAILS_IN_CODE = "dispatched started scaffold code failed"


async def failed_job(admission: MemoryAdmission, *, checkpoint: str | None = None) -> Job:
    submitted = await admission.submit(input={"prompt": "once more"})
    assert isinstance(submitted, Accepted)
    job = await lived(admission, submitted.job, "dispatched started scaffold")
    event = step(job, "code", checkpoint=checkpoint)
    answer = await admission.log.append(event, after=job)
    job = advance(job, event, seq=answer.records[0].seq)  # type: ignore[union-attr]
    return await lived(admission, job, "failed")


async def test_a_retry_is_a_new_job_with_its_own_input_and_the_finished_work(admission: MemoryAdmission) -> None:
    failed = await failed_job(admission, checkpoint="saved-1")
    await admission.workspaces.put("saved-1", b"the workspace")

    outcome = await admission.retrying.retry(failed, new_id="j99", asker=admission.asker())

    assert isinstance(outcome, Accepted)
    job = outcome.job
    assert (job.id, job.status, job.submission.retry_of) == ("j99", Status.QUEUED, failed.id)
    assert (job.finished_stages, job.checkpoint) == (("scaffold",), "saved-1")
    assert await admission.inputs.get(input_name("j99", job.submission.input_digest)) == b'{"prompt":"once more"}'
    assert await admission.view.day_used("u1", TODAY) == 2


async def test_without_the_work_a_retry_begins_anew(admission: MemoryAdmission) -> None:
    failed = await failed_job(admission, checkpoint="gone-1")

    outcome = await admission.retrying.retry(failed, new_id="j99", asker=admission.asker())

    assert isinstance(outcome, Accepted)
    assert (outcome.job.finished_stages, outcome.job.checkpoint) == ((), None)


async def test_stages_that_leave_nothing_are_finished_all_the_same(admission: MemoryAdmission) -> None:
    failed = await failed_job(admission)

    outcome = await admission.retrying.retry(failed, new_id="j99", asker=admission.asker())

    assert isinstance(outcome, Accepted)
    assert (outcome.job.finished_stages, outcome.job.checkpoint) == (("scaffold",), None)


async def test_a_retry_does_not_wait_for_the_time_of_the_first_one(admission: MemoryAdmission) -> None:
    submitted = await admission.submit(run_at=datetime(2027, 1, 17, tzinfo=UTC))
    assert isinstance(submitted, Accepted)
    cancelled = await admission.changing.cancel(submitted.job, act=Actor("u1"))
    assert isinstance(cancelled, Accepted)

    outcome = await admission.retrying.retry(cancelled.job, new_id="j99", asker=admission.asker())

    assert isinstance(outcome, Accepted)
    assert outcome.job.status is Status.QUEUED


async def test_the_same_retry_twice_is_one_job(admission: MemoryAdmission) -> None:
    failed = await failed_job(admission, checkpoint="saved-1")
    await admission.workspaces.put("saved-1", b"the workspace")
    first = await admission.retrying.retry(failed, new_id="k99", asker=admission.asker())
    await admission.workspaces.delete("saved-1")

    again = await admission.retrying.retry(failed, new_id="k99", asker=admission.asker())

    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (again.again, again.job.seq) == (True, first.job.seq)
    assert await admission.view.day_used("u1", TODAY) == 2


async def test_the_same_key_for_another_retry_is_refused(admission: MemoryAdmission) -> None:
    await admission.retrying.retry(await failed_job(admission), new_id="k99", asker=admission.asker())

    assert await admission.retrying.retry(
        await failed_job(admission), new_id="k99", asker=admission.asker()
    ) == KeyReused("k99")


async def test_what_has_not_failed_cannot_be_retried(admission: MemoryAdmission) -> None:
    submitted = await admission.submit()
    assert isinstance(submitted, Accepted)
    ready = await lived(admission, submitted.job, "dispatched started scaffold code deps checks ready")

    assert await admission.retrying.retry(ready, new_id="j99", asker=admission.asker()) == NotOver(ready)


async def test_without_its_input_nothing_can_be_retried(admission: MemoryAdmission) -> None:
    failed = await failed_job(admission)
    await admission.inputs.delete(input_name(failed.id, failed.submission.input_digest))

    assert await admission.retrying.retry(failed, new_id="j99", asker=admission.asker()) == InputGone(failed)
    assert await admission.log.read("j99") == []


async def test_a_phase_is_retried_with_all_that_come_after_it(admission: MemoryAdmission) -> None:
    first, second, third = await taken_in(admission, admission.phases(3))
    await lived(admission, first, "dispatched started scaffold code deps checks ready")
    failed = await lived(admission, second, f"queued:phase_ready {FAILS_IN_CODE}")
    await lived(admission, third, "cancelled")

    outcome = await admission.retrying.retry(failed, new_id="w99", asker=admission.asker())

    assert isinstance(outcome, Accepted)
    assert [(job.id, job.status, job.submission.retry_of) for job in outcome.jobs] == [
        ("w99-1", Status.QUEUED, second.id),
        ("w99-2", Status.WAITING, third.id),
    ]
    [record] = await admission.log.read("w99-2")
    assert isinstance(record.event, Event)
    assert isinstance(record.event.data, JobWaiting)
    assert outcome.job.created_at <= datetime(2027, 1, 15, 8, 1, tzinfo=UTC)

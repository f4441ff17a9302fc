"""From where a job that has ended can be run again, at the log's level."""

from __future__ import annotations

import pytest

from headgate_contracts import Job, advance
from headgate_contracts.stages import next_stage_of
from headgate_contracts.tokens import input_name
from libs.eventlog import Appended
from services.admission.limits import NotAllowed
from services.admission.outcomes import Accepted, KeyReused, NoStart, NotOver
from services.admission.retrying import starting_points
from tests.fixtures.lives import step
from tests.fixtures.memory_admission import MemoryAdmission
from tests.unit.test_admission_workflows import failed_job, lived


async def begun(admission: MemoryAdmission, job: Job, stage: str, checkpoint: str) -> Job:
    """The job in this stage, which began with this workspace."""
    event = step(job, stage, checkpoint=checkpoint)
    answer = await admission.log.append(event, after=job)
    assert isinstance(answer, Appended)
    return advance(job, event, seq=answer.records[0].seq)


async def ran(admission: MemoryAdmission, *, ends: str = "ready", kept: tuple[str, ...] = ("s-1", "s-2", "s-3")) -> Job:
    """A job through all stages; each of the last three began with a workspace of its own."""
    submitted = await admission.submit(input={"prompt": "once more"})
    assert isinstance(submitted, Accepted)
    job = await lived(admission, submitted.job, "dispatched started scaffold")
    for stage, checkpoint in (("code", "s-1"), ("deps", "s-2"), ("checks", "s-3")):
        job = await begun(admission, job, stage, checkpoint)
    for name in kept:
        await admission.workspaces.put(name, b"the workspace")
    return await lived(admission, job, ends)


@pytest.mark.parametrize(
    ("start", "finished", "checkpoint"),
    [
        ("scaffold", (), None),
        ("code", ("scaffold",), "s-1"),
        ("checks", ("scaffold", "code", "deps"), "s-3"),
    ],
)
async def test_a_job_that_has_ended_is_run_again_from_a_stage_on_what_that_began_with(
    admission: MemoryAdmission, start: str, finished: tuple[str, ...], checkpoint: str | None
) -> None:
    ready = await ran(admission)

    outcome = await admission.retrying.retry(ready, new_id="j99", asker=admission.asker(), start=start)

    assert isinstance(outcome, Accepted), outcome
    assert (outcome.job.finished_stages, outcome.job.checkpoint) == (finished, checkpoint)
    assert (outcome.job.submission.retry_of, outcome.job.submission.retry_from) == (ready.id, start)
    again = await lived(
        admission,
        outcome.job,
        "dispatched started " + " ".join(("scaffold", "code", "deps", "checks")[: len(finished)]),
    )
    assert all(record.event.data.restored for record in (await admission.log.read("j99"))[3:])  # type: ignore[union-attr]
    assert next_stage_of(again).stage == start  # type: ignore[union-attr]


async def test_with_another_input_the_same_workspace_is_gone_on_from(admission: MemoryAdmission) -> None:
    ready = await ran(admission)
    other = {"prompt": "with a dark page"}

    outcome = await admission.retrying.retry(ready, new_id="j99", asker=admission.asker(), start="code", content=other)

    assert isinstance(outcome, Accepted), outcome
    name = input_name("j99", outcome.job.submission.input_digest)
    assert await admission.inputs.get(name) == b'{"prompt":"with a dark page"}'
    assert (await admission.titles.of(["j99"]))["j99"] == "with a dark page"
    assert outcome.job.checkpoint == "s-1"
    assert await admission.retrying.retry(ready, new_id="j99", asker=admission.asker(), start="deps") == KeyReused(
        "j99"
    )


async def test_a_stage_whose_workspace_is_gone_is_refused_with_those_that_are_left(admission: MemoryAdmission) -> None:
    ready = await ran(admission, kept=("s-1",))

    outcome = await admission.retrying.retry(ready, new_id="j99", asker=admission.asker(), start="checks")
    starts = await admission.retrying.starts(ready)

    assert isinstance(outcome, NoStart)
    assert (outcome.stage, outcome.possible) == ("checks", ("scaffold", "code"))
    assert [(each.stage, each.can_start) for each in starts.stages] == [
        ("scaffold", True),
        ("code", True),
        ("deps", False),
        ("checks", False),
    ]


async def test_a_stage_that_did_not_run_or_does_not_exist_is_no_start(admission: MemoryAdmission) -> None:
    failed = await failed_job(admission)
    submitted = await admission.submit()
    assert isinstance(submitted, Accepted)
    running = await lived(admission, submitted.job, "dispatched started scaffold")

    never, unknown, early = [
        await admission.retrying.retry(job, new_id="j99", asker=admission.asker(), start=start)
        for job, start in ((failed, "checks"), (failed, "deploy"), (running, "scaffold"))
    ]

    assert isinstance(never, NoStart)
    assert never.possible == ("scaffold", "code")
    assert isinstance(unknown, NotAllowed)
    assert unknown.field == "from"
    assert early == NotOver(running, with_stage=True)
    assert {each.why_not for each in (await admission.retrying.starts(running)).stages} == {"the job has not ended"}


async def test_a_stage_begins_with_what_it_had_the_last_time_and_what_was_restored_did_not_run(
    admission: MemoryAdmission,
) -> None:
    job = await ran(admission, ends="scaffold")  # another iteration
    job = await begun(admission, job, "code", "s-5")
    job = await lived(admission, job, "given_back:lost dispatched started scaffold failed")

    points = starting_points(await admission.log.read(job.id))

    assert {name: point.checkpoint for name, point in points.items()} == {
        "scaffold": None,
        "code": "s-5",
        "deps": "s-2",
        "checks": "s-3",
    }

"""The end of a user's content, on the twins: what goes, what stays, and that it may be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from headgate_contracts import Job
from headgate_contracts.commands import LogLine
from headgate_contracts.tokens import input_name
from libs.eventlog import Record
from libs.eventlog.history import History
from services.admission.erasing import Erased, NobodysJobs
from tests.fixtures.memory_admission import MemoryAdmission

OPS = {"by": "ops-1", "reason": "asked for"}


class Behind:
    """A copy of the log that comes up with its leader after a few looks."""

    def __init__(self, past: History, *, first_looks_miss: int) -> None:
        self._past = past
        self._end = first_looks_miss
        self._looks = 0

    async def first_events(self, user: str, *, before: int | None = None, count: int) -> list[Record]:
        self._looks += 1
        if self._looks < 5:
            before = min(before or self._end, self._end)
        return await self._past.first_events(user, before=before, count=count)

    async def jobs(self, ids: Sequence[str], *, after: int = 0) -> dict[str, Job]:
        return await self._past.jobs(ids, after=after)


async def with_content(admission: MemoryAdmission, job: Job) -> Job:
    await admission.results.put(f"{job.id}-1", b"result")
    await admission.workspaces.put(f"{job.id}-1-2", b"workspace")
    ts = datetime(2026, 1, 1, tzinfo=UTC)
    admission.lines.add(LogLine(job_id=job.id, attempt=1, stage="code", line="secret", ts=ts))
    return job


async def left(admission: MemoryAdmission, job: Job) -> list[bool]:
    """What of the job is still there: input, result, workspace, lines."""
    return [
        await admission.inputs.get(input_name(job.id, job.submission.input_digest)) is not None,
        await admission.results.get(f"{job.id}-1") is not None,
        await admission.workspaces.get(f"{job.id}-1-2") is not None,
        [page async for page in admission.lines.of(job.id)] != [],
    ]


async def test_everything_of_the_user_goes_and_nothing_of_others(admission: MemoryAdmission) -> None:
    mine = [await with_content(admission, await admission.submitted()) for _ in range(3)]
    theirs = await with_content(admission, await admission.submitted(user="u2"))
    for job in mine:
        await admission.go_on(job, "cancelled")

    outcome = await admission.erasing.erase("u1", **OPS)

    assert outcome == Erased(3, (), ())
    for job in mine:
        assert not any(await left(admission, job))
    assert all(await left(admission, theirs))


async def test_unfinished_jobs_are_ended_first(admission: MemoryAdmission) -> None:
    waiting = await admission.submitted()
    ended = await admission.go_on(await admission.submitted(), "cancelled")

    outcome = await admission.erasing.erase("u1", **OPS)

    assert outcome == Erased(2, (waiting.id,), ())
    assert [each.event for each in await admission.reading.history(waiting.id)] == ["queued", "cancelled"]
    assert len(await admission.reading.history(ended.id)) == 2


async def test_a_copy_of_the_log_that_is_behind_hides_no_job(admission: MemoryAdmission) -> None:
    old = await with_content(admission, await admission.submitted())
    new = await with_content(admission, await admission.submitted())

    outcome = await replace(
        admission.erasing, past=Behind(admission.erasing.past, first_looks_miss=new.first_seq)
    ).erase("u1", **OPS)

    assert outcome == Erased(2, (new.id, old.id), ())
    assert not any(await left(admission, new))


async def test_the_act_is_written_and_a_repeat_does_no_harm(admission: MemoryAdmission) -> None:
    await admission.go_on(await with_content(admission, await admission.submitted()), "cancelled")

    for _ in range(2):
        assert await admission.erasing.erase("u1", **OPS) == Erased(1, (), ())

    entries = await admission.overseeing.acts(since=None, after=0, count=9)
    erasures = [(each.about, each.by, each.reason) for each in entries if each.act == "content_erased"]
    assert erasures == [("u1", "ops-1", "asked for")] * 2


async def test_while_a_job_still_runs_the_act_is_not_written(admission: MemoryAdmission) -> None:
    running = await admission.go_on(await with_content(admission, await admission.submitted()), "dispatched", "started")

    outcome = await admission.erasing.erase("u1", **OPS)

    assert outcome == Erased(1, (running.id,), (running.id,))
    assert not any(await left(admission, running))
    names = [each.act for each in await admission.overseeing.acts(since=None, after=0, count=9)]
    assert names == ["cancel_requested"]  # asked for, by an operator; nothing says yet that all is gone


async def test_whom_the_log_does_not_know_has_nothing_to_erase(admission: MemoryAdmission) -> None:
    await admission.submitted()
    before = await admission.log.mark()

    assert await admission.erasing.erase("nobody", **OPS) == NobodysJobs()
    assert await admission.log.mark() == before

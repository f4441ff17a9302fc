"""The end of a user's content, on the twins: what goes, what stays, and that it may be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from headgate_contracts import Job
from headgate_contracts.commands import LogLine
from headgate_contracts.tokens import input_name
from libs.eventlog import Record
from services.admission.erasing import Erased, NobodysJobs, Past
from tests.fixtures.desk import Desk

OPS = {"by": "ops-1", "reason": "asked for"}


class Behind:
    """A copy of the log that comes up with its leader after a few looks."""

    def __init__(self, past: Past, *, first_looks_miss: int) -> None:
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


async def with_content(desk: Desk, job: Job) -> Job:
    await desk.results.put(f"{job.id}-1", b"result")
    await desk.workspaces.put(f"{job.id}-1-2", b"workspace")
    ts = datetime(2026, 1, 1, tzinfo=UTC)
    desk.lines.add(LogLine(job_id=job.id, attempt=1, stage="code", line="secret", ts=ts))
    return job


async def left(desk: Desk, job: Job) -> list[bool]:
    """What of the job is still there: input, result, workspace, lines."""
    return [
        await desk.inputs.get(input_name(job.id, job.submission.input_digest)) is not None,
        await desk.results.get(f"{job.id}-1") is not None,
        await desk.workspaces.get(f"{job.id}-1-2") is not None,
        [page async for page in desk.lines.of(job.id)] != [],
    ]


async def test_everything_of_the_user_goes_and_nothing_of_others(desk: Desk) -> None:
    mine = [await with_content(desk, await desk.submitted()) for _ in range(3)]
    theirs = await with_content(desk, await desk.submitted(user="u2"))
    for job in mine:
        await desk.go_on(job, "cancelled")

    outcome = await desk.erasing.erase("u1", **OPS)

    assert outcome == Erased(3, (), ())
    for job in mine:
        assert not any(await left(desk, job))
    assert all(await left(desk, theirs))


async def test_unfinished_jobs_are_ended_first(desk: Desk) -> None:
    waiting = await desk.submitted()
    ended = await desk.go_on(await desk.submitted(), "cancelled")

    outcome = await desk.erasing.erase("u1", **OPS)

    assert outcome == Erased(2, (waiting.id,), ())
    assert [each.event for each in await desk.reading.history(waiting.id)] == ["queued", "cancelled"]
    assert len(await desk.reading.history(ended.id)) == 2


async def test_a_copy_of_the_log_that_is_behind_hides_no_job(desk: Desk) -> None:
    old = await with_content(desk, await desk.submitted())
    new = await with_content(desk, await desk.submitted())

    outcome = await replace(desk.erasing, past=Behind(desk.erasing.past, first_looks_miss=new.first_seq)).erase(
        "u1", **OPS
    )

    assert outcome == Erased(2, (new.id, old.id), ())
    assert not any(await left(desk, new))


async def test_the_act_is_written_and_a_repeat_does_no_harm(desk: Desk) -> None:
    await desk.go_on(await with_content(desk, await desk.submitted()), "cancelled")

    for _ in range(2):
        assert await desk.erasing.erase("u1", **OPS) == Erased(1, (), ())

    entries = await desk.overseeing.acts(since=None, after=0, count=9)
    erasures = [(each.about, each.by, each.reason) for each in entries if each.act == "content_erased"]
    assert erasures == [("u1", "ops-1", "asked for")] * 2


async def test_while_a_job_still_runs_the_act_is_not_written(desk: Desk) -> None:
    running = await desk.go_on(await with_content(desk, await desk.submitted()), "dispatched", "started")

    outcome = await desk.erasing.erase("u1", **OPS)

    assert outcome == Erased(1, (running.id,), (running.id,))
    assert not any(await left(desk, running))
    names = [each.act for each in await desk.overseeing.acts(since=None, after=0, count=9)]
    assert names == ["cancel_requested"]  # asked for, by an operator; nothing says yet that all is gone


async def test_whom_the_log_does_not_know_has_nothing_to_erase(desk: Desk) -> None:
    await desk.submitted()
    before = await desk.log.mark()

    assert await desk.erasing.erase("nobody", **OPS) == NobodysJobs()
    assert await desk.log.mark() == before

"""The auditor of logs: it finds nothing in a sound log, and each kind of broken rule in one that is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headgate_contracts import Event, Job, Tier, Writer, advance
from headgate_contracts.envelope import AnyEvent
from headgate_contracts.events import Group, JobDispatched, LimitSet, LoneStart, PolicyReloaded, SchedulerCommitted
from libs.eventlog.values import Record
from libs.policy import Policy
from tests.fixtures.audit import Execution, Report, audit
from tests.fixtures.lives import STARTED_AT, event_id, life_of, step, submission

LIMITS = {"user:user-1": 3, "project:project-1": 3, "user:user-2": 3, "project:p2": 3}
SLOTS = {"default": 8}


def link(*jobs: str, limits: dict[str, int] | None = None, slots: dict[str, int] | None = None) -> AnyEvent:
    data = SchedulerCommitted(shard="main", leader="s", jobs=jobs, limits=limits or LIMITS, slots=slots or SLOTS)
    return Event(event_id("link", *jobs), Writer.SCHEDULER, STARTED_AT, data)


def with_links(events: Sequence[AnyEvent], **counted: Any) -> list[AnyEvent]:
    """Each of the scheduler's events in a batch of its own."""
    told: list[AnyEvent] = []
    for event in events:
        told += [link(event.data.about(), **counted)] if event.writer is Writer.SCHEDULER else []
        told.append(event)
    return told


def read(events: Sequence[AnyEvent], every_s: float = 1, **asked: Any) -> Report:
    """Links take no time, so that as much passes as the lives of the jobs say."""
    records: list[Record] = []
    passed_s = 0.0
    for seq, event in enumerate(events, start=1):
        passed_s += 0 if isinstance(event.data, SchedulerCommitted) else every_s
        records.append(Record(seq, STARTED_AT + timedelta(seconds=passed_s), event))
    return audit(records, policy=Policy(), **asked)


def found(report: Report) -> set[str]:
    return {violation.invariant for violation in report.violations}


def started(count: int, **asked: Any) -> list[AnyEvent]:
    """So many jobs of one user and one project, dispatched and left running."""
    events: list[AnyEvent] = []
    for number in range(count):
        events += life_of(f"job-{number}", "queued dispatched", **asked)
    return events


# ── a sound log ───────────────────────────────────────────────────────────────


def test_a_plain_life_breaks_nothing() -> None:
    report = read(with_links(life_of("job-1")))

    assert not report.violations, report
    assert report.ends == {"ready": 1}
    assert report.most == {"user:user-1": 1, "project:project-1": 1, "pool:default": 1}


def test_a_lost_and_a_cancelled_job_break_nothing() -> None:
    first = life_of("job-1", "queued dispatched started scaffold given_back:lost dispatched started cancelled")
    second = life_of("job-2", "scheduled queued cancelled", scheduled_for=STARTED_AT)

    report = read(with_links([*first, *second]))

    assert not report.violations, report


# ── I1: ends ──────────────────────────────────────────────────────────────────


def test_a_job_without_an_end_is_found() -> None:
    events = with_links(life_of("job-1", "queued dispatched started"))

    assert found(read(events)) == {"I1"}
    assert not found(read(events, drained=False))


def test_a_promised_job_that_the_log_does_not_know_is_found() -> None:
    assert found(read(with_links(life_of("job-1")), promised=["job-1", "job-2"])) == {"I1"}


def test_a_job_that_ends_twice_is_found() -> None:
    life = life_of("job-1")
    again = replace(life[-1], sequence=9, id=event_id("again"))

    assert {"I1", "I2"} <= found(read(with_links([*life, again])))


# ── I2: chains ────────────────────────────────────────────────────────────────


def test_a_gap_in_a_jobs_sequence_is_found() -> None:
    life = life_of("job-1")

    assert "I2" in found(read(with_links([*life[:2], *life[3:]])))


def test_an_event_of_the_wrong_writer_is_found() -> None:
    life = life_of("job-1")
    life[-1] = replace(life[-1], writer=Writer.ADMISSION)

    assert found(read(with_links(life))) == {"I2"}


def lone(life: Sequence[AnyEvent], **said: Any) -> list[AnyEvent]:
    """A first link, and the life of a job whose start was written alone: so it is in order, but for what is said."""
    start = life[1]
    assert isinstance(start.data, JobDispatched)
    told = {"leader": "s", "link": 1, "over": 2, "limits": (3, 3), "slots": 8} | said
    data = start.data.model_copy(update={"alone": LoneStart(**told)})
    return [link(), life[0], replace(start, data=data), *life[2:]]


def test_a_start_that_was_written_alone_breaks_nothing() -> None:
    report = read(lone(life_of("job-1")))

    assert not report.violations, report
    assert report.most == {"user:user-1": 1, "project:project-1": 1, "pool:default": 1}


@pytest.mark.parametrize("said", [{"over": 1}, {"over": 3}, {"link": 2}, {"leader": "another"}])
def test_a_start_that_stands_elsewhere_than_it_was_planned_for_is_found(said: dict[str, Any]) -> None:
    assert found(read(lone(life_of("job-1"), **said))) == {"I2"}


@pytest.mark.parametrize("said", [{"limits": (2, 3)}, {"slots": 0}])
def test_a_start_that_was_counted_with_other_limits_is_found(said: dict[str, Any]) -> None:
    assert found(read(lone(life_of("job-1"), **said))) == {"I5"}


def test_a_dispatch_outside_a_batch_is_found() -> None:
    assert "I2" in found(read(life_of("job-1")))


def test_a_batch_that_is_not_whole_is_found() -> None:
    life = with_links(life_of("job-1"))
    life[1] = link("job-1", "job-2")

    assert found(read(life)) == {"I2"}


# ── I3, I4: attempts ──────────────────────────────────────────────────────────


def test_a_second_claim_of_an_attempt_is_found() -> None:
    job = _job("queued dispatched started")
    second = step(job, "started", worker="worker-2", salt="again")

    assert "I3" in found(read(with_links([*life_of("job-1", "queued dispatched started"), second]), drained=False))


def test_a_result_of_an_old_attempt_is_found() -> None:
    story = "queued dispatched started scaffold code deps checks"
    old = step(_job(story), "ready")
    life = life_of("job-1", f"{story} given_back:lost dispatched started scaffold code deps checks")
    late = replace(old, sequence=len(life) + 1)

    assert "I3" in found(read(with_links([*life, late])))


def test_executions_that_overlap_are_found() -> None:
    life = with_links(life_of("job-1"))
    apart = [Execution("job-1", 1, 0.0, 1.0), Execution("job-1", 2, 1.0, 2.0)]
    overlap = [Execution("job-1", 1, 0.0, 1.5), Execution("job-1", 2, 1.0, 2.0)]

    assert not found(read(life, executions=apart))
    assert found(read(life, executions=overlap)) == {"I4"}


# ── I5: limits ────────────────────────────────────────────────────────────────


def test_one_job_too_many_of_a_user_is_found() -> None:
    assert not found(read(with_links(started(3)), drained=False))
    assert found(read(with_links(started(4)), drained=False)) == {"I5"}


def test_more_jobs_than_slots_are_found() -> None:
    assert found(read(with_links(started(3), slots={"default": 2}), drained=False)) == {"I5"}


def test_a_link_that_counts_with_a_limit_of_its_own_is_found() -> None:
    generous = {**LIMITS, "user:user-1": 9}

    assert found(read(with_links(started(1), limits=generous), drained=False)) == {"I5"}


def test_a_job_that_starts_without_a_slot_it_needs_is_found() -> None:
    wanted = submission(groups=(Group(name="group:project-1:db", limit=1),))
    life = life_of("job-1", submission=wanted)
    assert isinstance(life[1].data, JobDispatched)
    bare = life[1].data.model_copy(update={"groups": ("user:user-1", "project:project-1")})

    report = read(with_links([life[0], replace(life[1], data=bare), *life[2:]]))

    assert found(report) == {"I5"}
    assert "group:project-1:db" in str(report)


@pytest.mark.parametrize(("age_s", "broken"), [(1, False), (60, True)])
def test_an_old_limit_counts_for_as_long_as_a_commit_may_take(age_s: int, broken: bool) -> None:  # noqa: FBT001 a table's column
    lowered = Event(event_id("limit"), Writer.ADMISSION, STARTED_AT, LimitSet(group="user:user-1", limit=2, by="olga"))
    late = life_of("job-2", "queued dispatched")
    events = [*with_links(started(2)), lowered, *with_links(late)]

    report = read(events, every_s=age_s, drained=False)

    assert ("I5" in found(report)) is broken


def reload(**limits: int) -> AnyEvent:
    """Other numbers of a partner."""
    act = PolicyReloaded(by="olga", sections={"tiers": {"partner": limits}})
    return Event(event_id("reload"), Writer.ADMISSION, STARTED_AT, act)


@pytest.mark.parametrize(("age_s", "broken"), [(1, False), (60, True)])
def test_a_policy_of_before_counts_for_as_long_as_a_commit_may_take(age_s: int, broken: bool) -> None:  # noqa: FBT001 a table's column
    late = life_of("job-2", "queued dispatched")
    events = [*with_links(started(2)), reload(jobs_per_user=2), *with_links(late)]

    report = read(events, every_s=age_s, drained=False)

    assert ("I5" in found(report)) is broken


def test_a_higher_limit_holds_from_the_record_of_its_reload_on() -> None:
    higher = {**LIMITS, "user:user-1": 4, "project:project-1": 4}
    first, fourth = with_links(started(3)), with_links(life_of("job-3", "queued dispatched"), limits=higher)

    assert not found(read([*first, reload(jobs_per_user=4, jobs_per_project=4), *fourth], drained=False))
    assert found(read([*first, *fourth], drained=False)) == {"I5"}


def test_a_day_that_was_decided_by_a_number_of_no_policy_is_found() -> None:
    first = step("job-1", "queued", quota_day="2026-01-01", quota_cap=7)

    assert found(read([first], drained=False)) == {"I5"}
    assert not found(read([reload(jobs_per_day=7), first], drained=False))


def test_a_limit_below_what_runs_is_no_fault() -> None:
    lowered = Event(event_id("limit"), Writer.ADMISSION, STARTED_AT, LimitSet(group="user:user-1", limit=1, by="olga"))

    assert not found(read([*with_links(started(3)), lowered], drained=False))


def test_a_day_with_too_many_jobs_is_found_once_it_was_not_put_right() -> None:
    mine = submission(tier=Tier.BOOTSTRAPPER)
    asked = [step(f"job-{number}", "queued", submission=mine, quota_day="2026-01-01") for number in range(6)]
    story = "queued dispatched started given_back:lost"
    others = [life_of(f"other-{number}", story, user_id="user-2", project_id="p2") for number in range(3)]
    known = [event for life in others for event in with_links(life[:3])]
    first, *more = [with_links(life[3:]) for life in others]

    assert not found(read([*known, *asked, *first], drained=False))
    assert not found(read([*known, *asked, *first, link(), link(), link()], drained=False)), "these decide nothing"
    assert found(read([*known, *asked, *first, *more[0], *more[1]], drained=False)) == {"I5"}


def test_a_day_with_too_many_jobs_waits_for_the_view_and_none_of_them_is_started_meanwhile() -> None:
    mine = submission(tier=Tier.BOOTSTRAPPER)
    asked = [step(f"job-{number}", "queued", submission=mine, quota_day="2026-01-01") for number in range(6)]
    others = [life_of(f"other-{number}", "queued dispatched", user_id="user-2", project_id="p2") for number in range(3)]
    starts = [event for other in others for event in with_links(other)]
    last = life_of("job-5", "queued dispatched", submission=mine, quota_day="2026-01-01")[1]

    assert not found(read([*asked, *starts], drained=False))
    assert "I5" in found(read([*asked, *starts, *with_links([last])], drained=False))


# ── order ─────────────────────────────────────────────────────────────────────


def test_a_job_that_is_passed_too_often_is_found() -> None:
    first = step("slow", "queued", submission=submission(tier=Tier.BOOTSTRAPPER))
    passers = [step(f"fast-{number}", "queued", passed=("slow",)) for number in range(11)]

    assert not found(read([first, *passers[:10]], drained=False))
    assert found(read([first, *passers], drained=False)) == {"order"}
    assert not found(read([first, *passers], drained=False, view_was_lost=True))


def test_a_job_that_passes_its_equal_is_found() -> None:
    events = [step("first", "queued"), step("second", "queued", passed=("first",))]

    assert found(read(events, drained=False)) == {"order"}


def _job(story: str) -> Job:
    job: Job | None = None
    for event in life_of("job-1", story):
        job = advance(job, event)
    assert job is not None
    return job

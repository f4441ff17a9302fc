"""What the scheduler decides about a job, and in which order it writes: tables and single cases, without a store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from headgate_contracts import Job, Priority, Status, Tier, advance
from headgate_contracts.events import (
    Group,
    JobCancelled,
    JobConfirmationReminder,
    JobDispatched,
    JobFailed,
    JobGivenBack,
    JobMoved,
    JobQueued,
    JobReprioritized,
    JobScheduled,
)
from headgate_contracts.vocabulary import Fault, GivenBackReason, QueuedWhy
from libs.policy import Policy
from libs.policy.daily_cap import DayPlace, release_at
from services.scheduler.batches import BATCH_MAX, Batch, compose, linked, signed
from services.scheduler.domain import (
    SHUT_MAX_MS,
    Circumstances,
    Decision,
    Due,
    Placement,
    decide,
    shut_until_ms,
    spaced,
    start,
)
from tests.fixtures.lives import event_id, job_after, submission

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WEEK_MS = 604_800_000
GIVEN = Circumstances(now=NOW, policy=Policy(), debug_id="4bf92f3577b34da6a3ce929d0e0e4736", waited_ms=WEEK_MS)
GROUPS = ("user:user-1", "project:project-1")
LOST_ONCE = " dispatched started given_back:lost"


def decided(kind: Due, job: Job, given: Circumstances = GIVEN) -> object:
    """The data of the event, which the contracts must accept as the job's next one."""
    decision = decide(kind, job, given=given)
    if decision is None:
        return None
    advance(job, signed(decision, event_id=event_id(kind), now=NOW))
    return decision.data


def batch_of(*decisions: Decision, starts: tuple[Decision, ...] = ()) -> Batch:
    limits: dict[str, int] = dict.fromkeys(GROUPS, 3)
    batch = compose(decisions, starts, shard="main", leader="s1", limits=limits, slots={"default": 8})
    assert batch is not None
    return batch


def due(kind: Due, story: str, job_id: str = "job-1") -> Decision:
    decision = decide(kind, job_after(story, job_id), given=GIVEN)
    assert decision is not None
    return decision


def starting(job_id: str) -> Decision:
    return start(job_after("queued", job_id), groups=GROUPS, given=GIVEN)


@pytest.mark.parametrize(
    ("asked_s", "waited_ms", "told"),
    [
        (None, WEEK_MS - 1, None),
        (None, WEEK_MS, "604800 s (queue.default_ttl_s)"),
        (60, 59_999, None),
        (60, 60_000, "60 s (queue_ttl_s)"),
        (10 * 604_800, WEEK_MS, None),
    ],
)
def test_a_job_fails_once_it_has_waited_for_as_long_as_counts(
    asked_s: int | None, waited_ms: int, told: str | None
) -> None:
    job = job_after("queued", submission=submission(queue_ttl_s=asked_s))

    data = decided(Due.QUEUE_TTL, job, replace(GIVEN, waited_ms=waited_ms))

    assert (data is None) is (told is None)
    assert told is None or (isinstance(data, JobFailed) and f"at most {told} and never started" in (data.detail or ""))


# ── what is written at once ───────────────────────────────────────────────────


def test_what_leaves_the_queue_is_written_before_what_tells_and_what_enters() -> None:
    placed = replace(GIVEN, placement=Placement(2, 1 << 17, (), 1))
    entering = decide(Due.RELEASE, job_after("scheduled", "enters"), given=placed)
    leaving = decide(Due.SLIPPED, job_after("queued", "leaves"), given=replace(GIVEN, day=DayPlace(20_500, 0, 5)))
    assert entering is not None
    assert leaving is not None

    batch = batch_of(entering, due(Due.AGE, "queued", "rises"), leaving, starts=(starting("starts"),))

    assert [decision.job.id for decision in batch.decisions] == ["leaves", "rises", "enters", "starts"]


# ── what follows from the ledger ──────────────────────────────────────────────


def test_a_phase_enters_the_queue_where_there_is_room() -> None:
    job = job_after("waiting")
    placed = replace(GIVEN, placement=Placement(2, 1 << 17, ("job-9",), 4))

    data = decided(Due.PHASE, job, placed)

    assert isinstance(data, JobQueued)
    assert (data.why, data.place, data.passed) == (QueuedWhy.PHASE_READY, 1 << 17, ("job-9",))
    assert decided(Due.PHASE, job) is None


def test_a_doomed_phase_is_cancelled_and_says_why() -> None:
    data = decided(Due.DOOMED, job_after("waiting"), replace(GIVEN, cause="phase 1 of the workflow failed"))

    assert isinstance(data, JobCancelled)
    assert (data.by, data.reason) == ("scheduler", "phase 1 of the workflow failed")


def test_a_job_over_its_day_is_scheduled_as_admission_would_have() -> None:
    day = DayPlace((NOW.date() - date(1970, 1, 1)).days + 3, 2, 5)
    data = decided(Due.SLIPPED, job_after("queued"), replace(GIVEN, day=day))

    assert isinstance(data, JobScheduled)
    assert data.quota_day == NOW.date() + timedelta(days=3)
    assert data.scheduled_for == release_at("user-1", day, spread_s=3600)
    assert decided(Due.SLIPPED, job_after("queued")) is None


def test_a_forced_attempt_is_given_back_with_its_finished_stages() -> None:
    data = decided(Due.FORCED, job_after("queued dispatched started scaffold code"))

    assert isinstance(data, JobGivenBack)
    assert (data.reason, data.finished_stages) == (GivenBackReason.FORCED, ("scaffold",))


def test_a_spaced_job_keeps_its_class() -> None:
    decision = spaced(job_after("queued"), 77)

    assert isinstance(decision.data, JobMoved)
    assert (decision.data.place, decision.data.from_, decision.data.to) == (77, Priority.NORMAL, Priority.NORMAL)
    advance(decision.job, signed(decision, event_id=event_id("spaced"), now=NOW))


@pytest.mark.parametrize(("for_ms", "until_ms"), [(0, 0), (30_000, 30_000), (10**12, SHUT_MAX_MS)])
def test_a_provider_is_left_alone_for_as_long_as_it_asks_within_a_day(for_ms: int, until_ms: int) -> None:
    assert shut_until_ms(for_ms, now=NOW) == round(NOW.timestamp() * 1000) + until_ms


# ── a worker that is gone ─────────────────────────────────────────────────────


def test_a_lost_attempt_is_given_back_with_its_finished_stages() -> None:
    data = decided(Due.LEASE, job_after("queued dispatched started scaffold code deps"))

    assert isinstance(data, JobGivenBack)
    assert data.reason is GivenBackReason.LOST
    assert data.finished_stages == ("scaffold", "code")


def test_an_attempt_that_was_never_claimed_is_given_back_and_does_not_count() -> None:
    job = job_after("queued dispatched")
    decision = decide(Due.LEASE, job, given=GIVEN)
    assert decision is not None

    after = advance(job, signed(decision, event_id=event_id("x"), now=NOW))

    assert (after.status, after.lost) == (Status.QUEUED, 0)


def test_a_job_that_has_cost_too_many_workers_fails_through_the_systems_fault() -> None:
    three_lost = job_after("queued" + LOST_ONCE * 3 + " dispatched started")

    data = decided(Due.LEASE, three_lost)

    assert isinstance(data, JobFailed)
    assert data.fault is Fault.SYSTEM
    assert data.debug_id == GIVEN.debug_id


def test_a_job_may_lose_as_many_workers_as_policy_says() -> None:
    two_lost = job_after("queued" + LOST_ONCE * 2 + " dispatched started")

    assert isinstance(decided(Due.LEASE, two_lost), JobGivenBack)


@pytest.mark.parametrize("lost", [0, 3])
def test_what_an_outage_took_is_given_back_and_does_not_count(lost: int) -> None:
    job = job_after("queued" + LOST_ONCE * lost + " dispatched started")
    given = Circumstances(now=NOW, policy=Policy(), debug_id="d", outage=True)
    decision = decide(Due.LEASE, job, given=given)
    assert decision is not None
    assert isinstance(decision.data, JobGivenBack)

    after = advance(job, signed(decision, event_id=event_id("x"), now=NOW))

    assert decision.data.reason is GivenBackReason.OUTAGE
    assert after.lost == job.lost


@pytest.mark.parametrize("kind", [Due.LEASE, Due.DEADLINE])
def test_a_job_whose_end_was_asked_for_ends_with_its_worker(kind: Due) -> None:
    data = decided(kind, job_after("queued dispatched started cancel_requested"))

    assert isinstance(data, JobCancelled)
    assert data.by == "user-1"


# ── other timers ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "story"),
    [
        (Due.DEADLINE, "queued dispatched started scaffold"),
        (Due.QUEUE_TTL, "queued"),
        (
            Due.CONFIRM_TIMEOUT,
            "queued dispatched started scaffold code deps checks awaiting_confirmation",
        ),
    ],
)
def test_what_ran_out_of_time_fails_and_says_so(kind: Due, story: str) -> None:
    data = decided(kind, job_after(story))

    assert isinstance(data, JobFailed)
    assert data.fault is Fault.TIMEOUT
    assert data.summary
    assert data.debug_id == GIVEN.debug_id


def test_a_scheduled_job_enters_at_the_place_that_is_held_for_it() -> None:
    placement = Placement(arrival=7, place=7 << 16, passed=("job-2",), position=4)
    given = Circumstances(now=NOW, policy=Policy(), debug_id="d", placement=placement)

    data = decided(Due.RELEASE, job_after("scheduled"), given)

    assert isinstance(data, JobQueued)
    assert (data.why, data.arrival, data.place) == (QueuedWhy.RELEASED, 7, 7 << 16)
    assert (data.passed, data.position_original) == (("job-2",), 4)


def test_a_scheduled_job_waits_for_room_and_is_not_refused() -> None:
    assert decided(Due.RELEASE, job_after("scheduled")) is None


@pytest.mark.parametrize(("hours", "left"), [(12, 12), (23, 1), (23.9, 0)])
def test_a_reminder_says_how_many_hours_are_left(hours: float, left: int) -> None:
    asking = job_after("queued dispatched started scaffold code deps checks awaiting_confirmation")
    assert asking.expires_at is not None
    now = asking.expires_at - timedelta(hours=24 - hours)

    data = decided(Due.REMIND, asking, Circumstances(now=now, policy=Policy(), debug_id="d"))

    assert isinstance(data, JobConfirmationReminder)
    assert data.hours_left == left


@pytest.mark.parametrize(
    ("priority", "risen"),
    [
        (Priority.BACKGROUND, Priority.LOW),
        (Priority.LOW, Priority.NORMAL),
        (Priority.NORMAL, Priority.HIGH),
        (Priority.HIGH, None),
        (Priority.URGENT, None),
    ],
)
def test_waiting_lifts_a_job_one_class_and_never_above_high(priority: Priority, risen: Priority | None) -> None:
    job = job_after("queued", submission=submission(priority=priority))

    data = decided(Due.AGE, job)

    assert (data and data.to) is risen if isinstance(data, JobReprioritized) else data is risen


def test_a_job_that_rises_keeps_its_place() -> None:
    job = job_after("queued", place=5 << 16)

    data = decided(Due.AGE, job)

    assert isinstance(data, JobReprioritized)
    assert data.place == 5 << 16


@pytest.mark.parametrize("kind", list(Due))
@pytest.mark.parametrize("story", ["queued dispatched started", "queued", "scheduled", "queued cancelled"])
def test_a_timer_of_a_state_that_is_over_does_nothing(kind: Due, story: str) -> None:
    fitting = {
        "queued dispatched started": {Due.LEASE, Due.DEADLINE, Due.FORCED},
        "queued": {Due.QUEUE_TTL, Due.AGE},
        "scheduled": set[Due](),  # a release needs a place
        "queued cancelled": set[Due](),
    }

    data = decided(kind, job_after(story))

    assert (data is not None) is (kind in fitting[story])


def test_a_kind_of_timer_that_a_newer_version_set_is_passed_over() -> None:
    assert decide("polish", job_after("queued"), given=GIVEN) is None


# ── starting ──────────────────────────────────────────────────────────────────


def test_a_start_names_the_groups_and_the_next_attempt() -> None:
    job = job_after("queued" + LOST_ONCE)

    data = start(job, groups=GROUPS, given=GIVEN).data

    assert isinstance(data, JobDispatched)
    assert (data.attempt, data.groups, data.pool) == (2, GROUPS, "default")


@pytest.mark.parametrize(("now", "told"), [(Tier.CTO_SCALE, Tier.CTO_SCALE), (None, Tier.PARTNER)])
def test_a_start_tells_the_users_tier_or_the_one_that_was_submitted_with(now: Tier | None, told: Tier) -> None:
    data = start(job_after("queued"), groups=GROUPS, given=replace(GIVEN, tier=now)).data

    assert isinstance(data, JobDispatched)
    assert data.tier is told


@pytest.mark.parametrize(("asked_s", "given_s"), [(None, 21_600), (60, 60), (10**6, 86_400)])
def test_an_attempt_has_the_time_it_asked_for_within_the_limit(asked_s: int | None, given_s: int) -> None:
    job = job_after("queued", submission=submission(run_timeout_s=asked_s))

    data = start(job, groups=GROUPS, given=GIVEN).data

    assert isinstance(data, JobDispatched)
    assert data.deadline == NOW + timedelta(seconds=given_s)


# ── one batch ─────────────────────────────────────────────────────────────────


def test_what_frees_is_written_before_what_takes() -> None:
    given = Circumstances(now=NOW, policy=Policy(), debug_id="d", placement=Placement(1, 1 << 16, (), 1))
    released = decide(Due.RELEASE, job_after("scheduled", "released"), given=given)
    assert released is not None

    batch = batch_of(
        released,
        due(Due.AGE, "queued", "aged"),
        due(Due.LEASE, "queued dispatched started", "lost"),
        starts=(starting("next"),),
    )

    assert batch.link.jobs == ("lost", "aged", "released", "next")
    assert tuple(decision.job.id for decision in batch.decisions) == batch.link.jobs


def test_the_link_names_the_limits_and_slots_of_those_that_start_and_no_others() -> None:
    limits = {"user:user-1": 3, "project:project-1": 2, "group:project-1:db": 1}

    batch = compose((), (starting("a"),), shard="main", leader="s1", limits=limits, slots={"default": 4, "gpu": 1})

    assert batch is not None
    assert batch.link.limits == {"user:user-1": 3, "project:project-1": 2}
    assert batch.link.slots == {"default": 4}
    assert (batch.link.shard, batch.link.leader) == ("main", "s1")


def test_a_batch_holds_twenty_jobs_at_most_and_the_first_ones() -> None:
    starts = tuple(starting(f"job-{number}") for number in range(30))

    batch = batch_of(due(Due.LEASE, "queued dispatched started", "lost"), starts=starts)

    assert batch.link.jobs == ("lost", *(f"job-{number}" for number in range(BATCH_MAX - 1)))


def test_a_job_is_written_about_once_in_a_batch() -> None:
    old = due(Due.QUEUE_TTL, "queued", "job-1")

    batch = batch_of(old, due(Due.AGE, "queued", "job-1"), starts=(starting("job-1"),))

    assert batch.decisions == (old,)


def test_a_job_that_starts_need_not_rise_first() -> None:
    batch = batch_of(due(Due.AGE, "queued", "job-1"), starts=(starting("job-1"),))

    assert [type(decision.data) for decision in batch.decisions] == [JobDispatched]


def test_nothing_to_write_is_no_batch() -> None:
    assert compose((), (), shard="main", leader="s1", limits={}, slots={}) is None


def test_the_link_is_an_event_of_the_chain() -> None:
    batch = batch_of(starts=(starting("job-1"),))

    event = linked(batch.link, event_id=event_id("link"), now=NOW)

    assert event.subject == "headgate.sched.v1.main"
    assert event.encode()


def test_groups_of_a_job_are_as_many_as_the_contract_lets_it_ask_for() -> None:
    groups = tuple(Group(name=f"group:project-1:g{number}", limit=1) for number in range(16))
    job = job_after("queued", submission=submission(groups=groups))
    names = (*GROUPS, "workflows", *(group.name for group in groups))

    data = start(job, groups=names, given=GIVEN).data

    assert isinstance(data, JobDispatched)
    assert data.groups == names

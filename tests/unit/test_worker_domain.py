"""What a worker decides: each outcome by itself, and every decision legal on every life a job can have had."""

from datetime import datetime, timedelta
from typing import cast

import pytest
from hypothesis import given

from headgate_contracts import Event, IllegalTransition, Job, JobEvent, Status, Tier, Writer, advance, fold
from headgate_contracts.assignment import assigned
from headgate_contracts.events import (
    JobAwaitingConfirmation,
    JobData,
    JobDispatched,
    JobFailed,
    JobGivenBack,
    JobStage,
    JobTryFailed,
    StageTitle,
)
from headgate_contracts.stages import Stages, is_in_last
from headgate_contracts.vocabulary import BUILD_STAGES, Fault
from headgate_pipeline.rules import StageRules
from libs.policy import Policy
from services.worker.domain import (
    Claimable,
    Interruption,
    Lease,
    Stale,
    ToCancel,
    after_failed_checks,
    broken_off,
    cancel,
    claim,
    event_about,
    fail,
    finish,
    give_back,
    hands_over,
    naming,
    next_stage,
    put_off,
    run_budget_s,
    still_ours,
    superseded,
    tries_of,
    try_again,
    worth_of,
)
from services.worker.outcomes import ChecksFailed, Failed
from tests.fixtures.lives import STARTED_AT, event_id, job_after, life_of, lives, step, submission

STAGES = Stages(titles=tuple(StageTitle(name=name, title=name) for name in BUILD_STAGES))
ITERATION = "scaffold code deps checks"
POLICY = Policy()
DEBUG = "4bf92f3577b34da6a3ce929d0e0e4736"


def after_checks(story: str, policy: Policy = POLICY) -> JobData:
    job = job_after(f"queued dispatched started {story}")
    return after_failed_checks(job, ChecksFailed("2 failed"), policy=policy, now=STARTED_AT, debug_id=DEBUG)


def test_the_question_whether_to_continue_says_what_failed_in_bounds() -> None:
    job = job_after(f"queued dispatched started {ITERATION} {ITERATION} {ITERATION}")

    asked = after_failed_checks(
        job, ChecksFailed("2 failed" * 100, "a\nb" * 4000), policy=POLICY, now=STARTED_AT, debug_id=DEBUG
    )

    assert isinstance(asked, JobAwaitingConfirmation)
    assert asked.question is not None
    assert (asked.question.id, asked.question.kind, asked.question.choices) == ("q1", "continue", ("yes", "no"))
    assert asked.question.reason is not None
    assert (len(asked.question.reason.summary), len(asked.question.reason.detail)) == (500, 4096)


def written(job: Job, data: JobData) -> Job:
    """The job after the event; refused where the contracts do not allow it."""
    return advance(job, event_about(job, data, event_id=event_id("w"), now=STARTED_AT))


# ── what a message of the pool is worth ───────────────────────────────────────


@pytest.mark.parametrize(
    ("story", "worth"),
    [
        ("queued dispatched", Claimable()),
        ("queued dispatched cancel_requested", ToCancel()),
        ("queued dispatched started", Stale("claimed by worker-1")),
        ("queued dispatched started scaffold", Stale("the job is scaffold in attempt 1")),
        ("queued dispatched given_back:lost", Stale("the job is queued in attempt 1")),
        ("queued dispatched given_back:lost dispatched", Stale("the job is starting in attempt 2")),
        ("queued dispatched cancelled", Stale("the job is cancelled in attempt 1")),
    ],
)
def test_only_an_attempt_that_waits_for_a_worker_is_to_be_had(story: str, worth: object) -> None:
    dispatched = life_of(story="queued dispatched")[-1].data
    assert isinstance(dispatched, JobDispatched)

    assert worth_of(job_after(story), dispatched) == worth


def test_a_job_that_the_log_does_not_know_is_not_to_be_had() -> None:
    dispatched = life_of(story="queued dispatched")[-1].data
    assert isinstance(dispatched, JobDispatched)

    assert worth_of(None, dispatched) == Stale("the log does not know the job")


@pytest.mark.parametrize(
    ("story", "ours"),
    [
        ("queued dispatched started", True),
        ("queued dispatched started scaffold cancel_requested", True),
        ("queued dispatched", False),
        ("queued dispatched started given_back:lost", False),
        ("queued dispatched started given_back:lost dispatched started", False),
        (f"queued dispatched started {ITERATION} ready", False),
    ],
)
def test_an_attempt_is_ours_while_it_runs_and_bears_our_name(story: str, *, ours: bool) -> None:
    assert still_ours(job_after(story), attempt=1, worker="worker-1") is ours


def test_an_attempt_that_bears_another_name_is_not_ours() -> None:
    assert not still_ours(job_after("queued dispatched started"), attempt=1, worker="worker-2")


# ── what follows ──────────────────────────────────────────────────────────────


def test_a_new_job_runs_the_four_stages_in_order() -> None:
    job, seen = job_after("queued dispatched started"), []
    for _ in range(4):
        data = next_stage(job)
        seen.append((data.stage, data.iteration, data.restored))
        job = written(job, data)

    assert seen == [(stage, 1, False) for stage in ITERATION.split()]


def test_a_job_that_came_back_restores_what_was_finished_and_runs_the_rest() -> None:
    job, seen = job_after("queued dispatched started scaffold code given_back:lost dispatched started"), []
    for _ in range(4):
        data = next_stage(job)
        seen.append((data.stage, data.restored))
        job = written(job, data)

    assert seen == [("scaffold", True), ("code", False), ("deps", False), ("checks", False)]


def test_failed_checks_begin_the_next_iteration_while_the_batch_lasts() -> None:
    data = after_checks(ITERATION)

    assert isinstance(data, JobStage)
    assert (data.stage, data.iteration, data.restored) == ("scaffold", 2, False)


def test_failed_checks_ask_when_the_batch_is_used_up() -> None:
    data = after_checks(f"{ITERATION} {ITERATION} {ITERATION}")

    assert isinstance(data, JobAwaitingConfirmation)
    assert (data.iterations_used, data.next_batch) == (3, 3)
    assert data.expires_at == STARTED_AT + timedelta(hours=24)


def test_the_depth_is_that_of_the_tier_that_the_user_had_at_the_start() -> None:
    job = job_after(f"queued dispatched started {ITERATION} {ITERATION}").model_copy(
        update={"users_tier": Tier.BOOTSTRAPPER}
    )

    data = after_failed_checks(job, ChecksFailed("2 failed"), policy=POLICY, now=STARTED_AT, debug_id=DEBUG)

    assert isinstance(data, JobAwaitingConfirmation)
    assert (data.iterations_used, data.next_batch) == (2, 2)


def test_the_last_batch_is_no_larger_than_what_the_hard_cap_leaves() -> None:
    policy = Policy.model_validate({"tiers": {"partner": {"cycles_per_batch": 3, "hard_cap": 4}}})

    data = after_checks(f"{ITERATION} {ITERATION} {ITERATION}", policy)

    assert isinstance(data, JobAwaitingConfirmation)
    assert data.next_batch == 1


def test_a_confirmation_grants_one_more_batch() -> None:
    three = f"{ITERATION} {ITERATION} {ITERATION} awaiting_confirmation confirmed dispatched started"

    after_fourth, after_fifth = after_checks(f"{three} {ITERATION}"), after_checks(f"{three} {ITERATION} {ITERATION}")

    assert isinstance(after_fourth, JobStage)  # the test's life grants two
    assert isinstance(after_fifth, JobAwaitingConfirmation)


def test_at_the_hard_cap_the_job_fails_whatever_was_granted() -> None:
    policy = Policy.model_validate({"tiers": {"partner": {"cycles_per_batch": 2, "hard_cap": 2}}})

    data = after_checks(f"{ITERATION} {ITERATION}", policy)

    assert isinstance(data, JobFailed)
    assert (data.fault, data.debug_id) == (Fault.LIMIT, DEBUG)
    assert data.detail == "2 failed"


@given(life=lives(ends=False))
def test_whatever_a_worker_decides_is_legal_on_every_life(life: list[JobEvent]) -> None:
    job = fold(life)
    if not job.status.is_running:
        return
    if job.status is Status.STARTING and job.worker is None:
        job = written(job, claim(job, "worker-1", STAGES))
    failed = Failed("It broke.", "There.")

    for data in (next_stage(job), cancel(job), give_back(job), fail(job, failed, debug_id=DEBUG)):
        assert written(job, data).status is data.status
    if is_in_last(job):
        red = ChecksFailed("red")
        written(job, finish(job, result="job-1-1", duration_s=1.5))
        written(job, after_failed_checks(job, red, policy=POLICY, now=STARTED_AT, debug_id=DEBUG))


@given(life=lives(ends=False))
def test_every_event_of_a_worker_is_signed_by_it(life: list[JobEvent]) -> None:
    job = fold(life)
    if not job.status.is_running:
        return

    event = event_about(job, cancel(job), event_id=event_id("w"), now=STARTED_AT)

    assert (event.writer, event.sequence) == (Writer.WORKER, job.sequence + 1)


# ── broken off ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("why", "event"),
    [
        (Interruption.CANCELLED, "cancelled"),
        (Interruption.TIMED_OUT, "failed"),
        (Interruption.DRAINED, "given_back"),
        (Interruption.FORCED, None),
        (Interruption.PROVIDER, "given_back"),
        (Interruption.LOST, None),
    ],
)
def test_what_an_interruption_makes_of_a_job(why: Interruption, event: str | None) -> None:
    job = job_after("queued dispatched started scaffold code cancel_requested")

    data = broken_off(job, why, debug_id=DEBUG, provider="openai")

    assert (data and data.EVENT.value) == event
    assert data is None or written(job, data)


def test_of_two_interruptions_the_one_that_leaves_less_counts() -> None:
    assert max(Interruption.DRAINED, Interruption.CANCELLED) is Interruption.CANCELLED
    assert max(Interruption.LOST, Interruption.CANCELLED) is Interruption.LOST
    assert max(Interruption.DRAINED, Interruption.PROVIDER) is Interruption.PROVIDER


def test_a_job_that_waits_for_a_provider_says_for_which_and_keeps_its_work() -> None:
    job = job_after("queued dispatched started scaffold code").model_copy(update={"checkpoint": "job-1-1-1"})

    data = broken_off(job, Interruption.PROVIDER, debug_id=DEBUG, provider="openai")

    assert isinstance(data, JobGivenBack)
    assert (data.reason, data.provider, data.checkpoint) == ("provider", "openai", "job-1-1-1")
    assert data.finished_stages == ("scaffold",)


# ── what is kept between stages ───────────────────────────────────────────────


def test_a_job_tried_again_passes_through_what_the_other_one_finished() -> None:
    asked = submission(retry_of="job-0", finished_stages=("scaffold", "code"), checkpoint="job-0-2-3")
    job = job_after("queued dispatched started", submission=asked)

    walked = []
    while (data := next_stage(job)).stage != "checks":
        walked.append((data.stage, data.restored, data.iteration))
        job = written(job, data)

    assert walked == [("scaffold", True, 1), ("code", True, 1), ("deps", False, 1)]


def test_a_new_iteration_has_nothing_finished() -> None:
    job = job_after(f"queued dispatched started {ITERATION}")

    data = next_stage(job)

    assert (data.stage, data.restored, data.iteration) == ("scaffold", False, 2)


def test_a_checkpoint_is_named_by_what_hands_work_on_and_by_nothing_else() -> None:
    job = job_after("queued dispatched started scaffold")

    assert naming(next_stage(job), "job-1-1-1") == next_stage(job).model_copy(update={"checkpoint": "job-1-1-1"})
    assert naming(give_back(job), "job-1-1-1").checkpoint == "job-1-1-1"  # type: ignore[attr-defined]
    assert naming(cancel(job), "job-1-1-1") == cancel(job)
    assert naming(next_stage(job), None) == next_stage(job)


@pytest.mark.parametrize(
    ("story", "now", "before", "gone"),
    [
        ("scaffold code", "job-1-1-2", "job-1-1-1", True),  # the next one stands in the log
        ("scaffold code", "job-1-1-1", "job-1-1-1", False),  # nothing new was stored
        ("scaffold code", "job-1-1-1", None, False),  # the first one
        ("scaffold code", "job-1-2-1", "job-0-7-4", False),  # another job's: others may go on from it too
        ("scaffold code", "job-1-2-1", "job-1-2-7-4", False),  # the same, of a phase that bears our name
        (f"{ITERATION} ready", "job-1-1-3", "job-1-1-3", True),  # nobody goes on from a good end
        ("scaffold code failed", "job-1-1-1", "job-1-1-1", False),  # a retry may
    ],
)
def test_a_checkpoint_goes_when_nobody_can_need_it(story: str, now: str, before: str | None, *, gone: bool) -> None:
    job = job_after(f"queued dispatched started {story}").model_copy(update={"checkpoint": now})

    assert superseded(before, job) == (before if gone else None)


@pytest.mark.parametrize(("draining_ms", "over"), [(0, False), (2999, False), (3000, True), (6000, True)])
def test_from_half_of_the_grace_on_a_job_is_handed_over_between_stages(draining_ms: int, *, over: bool) -> None:
    assert hands_over(draining_ms=draining_ms, grace_ms=6000) is over


# ── times ─────────────────────────────────────────────────────────────────────


def test_a_lease_is_counted_from_when_the_heartbeat_was_sent_and_never_shortened() -> None:
    lease = Lease(1000).extended(sent_ms=500, lease_ms=3000)

    assert lease == Lease(3500)
    assert lease.extended(sent_ms=100, lease_ms=3000) == lease
    assert lease.longer(250, most_ms=1000) == Lease(3750, 250)
    assert (lease.ended(3499), lease.ended(3500)) == (False, True)


def test_a_run_has_the_time_that_its_dispatch_says() -> None:
    job = job_after("queued dispatched").model_copy(update={"deadline": STARTED_AT + timedelta(seconds=90)})

    assert run_budget_s(job, dispatched_at=STARTED_AT, policy=POLICY) == 90
    assert run_budget_s(job, dispatched_at=STARTED_AT + timedelta(hours=1), policy=POLICY) == 0


def test_a_run_without_a_deadline_has_what_policy_gives() -> None:
    assert run_budget_s(job_after("queued dispatched"), dispatched_at=STARTED_AT, policy=POLICY) == 21_600


@given(life=lives(ends=False))
def test_a_worker_that_was_told_of_the_job_writes_what_one_writes_that_has_read_it(life: list[JobEvent]) -> None:
    jobs = [fold(life[:number]) for number in range(1, len(life) + 1)]
    for event, job in zip(life, jobs, strict=True):
        if isinstance(event.data, JobDispatched):
            told = assigned(cast("Event[JobDispatched]", event), seq=0, at=event.time)
            claimed, read = written(told, claim(told, "worker-1", STAGES)), written(job, claim(job, "worker-1", STAGES))

            assert decisions(claimed) == decisions(read)
            assert (claimed.project_scope, claimed.tier, claimed.worked_s) == (
                read.project_scope,
                read.tier,
                read.worked_s,
            )


def decisions(job: Job) -> list[JobEvent]:
    """What a worker may write about the job: at once, and at the end of an iteration of it."""
    said: list[JobEvent] = []

    def decide(data: JobData) -> JobEvent:
        event = event_about(job, data, event_id=event_id("w"), now=STARTED_AT)
        said.append(event)
        return event

    broken = Failed("It broke.", "There.")
    while job.status is not Status.CHECKS:
        for data in (cancel(job), give_back(job), fail(job, broken, debug_id=DEBUG)):
            decide(data)
        job = advance(job, decide(next_stage(job)))
    decide(finish(job, result="job-1-1", duration_s=1.5))
    decide(after_failed_checks(job, ChecksFailed("red"), policy=POLICY, now=STARTED_AT, debug_id=DEBUG))
    return said


# ── a stage that is run again ─────────────────────────────────────────────────


AWAY = Failed("The server is away.", "503", again_after_s=0)


def tried_again(job: Job, rules: StageRules, failed: Failed = AWAY) -> Job:
    again = next_try(job, rules, failed)
    assert again is not None
    return written(job, again)


def next_try(job: Job, rules: StageRules, failed: Failed = AWAY) -> JobTryFailed | None:
    pause_s = rules.pause_s(tries_of(job) + 1)
    return try_again(job, failed, most=rules.retries, pause_s=pause_s, now=STARTED_AT)


def test_a_stage_is_run_again_after_pauses_that_double_up_to_the_longest() -> None:
    job, rules, pauses = (
        job_after("queued dispatched started scaffold code"),
        StageRules(retries=4, backoff_s=(1, 5)),
        [],
    )
    for _ in range(4):
        job = tried_again(job, rules)
        assert job.tried is not None
        pauses.append((job.tried.again_at - STARTED_AT).total_seconds())

    assert pauses == [1, 2, 4, 5]
    assert next_try(job, rules) is None


def test_a_try_does_not_come_before_the_stage_says() -> None:
    tried = tried_again(
        job_after("queued dispatched started scaffold"), StageRules(retries=1), Failed("429", again_after_s=30)
    )

    assert tried.tried is not None
    assert tried.tried.again_at == STARTED_AT + timedelta(seconds=30)


def test_a_later_attempt_goes_on_counting() -> None:
    job, rules = job_after("queued dispatched started scaffold code"), StageRules(retries=2)
    job = tried_again(job, rules)
    waits = written(job, put_off(job, STARTED_AT + timedelta(hours=1)))
    assert (waits.status, waits.groups, waits.scheduled_for) == (Status.SCHEDULED, (), STARTED_AT + timedelta(hours=1))

    for word in ["queued:released", "dispatched", "started", "scaffold", "code"]:
        waits = advance(waits, step(waits, word))

    assert waits.tried is not None
    assert waits.tried.tries == 1
    assert tried_again(waits, rules).tried == waits.tried.model_copy(update={"tries": 2, "again_at": at_s(2)})


def test_a_worker_knows_from_its_dispatch_how_often_the_stage_has_failed() -> None:
    job = tried_again(job_after("queued dispatched started scaffold code"), StageRules(retries=2))
    job = advance(job, step(job, "given_back:lost"))

    dispatched = cast(Event[JobDispatched], step(job, "dispatched"))

    assert assigned(dispatched, seq=9, at=STARTED_AT).tried == job.tried


def test_the_next_stage_begins_without_tries() -> None:
    job = tried_again(job_after("queued dispatched started scaffold code"), StageRules(retries=2))

    assert written(job, next_stage(job)).tried is None


def test_a_count_that_forgets_the_tries_before_is_refused() -> None:
    job = tried_again(job_after("queued dispatched started scaffold code"), StageRules(retries=2))
    forgets = next_try(job.model_copy(update={"tried": None}), StageRules(retries=2))

    assert forgets is not None
    with pytest.raises(IllegalTransition, match="has failed 1 times before, not 0"):
        written(job, forgets)


def at_s(seconds: float) -> datetime:
    return STARTED_AT + timedelta(seconds=seconds)

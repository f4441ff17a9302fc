"""The life of a job: `advance` accepts exactly the table, and nothing that contradicts the job."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contracts import (
    TABLE,
    EventName,
    IllegalTransition,
    Job,
    JobEvent,
    Status,
    Tier,
    UnknownEvent,
    Writer,
    advance,
    fold,
    parse_event,
    step_over,
)
from headgate_contracts.stages import next_stage_of
from headgate_contracts.vocabulary import BUILD_STAGES, ENDS, RUNNING
from tests.fixtures.life_rules import LEGAL, NEW, STATUSES, WORDS
from tests.fixtures.lives import STARTED_AT, job_after, life_of, lives, queued, step, submission, wander

STORIES = {
    "scheduled": "scheduled",
    "waiting": "waiting",
    "queued": "queued",
    "starting": "queued dispatched",
    "scaffold": "queued dispatched started scaffold",
    "code": "queued dispatched started scaffold code",
    "deps": "queued dispatched started scaffold code deps",
    "checks": "queued dispatched started scaffold code deps checks",
    "running": "queued dispatched claimed running running",
    "awaiting_confirmation": "queued dispatched started scaffold code deps checks awaiting_confirmation",
    "ready": "queued dispatched started scaffold code deps checks ready",
    "failed": "queued failed",
    "cancelled": "queued cancelled",
}
ASKS = "queued dispatched started scaffold code awaiting_confirmation:ask"
SEVERAL = ("starting", "awaiting_confirmation")  # there is more to these than the status tells
CONFIRMED = f"{STORIES['awaiting_confirmation']} confirmed"


def asking(**changes: Any) -> dict[str, Any]:
    return {"id": "q1", "kind": "ask", "text": "Which licence?", "key": "licence", **changes}


def test_the_rules_know_every_status_and_event() -> None:
    assert set(STATUSES) == {NEW, *Status}
    assert {word.partition(":")[0] for word in WORDS} == {*EventName} - {"stage"} | {*BUILD_STAGES, "running"}
    assert set(STORIES) == set(Status)


@pytest.mark.parametrize(
    ("status", "story", "but"),
    [
        *((status, STORIES.get(status, ""), set[str]()) for status in STATUSES if status not in SEVERAL),
        ("awaiting_confirmation", STORIES["awaiting_confirmation"], {"answered"}),
        ("awaiting_confirmation", ASKS, {"confirmed"}),
        ("starting", "queued dispatched", {"scaffold", "running"}),
        ("starting", "queued dispatched started", {"started", "running"}),
        ("starting", "queued dispatched claimed", {"started", "scaffold"}),
    ],
)
def test_exactly_what_the_rules_allow_is_accepted(status: str, story: str, but: set[str]) -> None:
    """Every event, cause, writer and status after, against a job in this status. Who has claimed it, with which
    stages, and what it asks, is what a status does not tell, so some words are out of place."""
    job = job_after(story) if story else None
    accepted = set[tuple[str, Writer, str]]()

    for word, writer, then in product(WORDS, Writer, Status):
        event = step(job or "job-1", word, writer=writer, status=then)
        if _outcome(job, event) == then:
            accepted.add((word, writer, then))

    legal = {(word, by, then) for (source, word, by), then in LEGAL.items() if source == status}
    assert accepted == {(word, by, then) for word, by, then in legal if word not in but}


def test_the_table_as_data_says_what_the_rules_say() -> None:
    in_table = set[tuple[str, str, str, str]]()
    for row in TABLE:
        name = row.then.value if row.event is EventName.STAGE and row.then else row.event.value
        words = [f"{name}:{cause}" for cause in row.causes] if row.causes else [name]
        for word, source in product(words, row.sources):
            in_table.add((source or NEW, word, row.writer, row.then or source or NEW))

    assert in_table == {(*key, then) for key, then in LEGAL.items()}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(Writer)), min_size=1, max_size=60), st.randoms())
def test_random_sequences_are_accepted_where_the_rules_accept_them(
    attempts: list[tuple[str, Writer]], random: Random
) -> None:
    """Whatever is tried, in whatever order. Half of it follows the rules, or few jobs would get anywhere."""
    job, status, claimed = None, NEW, False
    for tried in attempts:
        word, writer = random.choice([tried, _some_legal(status, random) or tried])
        out_of_place = _has_not_begun(word, claimed=claimed) or _ends_another_question(job, word)
        then = None if out_of_place else LEGAL.get((status, word, writer))
        event = step(job or "job-1", word, writer=writer, status=then or random.choice(list(Status)))

        outcome = _outcome(job, event)

        twice = word == "started" and claimed
        assert outcome == (None if twice else then)
        if outcome is not None:
            job, status = advance(job, event), outcome
            claimed = (claimed or word == "started") and word != "dispatched"


@settings(max_examples=100, deadline=None)
@given(lives())
def test_every_legal_life_folds_to_one_job(life: list[JobEvent]) -> None:
    job = fold(life)

    assert job == fold(parse_event(event.encode()) for event in life)  # type: ignore[misc]
    assert Job.model_validate_json(job.model_dump_json()) == job  # no field that a Job does not have
    assert (job.sequence, job.status, job.updated_at) == (len(life), life[-1].data.status, life[-1].time)
    assert (job.created_at, job.id) == (life[0].time, "job-1")
    assert (job.holder is not None) is (job.status in RUNNING)
    assert job.attempt == sum(event.data.EVENT is EventName.DISPATCHED for event in life)


@pytest.mark.parametrize("seed", range(3))
def test_a_life_of_thousands_of_steps_stays_legal(seed: int) -> None:
    job = None
    for number, event in enumerate(wander(Random(seed), steps=3000), start=1):
        job = advance(job, event, seq=number * 7)

        assert (job.sequence, job.seq) == (number, number * 7)
        assert job.groups == () or job.status in RUNNING
        assert job.iteration >= job.confirmations

    assert job is not None
    assert job.attempt > 100


@settings(max_examples=40, deadline=None)
@given(lives(ends=False), st.data())
def test_an_event_out_of_its_place_is_refused(life: list[JobEvent], data: st.DataObject) -> None:
    job = fold(life)
    word, writer = data.draw(st.sampled_from(_legal_words(job)))
    changes, field = data.draw(st.sampled_from(_misplacements(job, word)))

    with pytest.raises(IllegalTransition) as refused:
        advance(job, step(job, word, **{"writer": writer, **changes}))

    assert refused.value.field == field


@pytest.mark.parametrize("end", sorted(ENDS))
def test_nothing_follows_an_end(end: Status) -> None:
    job = job_after(STORIES[end])

    for word, writer in product(WORDS, Writer):
        assert _outcome(job, step(job, word, writer=writer)) is None


@pytest.mark.parametrize(
    ("story", "word", "details", "field"),
    [
        ("queued dispatched started", "started", {}, "data.attempt"),
        ("queued dispatched started", "scaffold", {"iteration": 2}, "data.iteration"),
        ("queued dispatched started", "scaffold", {"restored": True}, "data.restored"),
        (
            "queued dispatched started scaffold code given_back:lost dispatched started",
            "scaffold",
            {"restored": False},
            "data.restored",
        ),
        (f"{STORIES['checks']} scaffold", "code", {"iteration": 1}, "data.iteration"),
        (STORIES["checks"], "scaffold", {"iteration": 1}, "data.iteration"),
        (STORIES["checks"], "ready", {"iterations": 2}, "data.iterations"),
        (STORIES["checks"], "awaiting_confirmation", {"iterations_used": 2}, "data.iterations_used"),
        (STORIES["code"], "awaiting_confirmation:ask", {"iterations_used": 2}, "data.iterations_used"),
        (STORIES["code"], "awaiting_confirmation:ask", {"question": asking(id="q2")}, "data.question.id"),
        (STORIES["code"], "awaiting_confirmation:ask", {"question": asking(key=None)}, "data.question.key"),
        (ASKS, "answered", {"question": "q2"}, "data.question"),
        (STORIES["code"], "given_back:drained", {"finished_stages": ("scaffold", "code")}, "data.finished_stages"),
        (STORIES["deps"], "given_back:lost", {"finished_stages": ("code",)}, "data.finished_stages"),
        ("queued", "reprioritized:user", {"from_": "low"}, "data.from"),
        ("queued", "moved:operator", {"place": None}, "data.place"),
        ("scheduled", "moved:operator", {"place": 7}, "data.place"),
        ("queued", "dispatched", {"pool": "gpu"}, "data.pool"),
        ("queued", "scheduled", {"submission": submission()}, "data.submission"),
        ("scheduled", "queued:released", {"submission": submission()}, "data.submission"),
    ],
)
def test_what_contradicts_the_job_is_refused_by_its_field(
    story: str, word: str, details: dict[str, Any], field: str
) -> None:
    job = job_after(story)

    with pytest.raises(IllegalTransition) as refused:
        advance(job, step(job, word, **details))

    assert refused.value.field == field


@pytest.mark.parametrize(
    ("word", "details", "field"),
    [
        ("queued", {"submission": None}, "data.submission"),
        ("scheduled", {"submission": None}, "data.submission"),
        ("queued", {"sequence": 2}, "sequence"),
        ("queued", {"attempt": 1}, "data.attempt"),
        ("waiting", {"workflow": "flow-2"}, "data.workflow"),
        ("waiting", {"phase": 3}, "data.phase"),
        ("dispatched", {}, "event"),
    ],
)
def test_a_life_begins_with_a_first_event(word: str, details: dict[str, Any], field: str) -> None:
    with pytest.raises(IllegalTransition) as refused:
        advance(None, step("job-1", word, **details))

    assert refused.value.field == field


def test_a_life_without_events_is_none() -> None:
    with pytest.raises(IllegalTransition):
        fold([])


def test_a_refusal_says_who_cannot_write_what_and_where() -> None:
    job = job_after("queued")

    with pytest.raises(
        IllegalTransition, match=r"worker cannot write given_back \(drained\) about a job that is queued"
    ):
        advance(job, step(job, "given_back:drained"))


def test_a_given_back_job_passes_through_its_finished_stages_and_runs_none_again() -> None:
    story = (
        "queued dispatched started scaffold code deps given_back:drained dispatched started scaffold code deps checks"
    )

    life = life_of(story=story)

    again = [(event.data.stage, event.data.restored) for event in life[-4:]]  # type: ignore[attr-defined]
    assert again == [("scaffold", True), ("code", True), ("deps", False), ("checks", False)]
    assert fold(life).iteration == 1


def test_a_job_that_is_given_back_while_it_restores_loses_no_finished_stage() -> None:
    story = "queued dispatched started scaffold code deps given_back:lost dispatched started scaffold given_back:lost"

    job = job_after(story)

    assert job.finished_stages == ("scaffold", "code")


def test_a_confirmed_job_begins_a_new_iteration_with_nothing_finished() -> None:
    job = job_after(f"{CONFIRMED} dispatched started scaffold")

    assert (job.iteration, job.confirmations, job.granted, job.finished_stages) == (2, 1, 2, ())


def test_an_answered_job_begins_the_stage_that_asked_once_more_in_the_same_iteration() -> None:
    asked = job_after(f"{ASKS} answered dispatched started")
    again = advance(asked, step(asked, "scaffold"))

    assert (again.stage, again.finished_stages, again.iteration) == ("scaffold", ("scaffold",), 1)
    assert next_stage_of(again) == ("code", Status.CODE, 1, False, ("scaffold",))


def test_an_answer_is_kept_by_the_key_of_its_question_and_the_newest_holds() -> None:
    job = job_after("queued dispatched started scaffold")
    for key, name in (("licence", "first"), ("name", "second"), ("licence", "third")):
        job = advance(job, step(job, "awaiting_confirmation:ask", question=asking(id=f"q{job.attempt}", key=key)))
        job = advance(job, step(job, "answered", answer=name))
        for word in ("dispatched", "started", "scaffold"):
            job = advance(job, step(job, word))

    assert {each.key: each.name for each in job.answers} == {"licence": "third", "name": "second"}
    assert (job.question, job.expires_at, job.confirmations) == (None, None, 0)


def test_a_question_forgets_no_try_of_its_stage() -> None:
    job = job_after("queued dispatched started scaffold code try_failed")

    again = advance(job, step(job, "awaiting_confirmation:ask"))
    for word in ("answered", "dispatched", "started", "scaffold", "code"):
        again = advance(again, step(again, word))

    assert again.tried == job.tried


def test_a_question_without_words_is_whether_to_go_on_as_an_older_writer_asked() -> None:
    job = job_after(STORIES["checks"])

    asked = advance(job, step(job, "awaiting_confirmation", question=None))

    assert asked.question is not None
    assert (asked.question.kind, asked.question.text) == ("continue", "Continue for 2 more?")


def test_a_job_is_of_the_tier_that_its_user_had_at_the_last_start() -> None:
    job = job_after("queued")
    raised = advance(job, step(job, "dispatched", tier=Tier.CTO_SCALE))
    back = advance(raised, step(raised, "given_back:lost"))
    as_submitted = advance(back, step(back, "dispatched"))

    assert [each.tier for each in (job, raised, back, as_submitted)] == [
        Tier.PARTNER,
        Tier.CTO_SCALE,
        Tier.CTO_SCALE,
        Tier.PARTNER,
    ]


def test_the_time_of_earlier_attempts_is_what_they_ran_and_not_what_they_waited() -> None:
    lost = "queued dispatched started scaffold given_back:lost"
    asked = "dispatched started scaffold code deps checks awaiting_confirmation"

    assert job_after(f"{lost} {asked} confirmed dispatched started scaffold").worked_s == 2 + 5  # a second each event


def test_an_attempt_that_runs_still_is_not_counted() -> None:
    assert job_after("queued dispatched started scaffold").worked_s == 0


def test_an_attempt_that_nobody_claimed_took_no_time() -> None:
    assert job_after("queued dispatched given_back:lost dispatched given_back:lost").worked_s == 0


def test_a_job_returns_to_its_old_place() -> None:
    before = job_after("queued", place=12345, arrival=7)

    for end in ("given_back:lost", "given_back:provider"):
        after = job_after(f"queued dispatched started scaffold {end}", place=12345, arrival=7)
        assert after.standing == before.standing


@pytest.mark.parametrize(
    ("end", "lost"),
    [("started given_back:lost", 1), ("started scaffold given_back:lost", 1), ("given_back:lost", 0)]
    + [(f"started given_back:{cause}", 0) for cause in ("drained", "provider", "outage", "forced")],
)
def test_only_a_lost_worker_that_had_begun_counts(end: str, lost: int) -> None:
    assert job_after(f"queued dispatched {end}").lost == lost


@pytest.mark.parametrize(
    ("story", "kept"),
    [
        ("queued cancelled", False),
        ("queued dispatched cancelled", False),
        ("queued dispatched started cancelled", True),
        ("queued dispatched started given_back:lost cancelled", True),
    ],
)
def test_a_job_cancelled_before_it_started_gives_its_day_back(story: str, kept: bool) -> None:  # noqa: FBT001 - a row of the table
    assert (job_after(story).quota_day is not None) is kept


@pytest.mark.parametrize(("fault", "kept"), [("system", False), ("job", True), ("limit", True), ("timeout", True)])
def test_only_the_systems_own_fault_gives_the_day_back(fault: str, kept: bool) -> None:  # noqa: FBT001 - a row of the table
    job = job_after("queued dispatched started")

    failed = advance(job, step(job, "failed", fault=fault))

    assert (failed.quota_day is not None) is kept
    assert failed.failure is not None


def test_a_request_to_cancel_outlives_the_attempt_that_heard_it() -> None:
    job = job_after("queued dispatched started cancel_requested given_back:lost dispatched")

    assert job.cancel_requested_by == "user-1"


def test_the_logs_own_time_is_the_jobs_time() -> None:
    later = STARTED_AT.replace(year=2027)

    job = advance(None, queued("job-1"), seq=41, at=later)

    assert (job.seq, job.created_at, job.updated_at, job.standing and job.standing.entered_at) == (
        41,
        later,
        later,
        later,
    )


def test_an_unknown_event_moves_the_job_by_what_every_event_says() -> None:
    job = job_after("queued")

    later = STARTED_AT.replace(year=2027)

    moved = step_over(job, _unknown(sequence=2, attempt=1, status=Status.STARTING), seq=9, at=later)

    assert moved == job.model_copy(
        update={"status": Status.STARTING, "attempt": 1, "sequence": 2, "seq": 9, "updated_at": later}
    )
    assert step_over(job, _unknown(sequence=2)).updated_at == STARTED_AT


@pytest.mark.parametrize(("field", "value"), [("user_id", "user-2"), ("project_id", "site")])
def test_an_event_of_anothers_job_is_refused(field: str, value: str) -> None:
    job = job_after("queued")
    event = step(job, "dispatched")
    strange = replace(event, data=event.data.model_copy(update={field: value}))

    with pytest.raises(IllegalTransition) as refused:
        advance(job, strange)

    assert refused.value.field == f"data.{field}"


def test_a_job_keeps_the_number_of_its_first_record() -> None:
    job = advance(None, queued("job-1"), seq=41)

    moved = advance(job, step(job, "dispatched"), seq=43)

    assert (job.first_seq, moved.first_seq, moved.seq) == (41, 41, 43)


def test_of_a_status_that_it_does_not_know_a_reader_keeps_the_one_before() -> None:
    job = job_after("queued dispatched started")

    moved = step_over(job, _unknown(sequence=4, attempt=1, status="warming_up"))

    assert (moved.status, moved.sequence) == (Status.STARTING, 4)


@pytest.mark.parametrize(
    ("story", "changes", "field"),
    [
        ("queued", {"job_id": "job-2"}, "data.job_id"),
        ("queued", {"sequence": 3}, "sequence"),
        ("queued", {"sequence": 1}, "sequence"),
        ("queued cancelled", {"sequence": 3}, "data.status"),
        ("queued cancelled", {"sequence": 3, "status": "warming_up"}, "data.status"),
    ],
)
def test_an_unknown_event_that_contradicts_the_job_is_refused(story: str, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(IllegalTransition) as refused:
        step_over(job_after(story), _unknown(**{"sequence": 2, **changes}))

    assert refused.value.field == field


def test_a_refused_event_is_told_which_number_would_have_followed() -> None:
    with pytest.raises(IllegalTransition, match="next event is number 2, not 3"):
        step_over(job_after("queued"), _unknown(sequence=3))


def test_no_job_begins_with_an_unknown_event() -> None:
    with pytest.raises(IllegalTransition):
        step_over(None, _unknown(sequence=1))


def _unknown(**changes: Any) -> UnknownEvent:
    plain: dict[str, Any] = {"job_id": "job-1", "status": Status.QUEUED}
    return UnknownEvent(id="0" * 26, type="dev.headgate.job.rehearsed.v1", time=STARTED_AT, **plain | changes)


def _outcome(job: Job | None, event: JobEvent) -> Status | None:
    try:
        return advance(job, event).status
    except IllegalTransition:
        return None


def _has_not_begun(word: str, *, claimed: bool) -> bool:
    """A stage of another pipeline, or one of a job that nobody has claimed."""
    return word == "running" or (word == "scaffold" and not claimed)


def _ends_another_question(job: Job | None, word: str) -> bool:
    if job is None or job.question is None:
        return False
    return word == {"continue": "answered", "ask": "confirmed"}[job.question.kind]


def _some_legal(status: str, random: Random) -> tuple[str, Writer] | None:
    options = [(word, Writer(writer)) for source, word, writer in LEGAL if source == status]
    return random.choice(options) if options else None


def _legal_words(job: Job) -> Sequence[tuple[str, Writer]]:
    words = [(word, Writer(writer)) for source, word, writer in LEGAL if source == job.status]
    words = [(word, writer) for word, writer in words if not _ends_another_question(job, word)]
    return [(word, writer) for word, writer in words if word != "started" or job.worker is None]


def _misplacements(job: Job, word: str) -> Sequence[tuple[dict[str, Any], str]]:
    attempt = job.attempt + (word == "dispatched")
    return [
        ({"sequence": job.sequence}, "sequence"),
        ({"sequence": job.sequence + 2}, "sequence"),
        ({"attempt": attempt + 1}, "data.attempt"),
        ({"job_id": "job-2"}, "data.job_id"),
        ({"user_id": "user-2"}, "data.user_id"),
        ({"project_id": "project-2"}, "data.project_id"),
    ]

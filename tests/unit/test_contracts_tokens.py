"""Tokens, ids and subjects: what may stand in a subject, and what becomes of what may not."""

import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts import (
    EventName,
    InvalidEvent,
    InvalidToken,
    JobSubject,
    OpsSubject,
    SchedSubject,
    Status,
    consumer_filter,
    job_filter,
    parse_subject,
)
from headgate_contracts.events import JobStarted
from headgate_contracts.tokens import (
    check_token,
    foreign_token,
    job_id_for_key,
    phase_job_id,
    ulid,
    workflow_id_for_key,
)
from headgate_contracts.vocabulary import ActName

TOKENS = st.text(alphabet=string.ascii_letters + string.digits + "_-", min_size=1, max_size=64)
FOREIGN = [
    "",
    ".",
    "a.b",
    "*",
    ">",
    "a b",
    "a/b",
    "a\tb",
    "a\r\nb",
    "a\n",
    "\nb",
    "\x00",
    "\x7f",
    "a" * 65,
    "é",
    "а",  # Cyrillic
    "１",  # a full-width digit
    "٣",  # an Arabic digit
    "😀",
    "a\u200bb",
    "me@example.com",
    "\ud800",
]


@pytest.mark.parametrize("value", FOREIGN)
def test_a_name_outside_the_alphabet_is_refused_by_its_field(value: str) -> None:
    with pytest.raises(InvalidToken) as refused:
        check_token("user_id", value)

    assert refused.value.field == "user_id"


@pytest.mark.parametrize("value", FOREIGN)
def test_a_name_outside_the_alphabet_is_refused_in_data_too(value: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        JobStarted(job_id="j", user_id="u", project_id="p", status=Status.STARTING, attempt=1, worker=value)

    assert refused.value.field == "worker"


@pytest.mark.parametrize("value", FOREIGN)
def test_a_foreign_id_is_mapped_into_the_alphabet(value: str) -> None:
    mapped = foreign_token(value)

    assert re.fullmatch(r"x-[a-z2-7]{26}", mapped)
    assert foreign_token(value) == mapped


@given(TOKENS)
def test_an_id_that_fits_stays_as_it_is(value: str) -> None:
    if not value.startswith("x-"):
        assert foreign_token(value) == value
    assert check_token("user_id", value) == value


@given(st.sets(st.text(), min_size=2, max_size=50))
def test_two_ids_never_become_one(values: set[str]) -> None:
    mapped = {foreign_token(value) for value in values}

    assert len(mapped) == len(values)
    assert all(check_token("user_id", token) for token in mapped)


def test_nobody_can_be_named_into_the_place_of_a_mapped_id() -> None:
    mapped = foreign_token("me@example.com")

    assert foreign_token(mapped) != mapped


@given(st.text(), st.text(), st.text(), st.text())
def test_the_job_of_a_key_depends_on_user_and_key_alone(user: str, key: str, other_user: str, other_key: str) -> None:
    same = (user, key) == (other_user, other_key)

    assert (job_id_for_key(user, key) == job_id_for_key(other_user, other_key)) is same
    assert re.fullmatch(r"k[a-z2-7]{26}", job_id_for_key(user, key))


def test_user_and_key_do_not_run_together() -> None:
    assert job_id_for_key("a\0b", "c") != job_id_for_key("a", "b\0c")
    assert job_id_for_key("ab", "c") != job_id_for_key("a", "bc")


@given(st.integers(0, 2**48 - 2), st.binary(min_size=10, max_size=10), st.binary(min_size=10, max_size=10))
def test_ulids_sort_by_time(now_ms: int, one: bytes, other: bytes) -> None:
    earlier, later = ulid(now_ms, one), ulid(now_ms + 1, other)

    assert earlier < later
    assert re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", earlier)


@pytest.mark.parametrize(("now_ms", "entropy"), [(-1, bytes(10)), (2**48, bytes(10)), (0, bytes(9)), (0, bytes(11))])
def test_a_ulid_that_would_not_be_one_is_not_made(now_ms: int, entropy: bytes) -> None:
    with pytest.raises(ValueError, match="a ULID"):
        ulid(now_ms, entropy)


def test_a_ulid_has_the_known_text() -> None:
    assert ulid(1469918176385, bytes.fromhex("0d1e7fdf1d6f1a5bd3a1")).startswith("01ARYZ6S41")


@given(TOKENS, TOKENS, TOKENS, st.sampled_from(list(EventName)), TOKENS)
def test_a_subject_is_read_back_as_it_was_built(job: str, user: str, project: str, event: EventName, pool: str) -> None:
    subject = JobSubject(job, user, project, event, pool if event is EventName.DISPATCHED else None)

    assert parse_subject(str(subject)) == subject
    assert str(subject).startswith(job_filter(job).removesuffix(">"))


@given(TOKENS, st.sampled_from(list(ActName)))
def test_the_other_subjects_are_read_back_too(shard: str, act: ActName) -> None:
    assert parse_subject(str(SchedSubject(shard))) == SchedSubject(shard)
    assert parse_subject(str(OpsSubject(act))) == OpsSubject(act)


@pytest.mark.parametrize("bad", FOREIGN)
@pytest.mark.parametrize("field", ["job_id", "user_id", "project_id", "pool"])
def test_no_foreign_name_gets_into_a_subject(field: str, bad: str) -> None:
    tokens = {"job_id": "j", "user_id": "u", "project_id": "p", "pool": "default"} | {field: bad}

    with pytest.raises(InvalidToken) as refused:
        str(JobSubject(event=EventName.DISPATCHED, **tokens))

    assert refused.value.field == field


@pytest.mark.parametrize(
    ("subject", "field"),
    [
        ("", "subject"),
        ("headgate.jobs.v2.j.u.p.queued", "subject"),
        ("headgate.jobs.v1.j.u.p", "subject"),
        ("headgate.jobs.v1.j.u.p.dispatched.a.b", "subject"),
        ("headgate.jobs.v1.j.u.p.unheard_of", "event"),
        ("headgate.jobs.v1.j.u.p.queued.pool", "pool"),
        ("headgate.jobs.v1.j.u.p.dispatched", "pool"),
        ("headgate.jobs.v1.*.u.p.queued", "job_id"),
        ("headgate.jobs.v1.j..p.queued", "user_id"),
        ("headgate.sched.v1.>", "shard"),
        ("headgate.ops.v1.unheard_of", "act"),
    ],
)
def test_a_subject_that_is_none_of_the_log_is_refused_by_name(subject: str, field: str) -> None:
    with pytest.raises(InvalidToken) as refused:
        parse_subject(subject)

    assert refused.value.field == field


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, "headgate.jobs.v1.*.*.*.>"),
        ({"user_id": "u1"}, "headgate.jobs.v1.*.u1.*.>"),
        ({"project_id": "shop"}, "headgate.jobs.v1.*.*.shop.>"),
        ({"event": EventName.FAILED}, "headgate.jobs.v1.*.*.*.failed"),
        ({"event": EventName.DISPATCHED}, "headgate.jobs.v1.*.*.*.dispatched.*"),
        ({"event": EventName.DISPATCHED, "pool": "gpu"}, "headgate.jobs.v1.*.*.*.dispatched.gpu"),
    ],
)
def test_a_consumer_filters_by_what_it_names(named: dict[str, Any], expected: str) -> None:
    assert consumer_filter(**named) == expected


@given(TOKENS, TOKENS, TOKENS, st.sampled_from(list(EventName)), st.data())
def test_a_filter_matches_the_subjects_of_what_it_names_and_no_others(
    user: str, project: str, other: str, event: EventName, data: st.DataObject
) -> None:
    subject = str(JobSubject("j", user, project, event, "gpu" if event is EventName.DISPATCHED else None))
    named: dict[str, str] = {"user_id": user, "project_id": project, "event": event}
    some: dict[str, Any] = {name: value for name, value in named.items() if data.draw(st.booleans())}

    assert _matches(consumer_filter(**some), subject)
    others = {**some, "user_id": other}
    assert _matches(consumer_filter(**others), subject) is (other == user)


def test_the_jobs_of_a_workflow_follow_from_its_key() -> None:
    workflow_id = workflow_id_for_key("u1", "key")
    jobs = [phase_job_id(workflow_id, phase) for phase in range(1, 51)]

    assert workflow_id == workflow_id_for_key("u1", "key") != workflow_id_for_key("u2", "key")
    assert len({*jobs, job_id_for_key("u1", "key")}) == 51
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", job_id) for job_id in jobs)


def test_a_filter_refuses_what_would_be_more_than_a_name() -> None:
    with pytest.raises(InvalidToken) as wildcard:
        consumer_filter(user_id="*")
    with pytest.raises(InvalidToken) as lost:
        consumer_filter(event=EventName.QUEUED, pool="gpu")
    with pytest.raises(InvalidToken) as everything:
        job_filter(">")

    assert (wildcard.value.field, lost.value.field, everything.value.field) == ("user_id", "pool", "job_id")


def _matches(subject_filter: str, subject: str) -> bool:
    """As the server matches: `*` is one token, `>` is one or more at the end."""
    pattern = re.escape(subject_filter).replace(r"\*", r"[^.]+").replace(">", ".+")
    return re.fullmatch(pattern, subject) is not None

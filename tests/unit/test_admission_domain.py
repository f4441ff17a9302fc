"""What may be asked for, as tables: no log, no view, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate_contracts import Status, Tier
from headgate_contracts.asked import SubmitJob, SubmitWorkflow
from headgate_contracts.vocabulary import Priority
from libs.policy import Policy
from libs.policy.daily_cap import DayPlace
from libs.runtime.faults import Refused
from services.admission.domain import (
    NO_WORK,
    LeftWork,
    NewJob,
    busy_minutes,
    new_job,
    release_at,
    retried_job,
    same_request,
)
from services.admission.intake import key_of
from services.admission.limits import Asker, NotAllowed
from services.admission.workflows import new_workflow, retried_phases, workflow_status
from tests.fixtures.lives import job_after, submission

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)


def asker(*, tier: Tier = Tier.PARTNER, projects: Iterable[str] = (), **policy: Any) -> Asker:
    shared = frozenset(projects)
    return Asker(user_id="u1", tier=tier, projects=shared, policy=Policy.model_validate(policy), now=NOW)


def asked(**body: Any) -> SubmitJob:
    return SubmitJob.model_validate({"project_id": "shop", "input": {}} | body)


def new_of(who: Asker, **body: Any) -> NewJob:
    new = new_job(asked(**body), job_id="j1", asker=who)
    assert isinstance(new, NewJob), new
    return new


HOSTS: dict[str, Any] = {"webhooks": {"hosts": ["hooks.example.com", "hooks.example.com:8443"]}}


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/done",
        "http://hooks.example.com",
        "https://HOOKS.example.com:8443/?a=b",
    ],
)
def test_a_listed_host_may_be_called(url: str) -> None:
    assert new_of(asker(**HOSTS), notify_url=url).submission.notify_url == url


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/done",
        "https://hooks.example.com:443/",
        "https://hooks.example.com.evil.org/",
        "https://evil.org/?https://hooks.example.com",
        "https://hooks.example.com@evil.org/",
        "https://u:p@hooks.example.com/",
        "https://hooks.example.com\\@evil.org/",
        "https://[::1/",
        "https:///",
    ],
)
def test_no_other_host_may_be_called(url: str) -> None:
    refusal = new_job(asked(notify_url=url), job_id="j1", asker=asker(**HOSTS))

    assert isinstance(refusal, NotAllowed)
    assert refusal.field == "notify_url"
    assert "hooks.example.com, hooks.example.com:8443" in refusal.reason


def test_where_no_host_is_listed_nobody_may_be_called() -> None:
    refusal = new_job(asked(notify_url="https://hooks.example.com/"), job_id="j1", asker=asker())

    assert isinstance(refusal, NotAllowed)
    assert "webhooks.hosts" in refusal.reason


def test_a_number_that_json_cannot_write_is_refused() -> None:
    refusal = new_job(asked(input={"n": float("nan")}), job_id="j1", asker=asker())

    assert isinstance(refusal, NotAllowed)
    assert refusal.field == "input"


@pytest.mark.parametrize(
    ("header", "key"),
    [
        (None, None),
        ("abc", "abc"),
        ('"abc"', "abc"),
        ('"a b"', "a b"),
        (r'"a\"b\\c"', 'a"b\\c'),
        ("a/b+c=", "a/b+c="),
        ("x" * 255, "x" * 255),
    ],
)
def test_a_key_is_the_same_quoted_or_not(header: str | None, key: str | None) -> None:
    assert key_of(header) == key


@pytest.mark.parametrize("header", ["", '""', '"abc', 'abc"', '"', "a b", "ä", "x" * 256, '"a\\"', "a\nb"])
def test_half_a_key_is_refused(header: str) -> None:
    with pytest.raises(Refused, match="Idempotency-Key"):
        key_of(header)


def test_each_of_many_has_a_key_that_nobody_can_send() -> None:
    keys = {key_of("abc"), *(key_of("abc", number) for number in range(3)), key_of("abc", "retry"), key_of("abc/0")}

    assert len(keys) == 6
    assert all(key is None or key_of("abc", 0) != key for key in (key_of('"abc 0"'), key_of("abc0")))


def workflow(**body: Any) -> SubmitWorkflow:
    phases = [{"input": {"phase": number}} for number in (1, 2, 3)]
    return SubmitWorkflow.model_validate({"project_id": "shop", "phases": phases} | body)


def test_phases_share_the_frame_and_follow_from_the_workflows_id() -> None:
    body = workflow(priority="high", labels={"team": "growth"}, run_at=NOW + timedelta(hours=1))

    phases = new_workflow(body, workflow_id="w1", asker=asker())

    assert isinstance(phases, tuple)
    assert [new.id for new in phases] == ["w1-1", "w1-2", "w1-3"]
    assert [(new.submission.workflow, new.submission.phase, new.submission.phases) for new in phases] == [
        ("w1", 1, 3),
        ("w1", 2, 3),
        ("w1", 3, 3),
    ]
    assert {new.submission.priority for new in phases} == {Priority.HIGH}
    assert [new.submission.run_at is None for new in phases] == [False, True, True]
    assert all(new.submission.labels == {"team": "growth"} for new in phases)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"phases": [{"input": {}}] * 21}, "phases"),
        ({"phases": [{"input": {}}, {"input": {}, "run_timeout_s": 10**9}]}, "phases.1.run_timeout_s"),
        ({"priority": "urgent"}, "priority"),
        ({"notify_url": "https://example.com"}, "notify_url"),
    ],
)
def test_what_is_not_allowed_about_a_workflow_names_the_field(body: dict[str, Any], field: str) -> None:
    refusal = new_workflow(workflow(**body), workflow_id="w1", asker=asker())

    assert isinstance(refusal, NotAllowed)
    assert refusal.field == field


@pytest.mark.parametrize(
    ("phases", "status"),
    [
        ("ready ready", Status.READY),
        ("ready code waiting", Status.CODE),
        ("queued waiting", Status.QUEUED),
        ("ready failed cancelled", Status.FAILED),
        ("cancelled cancelled", Status.CANCELLED),
    ],
)
def test_a_workflow_stands_where_its_first_unfinished_phase_stands(phases: str, status: Status) -> None:
    assert workflow_status(map(Status, phases.split())) is status


FAILED_IN_DEPS = "queued dispatched started scaffold code deps failed"


def test_a_retry_goes_on_from_the_work_that_is_still_there() -> None:
    failed = job_after(FAILED_IN_DEPS)

    new = retried_job(
        failed, b"{}", job_id="j2", asker=asker(), work=LeftWork(failed.finished_stages, failed.checkpoint)
    )
    anew = retried_job(failed, b"{}", job_id="j2", asker=asker(), work=NO_WORK)

    assert new.submission.retry_of == failed.id
    assert new.submission.finished_stages == ("scaffold", "code")
    assert new.submission.checkpoint == failed.checkpoint
    assert (anew.submission.finished_stages, anew.submission.checkpoint) == ((), None)
    assert new.submission.submitted_at == NOW


def test_a_retry_asks_for_no_more_than_the_tier_of_today_gives() -> None:
    failed = job_after(FAILED_IN_DEPS, submission=submission(priority="high"))

    new = retried_job(failed, b"{}", job_id="j2", asker=asker(tier=Tier.BOOTSTRAPPER), work=NO_WORK)

    assert new.submission.priority is Priority.NORMAL


def test_a_repeated_retry_is_the_same_request_whatever_became_of_the_work() -> None:
    failed = job_after(FAILED_IN_DEPS)
    first = job_after(
        "queued",
        "j2",
        submission=retried_job(
            failed, b"{}", job_id="j2", asker=asker(), work=LeftWork(failed.finished_stages, failed.checkpoint)
        ).submission,
    )

    again = retried_job(failed, b"{}", job_id="j2", asker=asker(tier=Tier.CTO_SCALE), work=NO_WORK)

    assert same_request(NewJob("j2", "user-1", first.project_id, again.submission, b"{}"), first)


def test_only_the_phase_that_is_retried_has_left_work() -> None:
    jobs = [
        (job_after(FAILED_IN_DEPS, f"w1-{phase}", submission=submission(workflow="w1", phase=phase, phases=2)), b"{}")
        for phase in (1, 2)
    ]

    phases = retried_phases(jobs, workflow_id="w2", asker=asker(), work=LeftWork(("scaffold", "code")))

    assert [len(new.submission.finished_stages) for new in phases] == [2, 0]


def test_a_retried_phase_begins_a_workflow_of_its_own() -> None:
    jobs = [
        (job_after("queued failed", f"w1-{phase}", submission=submission(workflow="w1", phase=phase, phases=3)), b"{}")
        for phase in (2, 3)
    ]

    phases = retried_phases(jobs, workflow_id="w2", asker=asker(), work=NO_WORK)

    assert [(new.id, new.submission.phase, new.submission.phases) for new in phases] == [("w2-1", 1, 2), ("w2-2", 2, 2)]
    assert [new.submission.retry_of for new in phases] == ["w1-2", "w1-3"]


@pytest.mark.parametrize(
    ("queued", "workers", "minutes"),
    [(100, 10, 15), (100, 1, 15), (110, 1, 120), (100, 0, 15), (190, 4, 240)],
)
def test_the_wait_is_the_time_to_work_off_what_is_above_the_cap(queued: int, workers: int, minutes: int) -> None:
    assert busy_minutes(queued=queued, cap=100, average_s=600, workers=workers, step_minutes=15) == minutes


@pytest.mark.parametrize(
    ("body", "tier", "field"),
    [
        ({"priority": "high"}, Tier.BOOTSTRAPPER, "priority"),
        ({"priority": "urgent"}, Tier.PARTNER, "priority"),
        ({"run_timeout_s": 10**9}, Tier.CTO_SCALE, "run_timeout_s"),
        ({"concurrency_limit": 3}, Tier.CTO_SCALE, "concurrency_limit"),
        ({"run_at": "9999-12-31T23:59:59Z"}, Tier.CTO_SCALE, "run_at"),
    ],
)
def test_what_a_user_may_not_ask_for_names_the_field(body: dict[str, Any], tier: Tier, field: str) -> None:
    asked = SubmitJob.model_validate({"project_id": "shop", "input": {}} | body)

    refusal = new_job(asked, job_id="j1", asker=asker(tier=tier))

    assert isinstance(refusal, NotAllowed)
    assert refusal.field == field


ANYBODYS = Asker(user_id="u1", tier=Tier.PARTNER, policy=Policy.model_validate({"projects": {"shared": True}}), now=NOW)
IN_A_GROUP: dict[str, Any] = {"concurrency_group": "db", "concurrency_limit": 3}


@pytest.mark.parametrize(
    ("who", "group"),
    [
        (asker(), "group:u1:shop:db"),
        (asker(projects=["blog"]), "group:u1:shop:db"),
        (asker(projects=["shop"]), "group:shop:db"),
        (ANYBODYS, "group:shop:db"),
    ],
)
def test_a_project_is_shared_by_those_who_claim_it_and_any_other_name_is_the_users_own(who: Asker, group: str) -> None:
    new = new_of(who, **IN_A_GROUP)

    assert [(each.name, each.limit) for each in new.submission.groups] == [(group, 3)]
    assert new.project_id == "shop"


@pytest.mark.parametrize(
    ("then", "today", "group"), [([], ["shop"], "group:shop:db"), (["shop"], [], "group:u1:shop:db")]
)
def test_a_retry_is_for_the_project_that_its_user_has_today(then: list[str], today: list[str], group: str) -> None:
    new = new_of(asker(projects=then), **IN_A_GROUP)
    first = job_after("queued cancelled", "j1", user_id="u1", project_id="shop", submission=new.submission)

    again = retried_job(first, b"{}", job_id="j2", asker=asker(projects=today), work=NO_WORK)

    assert again.submission.shared is bool(today)
    assert [each.name for each in again.submission.groups] == [group]


def test_a_repeated_key_is_the_same_request_though_the_token_shares_other_projects() -> None:
    new = new_of(asker(projects=["shop"]), **IN_A_GROUP)
    first = job_after("queued", "j1", user_id="u1", project_id="shop", submission=new.submission)

    assert same_request(new_of(asker(), **IN_A_GROUP), first)


def test_a_job_with_a_time_of_its_own_is_released_then() -> None:
    run_at = NOW + timedelta(hours=3)
    asked = SubmitJob.model_validate({"project_id": "shop", "input": {}, "run_at": run_at})
    new = new_job(asked, job_id="j1", asker=asker())
    assert isinstance(new, NewJob)

    assert release_at(new, DayPlace(20_833, 0, 5), spread_s=3600) == run_at
    assert release_at(new, DayPlace(20_834, 0, 5), spread_s=0) == datetime(2027, 1, 16, tzinfo=UTC)

"""What admission decides and does, on the twins of log and view."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from headgate_contracts import Event, Status, Tier, advance
from headgate_contracts.asked import SubmitJob
from headgate_contracts.events import JobData, JobScheduled
from headgate_contracts.tokens import input_name, job_id_for_key, ulid
from libs.capacity.folder import Folder
from libs.capacity.ledger import Ledger
from libs.capacity.memory import MemoryView
from libs.eventlog import Appended, Conflicted
from libs.eventlog.buckets import MemoryBucket
from libs.eventlog.memory import MemoryLog, MemoryServer
from libs.policy import Policy
from libs.runtime.clock import ManualClock
from services.admission.domain import NewJob, NotAllowed, busy_minutes, new_job, release_at
from services.admission.handlers import (
    Accepted,
    Admission,
    Ended,
    KeyReused,
    NoDayLeft,
    NotAsked,
    OverShare,
    SubmitOutcome,
    SystemBusy,
)
from tests.fixtures.lives import job_after, life_of, step

EPOCH = "01JB00000000000000000000EP"
NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)


class Ids:
    def __init__(self) -> None:
        self._numbers = count(1)

    def event_id(self) -> str:
        return ulid(1, next(self._numbers).to_bytes(10, "big"))

    def job_id(self) -> str:
        return f"j{next(self._numbers)}"


class Desk:
    """Admission with everything around it, and a fold when the test says so."""

    def __init__(self, **policy: Any) -> None:
        self.policy = Policy.model_validate(policy)
        self.clock = ManualClock()
        self.log = MemoryLog(MemoryServer(self.clock, epoch=EPOCH), clock=self.clock)
        self.view = MemoryView(EPOCH, clock=self.clock.now_ms)
        self.inputs = MemoryBucket()
        self.ids = Ids()
        self.admission = Admission(self.view, self.log, self.inputs, self.policy, self.clock, self.ids)
        self.folder = Folder(
            self.view, Ledger(self.policy), epoch=EPOCH, lease_ms=30_000, new_generation=lambda: "generation"
        )

    async def fold(self) -> None:
        last = (await self.log.mark()).seq
        async with aclosing(self.log.follow(after=self.folder.ledger.applied)) as pages:
            while self.folder.ledger.applied < last:
                self.folder.take((await anext(pages)).records)
        await self.folder.bring()

    def new(self, *, user: str = "u1", tier: Tier = Tier.PARTNER, job_id: str | None = None, **body: Any) -> NewJob:
        asked = SubmitJob.model_validate({"project_id": "shop", "input": {"prompt": "a URL shortener"}} | body)
        job = new_job(
            asked,
            job_id=job_id or self.ids.job_id(),
            user_id=user,
            tier=tier,
            policy=self.policy,
            now=datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC),
        )
        assert isinstance(job, NewJob), job
        return job

    async def submit(self, **details: Any) -> SubmitOutcome:
        return await self.admission.submit(self.new(**details))


@pytest.fixture
async def desk() -> Desk:
    desk = Desk()
    await desk.fold()
    return desk


async def test_a_submission_is_in_the_log_with_its_place_before_it_is_accepted(desk: Desk) -> None:
    outcome = await desk.submit()

    assert isinstance(outcome, Accepted)
    [record] = await desk.log.read(outcome.job.id)
    assert isinstance(record.event, Event)
    assert (outcome.job.status, outcome.job.seq, outcome.again) == (Status.QUEUED, record.seq, False)
    assert outcome.job.standing is not None
    assert outcome.job.standing.position_original == 1
    name = input_name(outcome.job.id, outcome.job.submission.input_digest)
    assert await desk.inputs.get(name) == b'{"prompt":"a URL shortener"}'


async def test_an_event_never_holds_the_input(desk: Desk) -> None:
    outcome = await desk.submit(input={"prompt": "a very secret plan"})

    assert isinstance(outcome, Accepted)
    [record] = await desk.log.read(outcome.job.id)
    assert b"secret plan" not in record.event.encode()  # type: ignore[union-attr]


async def test_the_same_key_is_the_same_job_and_takes_no_second_place(desk: Desk) -> None:
    job_id = job_id_for_key("u1", "key")
    first = await desk.submit(job_id=job_id)
    await desk.clock.advance_ms(5)
    unfolded = await desk.submit(job_id=job_id)
    await desk.fold()

    folded = await desk.submit(job_id=job_id)

    assert isinstance(first, Accepted)
    for again in (unfolded, folded):
        assert isinstance(again, Accepted)
        assert (again.job.id, again.job.seq, again.again) == (job_id, first.job.seq, True)
    assert [entry.job for entry in await desk.view.queue()] == [job_id]
    assert await desk.view.day_used("u1", 20_833) == 1


@pytest.mark.parametrize("change", [{"input": {"prompt": "another"}}, {"priority": "high"}, {"project_id": "blog"}])
async def test_the_same_key_for_another_request_is_refused(desk: Desk, change: dict[str, Any]) -> None:
    job_id = job_id_for_key("u1", "key")
    first = await desk.submit(job_id=job_id)

    assert await desk.submit(job_id=job_id, **change) == KeyReused(job_id)
    assert isinstance(first, Accepted)
    name = input_name(job_id, first.job.submission.input_digest)
    assert await desk.inputs.get(name) == b'{"prompt":"a URL shortener"}'


async def test_a_job_over_the_days_cap_is_accepted_for_tomorrow() -> None:
    desk = Desk(tiers={"partner": {"jobs_per_day": 2}})
    await desk.fold()
    for _ in range(2):
        await desk.submit()

    outcome = await desk.submit()

    assert isinstance(outcome, Accepted)
    assert outcome.job.status is Status.SCHEDULED
    [record] = await desk.log.read(outcome.job.id)
    scheduled = record.event.data  # type: ignore[union-attr]
    assert isinstance(scheduled, JobScheduled)
    assert scheduled.quota_day == (NOW + timedelta(days=1)).date()
    midnight = datetime(2027, 1, 16, tzinfo=UTC)
    assert midnight <= scheduled.scheduled_for <= midnight + timedelta(hours=1)


async def test_beyond_the_cap_the_wait_is_computed() -> None:
    desk = Desk(queue={"cap": 3, "user_share": 3}, tiers={"partner": {"jobs_per_day": 50}})
    await desk.fold()
    for _ in range(3):
        await desk.submit()

    outcome = await desk.submit(user="u2")

    assert outcome == SystemBusy(15)


@pytest.mark.parametrize(
    ("queued", "workers", "minutes"),
    [(100, 10, 15), (100, 1, 15), (110, 1, 120), (100, 0, 15), (190, 4, 240)],
)
def test_the_wait_is_the_time_to_work_off_what_is_above_the_cap(queued: int, workers: int, minutes: int) -> None:
    assert busy_minutes(queued=queued, cap=100, average_s=600, workers=workers, step_minutes=15) == minutes


async def test_nobody_holds_more_than_a_share_of_the_queue() -> None:
    desk = Desk(queue={"cap": 10, "user_share": 2})
    await desk.fold()
    for _ in range(2):
        await desk.submit()

    assert await desk.submit() == OverShare(2)
    assert isinstance(await desk.submit(user="u2"), Accepted)


async def test_past_the_horizon_the_refusal_names_the_last_day() -> None:
    desk = Desk(queue={"horizon_days": 2}, tiers={"partner": {"jobs_per_day": 1}})
    await desk.fold()
    for _ in range(3):
        assert isinstance(await desk.submit(), Accepted)

    assert await desk.submit() == NoDayLeft(20_835)


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

    refusal = new_job(asked, job_id="j1", user_id="u1", tier=tier, policy=Policy(), now=NOW)

    assert isinstance(refusal, NotAllowed)
    assert refusal.field == field


def test_a_group_is_named_after_its_project_so_that_nobody_reaches_into_anothers() -> None:
    asked = SubmitJob.model_validate(
        {"project_id": "shop", "input": {}, "concurrency_group": "db", "concurrency_limit": 3}
    )

    new = new_job(asked, job_id="j1", user_id="u1", tier=Tier.PARTNER, policy=Policy(), now=NOW)

    assert isinstance(new, NewJob)
    assert [(group.name, group.limit) for group in new.submission.groups] == [("group:shop:db", 3)]


def test_a_job_with_a_time_of_its_own_is_released_then() -> None:
    run_at = NOW + timedelta(hours=3)
    asked = SubmitJob.model_validate({"project_id": "shop", "input": {}, "run_at": run_at})
    new = new_job(asked, job_id="j1", user_id="u1", tier=Tier.PARTNER, policy=Policy(), now=NOW)
    assert isinstance(new, NewJob)

    assert release_at(new, 20_833, spread_s=3600) == run_at
    assert release_at(new, 20_834, spread_s=0) == datetime(2027, 1, 16, tzinfo=UTC)


async def test_a_waiting_job_is_cancelled_at_once_and_gives_its_day_back(desk: Desk) -> None:
    submitted = await desk.submit()
    assert isinstance(submitted, Accepted)

    outcome = await desk.admission.cancel(submitted.job, by="u1", reason="changed my mind")
    await desk.fold()

    assert isinstance(outcome, Accepted)
    assert outcome.job.status is Status.CANCELLED
    assert await desk.view.day_used("u1", 20_833) == 0
    assert await desk.view.queue() == ()


async def test_a_running_job_is_asked_to_end_once(desk: Desk) -> None:
    submitted = await desk.submit()
    assert isinstance(submitted, Accepted)
    await desk.log.append(step(submitted.job, "dispatched"), after=submitted.job)

    outcome = await desk.admission.cancel(submitted.job, by="u1", reason="")
    assert isinstance(outcome, Accepted)
    again = await desk.admission.cancel(outcome.job, by="u1", reason="")

    events = [record.event.data.EVENT for record in await desk.log.read(submitted.job.id)]  # type: ignore[union-attr]
    assert events == ["queued", "dispatched", "cancel_requested"]
    assert isinstance(again, Accepted)
    assert again.again


async def test_a_wish_that_outlived_its_attempt_is_granted_at_once(desk: Desk) -> None:
    submitted = await desk.submit()
    assert isinstance(submitted, Accepted)
    job = submitted.job
    for word in ("dispatched", "started", "cancel_requested", "given_back:drained"):
        event = step(job, word)
        answer = await desk.log.append(event, after=job)
        assert isinstance(answer, Appended)
        job = advance(job, event, seq=answer.records[0].seq)

    outcome = await desk.admission.cancel(job, by="u1", reason="")

    assert isinstance(outcome, Accepted)
    assert outcome.job.status is Status.CANCELLED


async def test_a_question_is_answered_once_with_what_the_cap_leaves(desk: Desk) -> None:
    story = "queued dispatched started scaffold code deps checks awaiting_confirmation"
    job = None
    for event in life_of("job-1", story):
        answer = await desk.log.append(event, after=job)
        assert isinstance(answer, Appended)
        job = advance(job, event, seq=answer.records[0].seq)
    assert job is not None

    outcome = await desk.admission.confirm(job, by="u1")
    again = await desk.admission.confirm(job, by="u1")

    assert isinstance(outcome, Accepted)
    assert (outcome.job.status, outcome.job.granted, outcome.job.standing) == (Status.QUEUED, 3, job.standing)
    assert isinstance(again, NotAsked)
    assert again.job.seq == outcome.job.seq


async def test_of_others_that_were_passed_only_the_number_is_told(desk: Desk) -> None:
    for user in ("u1", "u2"):
        await desk.submit(user=user, tier=Tier.BOOTSTRAPPER)
    passer = await desk.submit(user="u3", tier=Tier.CTO_SCALE)
    assert isinstance(passer, Accepted)

    [event] = await desk.admission.history(passer.job.id)

    assert event["passed"] == 2


async def test_a_job_that_has_ended_is_left_alone(desk: Desk) -> None:
    ended = job_after("queued cancelled")

    assert await desk.admission.cancel(ended, by="u1", reason="") == Ended(ended)


async def test_cancel_and_dispatch_at_once_leave_one_legal_history(desk: Desk) -> None:
    for _ in range(20):
        submitted = await desk.submit()
        assert isinstance(submitted, Accepted)
        job = submitted.job
        dispatched = await desk.log.append(step(job, "dispatched"), after=job)

        outcome = await desk.admission.cancel(job, by="u1", reason="")

        assert isinstance(outcome, Accepted)
        expected = Status.CANCELLED if isinstance(dispatched, Conflicted) else Status.STARTING
        assert outcome.job.status is expected


async def test_a_job_that_left_the_view_is_read_from_the_log(desk: Desk) -> None:
    submitted = await desk.submit()
    assert isinstance(submitted, Accepted)

    found = await desk.admission.find(submitted.job.id)

    assert found is not None
    assert (found.id, found.seq) == (submitted.job.id, submitted.job.seq)
    assert await desk.admission.find("nobody") is None


async def test_a_users_jobs_are_listed_newest_first(desk: Desk) -> None:
    ids = []
    for _ in range(3):
        outcome = await desk.submit()
        assert isinstance(outcome, Accepted)
        ids.append(outcome.job.id)
    await desk.submit(user="u2")
    await desk.fold()

    assert [job.id for job in await desk.admission.jobs_of("u1", count=2)] == [ids[2], ids[1]]


async def test_the_history_is_what_the_log_has(desk: Desk) -> None:
    outcome = await desk.submit()
    assert isinstance(outcome, Accepted)

    [first] = await desk.admission.history(outcome.job.id)

    assert (first["event"], first["job_id"], first["seq"]) == ("queued", outcome.job.id, outcome.job.seq)
    assert first["status"] == "queued"
    assert JobData.model_fields.keys() <= first.keys()

"""How admission takes a job in, on the twins of log and view."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate_contracts import Event, Priority, Status, Tier, Writer
from headgate_contracts.events import JobScheduled, LimitSet, QueuePaused
from headgate_contracts.tokens import input_name, job_id_for_key
from libs.capacity.answers import Heartbeat, Request, ReserveAnswer
from libs.capacity.memory import MemoryView
from libs.eventlog.buckets import MemoryBucket
from libs.eventlog.memory import Fate, MemoryLog
from libs.forecast.lines import WaitingLine
from libs.forecast.table import NAME, Forecast
from libs.policy import Policy
from libs.runtime.clock import ManualClock
from services.admission.events import Actor
from services.admission.outcomes import (
    Accepted,
    KeyReused,
    NoDayLeft,
    OverBytes,
    OverShare,
    Previewed,
    SystemBusy,
    TooOften,
)
from tests.fixtures.admission_api import JOB, AdmissionApi
from tests.fixtures.lives import step
from tests.fixtures.memory_admission import EPOCH, MemoryAdmission
from tests.fixtures.observing import observe

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
WORKER = Heartbeat(worker="w1", pool="default", slots=9, draining=False, holders=(), leases=(), ttl_ms=60_000)


async def test_a_submission_is_in_the_log_with_its_place_before_it_is_accepted(admission: MemoryAdmission) -> None:
    outcome = await admission.submit()

    assert isinstance(outcome, Accepted)
    [record] = await admission.log.read(outcome.job.id)
    assert isinstance(record.event, Event)
    assert (outcome.job.status, outcome.job.seq, outcome.again) == (Status.QUEUED, record.seq, False)
    assert outcome.job.standing is not None
    assert outcome.job.standing.position_original == 1
    name = input_name(outcome.job.id, outcome.job.submission.input_digest)
    assert await admission.inputs.get(name) == b'{"prompt":"a URL shortener"}'


async def test_an_event_never_holds_the_input(admission: MemoryAdmission) -> None:
    outcome = await admission.submit(input={"prompt": "a very secret plan"})

    assert isinstance(outcome, Accepted)
    [record] = await admission.log.read(outcome.job.id)
    assert b"secret plan" not in record.event.encode()  # type: ignore[union-attr]


async def test_the_same_key_is_the_same_job_and_takes_no_second_place(admission: MemoryAdmission) -> None:
    job_id = job_id_for_key("u1", "key")
    first = await admission.submit(job_id=job_id)
    await admission.clock.advance_ms(5)
    unfolded = await admission.submit(job_id=job_id)
    await admission.fold()

    folded = await admission.submit(job_id=job_id)

    assert isinstance(first, Accepted)
    for again in (unfolded, folded):
        assert isinstance(again, Accepted)
        assert (again.job.id, again.job.seq, again.again) == (job_id, first.job.seq, True)
    assert [entry.job for entry in await admission.view.queue()] == [job_id]
    assert await admission.view.day_used("u1", 20_833) == 1


@pytest.mark.parametrize("change", [{"input": {"prompt": "another"}}, {"priority": "high"}, {"project_id": "blog"}])
async def test_the_same_key_for_another_request_is_refused(admission: MemoryAdmission, change: dict[str, Any]) -> None:
    job_id = job_id_for_key("u1", "key")
    first = await admission.submit(job_id=job_id)

    assert await admission.submit(job_id=job_id, **change) == KeyReused(job_id)
    assert isinstance(first, Accepted)
    name = input_name(job_id, first.job.submission.input_digest)
    assert await admission.inputs.get(name) == b'{"prompt":"a URL shortener"}'


async def test_a_job_over_the_days_cap_is_accepted_for_tomorrow() -> None:
    admission = MemoryAdmission(tiers={"partner": {"jobs_per_day": 2}})
    await admission.fold()
    for _ in range(2):
        await admission.submit()

    outcome = await admission.submit()

    assert isinstance(outcome, Accepted)
    assert outcome.job.status is Status.SCHEDULED
    [record] = await admission.log.read(outcome.job.id)
    scheduled = record.event.data  # type: ignore[union-attr]
    assert isinstance(scheduled, JobScheduled)
    assert scheduled.quota_day == (NOW + timedelta(days=1)).date()
    midnight = datetime(2027, 1, 16, tzinfo=UTC)
    assert midnight <= scheduled.scheduled_for <= midnight + timedelta(hours=1)


async def test_a_job_of_a_day_names_the_cap_by_which_it_was_decided() -> None:
    """So that a later policy does not judge it again."""
    admission = MemoryAdmission(tiers={"partner": {"jobs_per_day": 1}})
    await admission.fold()

    outcomes = [await admission.submit() for _ in range(2)]

    jobs = [outcome.job.id for outcome in outcomes if isinstance(outcome, Accepted)]
    datas: list[Any] = [record.event.data for job in jobs for record in await admission.log.read(job)]  # type: ignore[union-attr]
    assert [(type(data).__name__, data.quota_cap) for data in datas] == [("JobQueued", 1), ("JobScheduled", 1)]


async def test_beyond_the_cap_the_wait_is_computed() -> None:
    admission = MemoryAdmission(queue={"cap": 3, "user_share": 3}, tiers={"partner": {"jobs_per_day": 50}})
    await admission.fold()
    for _ in range(3):
        await admission.submit()

    outcome = await admission.submit(user="u2")

    assert outcome == SystemBusy(15)


async def test_nobody_holds_more_than_a_share_of_the_queue() -> None:
    admission = MemoryAdmission(queue={"cap": 10, "user_share": 2})
    await admission.fold()
    for _ in range(2):
        await admission.submit()

    assert await admission.submit() == OverShare(2)
    assert isinstance(await admission.submit(user="u2"), Accepted)


async def test_past_the_horizon_the_refusal_names_the_last_day() -> None:
    admission = MemoryAdmission(queue={"horizon_days": 2}, tiers={"partner": {"jobs_per_day": 1}})
    await admission.fold()
    for _ in range(3):
        assert isinstance(await admission.submit(), Accepted)

    assert await admission.submit() == NoDayLeft(20_835, retry_s=16 * 3600)


async def test_what_is_refused_leaves_nothing_behind() -> None:
    admission = MemoryAdmission(queue={"cap": 1, "user_share": 1})
    await admission.fold()
    await admission.submit()
    new = admission.new(user="u2")

    outcome = await admission.submitting.submit(new)

    assert isinstance(outcome, SystemBusy)
    assert await admission.inputs.get(input_name(new.id, new.submission.input_digest)) is None
    assert await admission.log.read(new.id) == []


async def test_whoever_submits_too_fast_is_told_when_to_come_back() -> None:
    admission = MemoryAdmission(submissions={"per_minute": 2})
    await admission.fold()
    for _ in range(2):
        assert isinstance(await admission.submit(), Accepted)

    refused = await admission.submit()
    await admission.clock.advance_ms(30_000)

    assert refused == TooOften(2, 2_097_152, 30_000)
    assert isinstance(await admission.submit(), Accepted)


async def test_each_phase_of_a_workflow_costs_as_much_of_the_minute_as_a_job() -> None:
    admission = MemoryAdmission(submissions={"per_minute": 6})
    await admission.fold()
    assert isinstance(await admission.submitting.submit(*admission.phases(4)), Accepted)

    tried = await admission.submitting.preview(*admission.phases(3))
    refused = await admission.submitting.submit(*admission.phases(3))

    assert tried == refused == TooOften(6, 2_097_152, 10_000)
    assert isinstance(await admission.submitting.submit(*admission.phases(2)), Accepted)
    assert isinstance(await admission.submit(), TooOften)


async def test_inputs_cost_of_the_minute_by_their_bytes() -> None:
    admission = MemoryAdmission(submissions={"bytes_per_minute": 1000})
    await admission.fold()
    large = {"input": {"prompt": "x" * 487}}  # 500 bytes as JSON
    for _ in range(2):
        assert isinstance(await admission.submit(**large), Accepted)

    assert await admission.submit(**large) == TooOften(60, 1000, 30_000)
    assert isinstance(await admission.submit(user="u2", **large), Accepted)


FEW_BYTES: dict[str, int] = {"max_input_bytes": 400, "max_phases": 2, "user_input_bytes": 1_500}
LARGE: dict[str, Any] = {"input": {"prompt": "x" * 359}}  # 372 bytes as JSON, 500 with its name


async def test_nobody_holds_more_than_a_share_of_the_bytes_of_inputs() -> None:
    admission = MemoryAdmission(submissions=FEW_BYTES)
    await admission.fold()
    jobs = [await admission.submitted(**LARGE) for _ in range(3)]
    new = admission.new(**LARGE)

    refused = await admission.submitting.submit(new)

    assert refused == await admission.submitting.preview(new) == OverBytes(1_500, 1_500, None)
    another = admission.new(**LARGE)
    assert await admission.submitting.submit(another) == refused
    assert await admission.inputs.get(input_name(another.id, another.submission.input_digest)) is None
    assert isinstance(await admission.submit(user="u2", **LARGE), Accepted)
    await admission.changing.cancel(jobs[0], act=Actor("u1"))
    await admission.fold()
    told = await admission.submit(**LARGE)
    assert isinstance(told, OverBytes)
    assert told.retry_ms is not None
    assert 0 < told.retry_ms <= 86_400_000


async def test_all_phases_are_held_before_the_first_event() -> None:
    admission = MemoryAdmission(submissions=FEW_BYTES)
    await admission.fold()
    phases = admission.phases(2)
    assert isinstance(await admission.submitting.submit(*phases), Accepted)
    before = await admission.view.stored("u1")

    await admission.fold()

    assert before == await admission.view.stored("u1") == sum(len(each.input) + 128 for each in phases)


async def test_a_key_that_is_being_used_stores_no_input_for_another_request() -> None:
    admission = MemoryAdmission()
    await admission.fold()
    job_id = job_id_for_key("u1", "key")
    first, other = admission.new(job_id=job_id), admission.new(job_id=job_id, **LARGE)
    assert isinstance(await admission.submitting.submit(first), Accepted)  # and nobody has folded it

    refused = await admission.submitting.submit(other)

    assert refused == await admission.submitting.preview(other) == KeyReused(job_id)
    assert await admission.inputs.get(input_name(job_id, other.submission.input_digest)) is None


async def test_a_lost_view_gives_no_bytes_back_and_keeps_none() -> None:
    admission = MemoryAdmission(submissions=FEW_BYTES)
    await admission.fold()
    for _ in range(2):
        await admission.submitted(**LARGE)

    admission.store.lose()
    await admission.fold()

    assert await admission.view.stored("u1") == 1_000
    assert isinstance(await admission.submit(**LARGE), Accepted)
    assert isinstance(await admission.submit(**LARGE), OverBytes)


async def test_a_repeated_key_costs_nothing_of_the_rate_and_is_found_though_it_is_used_up() -> None:
    admission = MemoryAdmission(submissions={"per_minute": 1})
    await admission.fold()
    job_id = job_id_for_key("u1", "key")
    first = await admission.submit(job_id=job_id)
    await admission.fold()

    again = await admission.submit(job_id=job_id)

    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (again.again, again.job.seq) == (True, first.job.seq)


async def test_a_job_that_left_the_view_is_found_by_its_key_when_the_queue_is_full() -> None:
    admission = MemoryAdmission(queue={"cap": 1, "user_share": 1})
    await admission.fold()
    job_id = job_id_for_key("u1", "key")
    first = await admission.submit(job_id=job_id)
    assert isinstance(first, Accepted)
    await admission.changing.cancel(first.job, act=Actor("u1"))
    await admission.fold()
    await admission.forget_what_ended()
    await admission.submit(user="u2")

    again = await admission.submit(job_id=job_id)

    assert isinstance(again, Accepted)
    assert again.job.status is Status.CANCELLED


async def test_the_key_of_a_job_that_left_the_view_takes_no_second_place() -> None:
    admission = MemoryAdmission()
    await admission.fold()
    job_id = job_id_for_key("u1", "key")
    first = await admission.submit(job_id=job_id)
    assert isinstance(first, Accepted)
    await admission.changing.cancel(first.job, act=Actor("u1"))
    await admission.fold()
    await admission.forget_what_ended()
    before = await observe(admission.view)

    again = await admission.submit(job_id=job_id)
    preview = await admission.submitting.preview(admission.new(job_id=job_id))

    assert isinstance(again, Accepted)
    assert isinstance(preview, Accepted)
    assert await observe(admission.view) == before


async def test_the_estimate_that_is_shown_stands_in_the_event(admission: MemoryAdmission) -> None:
    line = WaitingLine(ends={Priority.NORMAL.class_number: 600_000}, slots=1)
    forecast = Forecast(policy=Policy(), made_ms=admission.clock.now_ms(), learned=True, lines={"pool:default": line})
    await admission.view.publish(NAME, forecast.dump())
    await admission.view.beat(WORKER)

    outcome = await admission.submit(tier=Tier.BOOTSTRAPPER)

    assert isinstance(outcome, Accepted)
    [record] = await admission.log.read(outcome.job.id)
    estimate = record.event.data.estimate  # type: ignore[union-attr]
    assert estimate.estimate_seconds == 600
    assert outcome.job.standing is not None
    assert outcome.job.standing.estimate == estimate


@pytest.mark.parametrize("of_user_ms", [900_000, None])
async def test_a_dry_run_a_submission_and_the_page_a_moment_later_tell_the_same_start(
    admission: MemoryAdmission, of_user_ms: int | None
) -> None:
    """The groups of user and project are full: the runs knew of that, or it is so only now."""
    number = Priority.NORMAL.class_number
    lines = {"pool:default": WaitingLine(ends={number: 600_000}, slots=1)}
    for group in ("user:u1", "project:u1:shop") if of_user_ms is not None else ():
        lines[group] = WaitingLine(ends={number: of_user_ms or 0}, slots=1)
    forecast = Forecast(policy=Policy(), made_ms=admission.clock.now_ms(), learned=True, lines=lines)
    await admission.view.publish(NAME, forecast.dump())
    await admission.view.beat(WORKER)
    for _ in range(admission.policy.tier_limits(Tier.PARTNER).jobs_per_user):
        await admission.go_on(await admission.submitted(user="u1"), "dispatched")
    await admission.fold()
    api = AdmissionApi(admission)

    async with api.client("u1") as u1:
        tried = (await u1.post("/v1/jobs?dry_run=true", json=JOB)).json()
        taken = (await u1.post("/v1/jobs", json=JOB)).json()
        await admission.fold()
        later = (await u1.get(f"/v1/jobs/{taken['id']}")).json()

    told = [(each["queue"]["estimate_seconds"], each["queue"]["message"]) for each in (tried, taken, later)]
    assert told == [(None, "no estimate yet") if of_user_ms is None else (900, "10 minutes-19 minutes")] * 3


async def test_the_busy_answer_counts_with_the_tiers_of_the_queued_jobs() -> None:
    admission = MemoryAdmission(queue={"cap": 1, "user_share": 1, "busy_step_minutes": 1})
    await admission.fold()
    await admission.submit(tier=Tier.CTO_SCALE)
    await admission.fold()

    assert await admission.submit(user="u2", tier=Tier.BOOTSTRAPPER) == SystemBusy(15)


async def test_a_dry_run_gives_the_answer_and_nothing_else(admission: MemoryAdmission) -> None:
    await admission.submit()
    new = admission.new()

    outcome = await admission.submitting.preview(new)
    await admission.fold()

    assert isinstance(outcome, Previewed)
    assert (outcome.jobs[0].status, outcome.outlook.position) == (Status.QUEUED, 2)
    assert await admission.inputs.get(input_name(new.id, new.submission.input_digest)) is None
    assert await admission.log.read(new.id) == []
    assert len(await admission.view.queue()) == 1
    assert await admission.view.day_used("u1", 20_833) == 1


async def test_a_dry_run_says_what_would_hold_the_job_back(admission: MemoryAdmission) -> None:
    for scope in ("user:u1", "user:u2", "priority:low", "workflow:w1"):
        pause = QueuePaused(scope=scope, by="op", reason="calm")
        await admission.log.append(Event(admission.ids.event_id(), Writer.ADMISSION, NOW, pause), after=None)
    await admission.fold()

    outcome = await admission.submitting.preview(admission.new())

    assert isinstance(outcome, Previewed)
    assert [(pause.scope, pause.by) for pause in outcome.outlook.pauses] == [("user:u1", "op")]
    assert outcome.outlook.pool_slots == 0


async def test_a_dry_run_counts_with_the_limits_of_its_own_tier(admission: MemoryAdmission) -> None:
    for _ in range(2):
        running = await admission.submit(user="u9", tier=Tier.CTO_SCALE)
        assert isinstance(running, Accepted)
        dispatched = step(running.job, "dispatched", groups=("project:u9:shop",))
        await admission.log.append(dispatched, after=running.job)
    await admission.fold()

    small = await admission.submitting.preview(admission.new(user="u9", tier=Tier.BOOTSTRAPPER))
    large = await admission.submitting.preview(admission.new(user="u9", tier=Tier.CTO_SCALE))

    assert isinstance(small, Previewed)
    assert isinstance(large, Previewed)
    assert [(each.group, each.limit, each.active) for each in small.outlook.obstacles] == [("project:u9:shop", 2, 2)]
    assert large.outlook.obstacles == ()


async def test_a_dry_run_counts_with_the_limit_that_an_operator_has_set(admission: MemoryAdmission) -> None:
    """Even where it is the number of another tier."""
    for _ in range(2):
        running = await admission.submit(user="u9", tier=Tier.PARTNER)
        assert isinstance(running, Accepted)
        await admission.log.append(step(running.job, "dispatched", groups=("user:u9",)), after=running.job)
    limit = admission.policy.tier_limits(Tier.BOOTSTRAPPER).jobs_per_user
    set_limit = LimitSet(group="user:u9", limit=limit, by="op", reason="calm")
    await admission.log.append(Event(admission.ids.event_id(), Writer.ADMISSION, NOW, set_limit), after=None)
    await admission.fold()

    outcome = await admission.submitting.preview(admission.new(user="u9", tier=Tier.PARTNER))

    assert isinstance(outcome, Previewed)
    assert [(each.group, each.limit, each.active) for each in outcome.outlook.obstacles] == [("user:u9", 2, 2)]


async def test_a_dry_run_of_what_is_there_tells_of_what_is_there(admission: MemoryAdmission) -> None:
    job_id = job_id_for_key("u1", "key")
    first = await admission.submit(job_id=job_id)

    outcome = await admission.submitting.preview(admission.new(job_id=job_id))
    await admission.fold()
    folded = await admission.submitting.preview(admission.new(job_id=job_id))

    assert isinstance(first, Accepted)
    for each in (outcome, folded):
        assert isinstance(each, Accepted | Previewed)
        assert each.jobs[0].id == job_id
    assert isinstance(folded, Accepted)


async def test_a_dry_run_beyond_the_day_tells_of_tomorrow() -> None:
    admission = MemoryAdmission(tiers={"partner": {"jobs_per_day": 1}})
    await admission.fold()
    await admission.submit()

    outcome = await admission.submitting.preview(admission.new())

    assert isinstance(outcome, Previewed)
    assert outcome.jobs[0].status is Status.SCHEDULED
    assert isinstance(await admission.submit(), Accepted)
    assert await admission.view.day_used("u1", 20_834) == 1


class Standstill(MemoryBucket):
    """The process is paused while it stores an input."""

    def __init__(self, clock: ManualClock, *, for_ms: int) -> None:
        super().__init__()
        self._clock, self._for_ms = clock, for_ms

    async def put(self, name: str, content: bytes) -> None:
        await self._clock.advance_ms(self._for_ms)
        await super().put(name, content)


async def test_a_process_that_stood_still_past_the_deadline_appends_nothing(admission: MemoryAdmission) -> None:
    slept = replace(admission.submitting, inputs=Standstill(admission.clock, for_ms=30_000))
    new = admission.new()

    with pytest.raises(TimeoutError):
        await slept.submit(new)

    assert await admission.log.read(new.id) == []


async def test_a_process_that_stood_still_for_less_goes_on(admission: MemoryAdmission) -> None:
    slept = replace(admission.submitting, inputs=Standstill(admission.clock, for_ms=29_000))

    assert isinstance(await slept.submit(admission.new()), Accepted)


async def test_after_an_answer_that_was_lost_it_is_one_job(admission: MemoryAdmission) -> None:
    fates = iter([Fate.UNHEARD])
    unheard = MemoryLog(admission.server, clock=admission.clock, fate=lambda messages: next(fates, Fate.ARRIVES))
    submitting = asyncio.create_task(replace(admission.submitting, log=unheard).submit(admission.new(job_id="k1")))

    while not submitting.done():
        await admission.clock.advance_ms(10)
    first = await submitting

    again = await admission.submit(job_id="k1")
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (again.again, again.job.seq) == (True, first.job.seq)


async def test_nobody_tries_to_append_for_longer_than_the_reservation_is_sure() -> None:
    admission = MemoryAdmission(submissions={"append_deadline_s": 0.05})
    await admission.fold()
    silent = MemoryLog(admission.server, clock=admission.clock, fate=lambda messages: Fate.LOST)

    with pytest.raises(TimeoutError):
        await replace(admission.submitting, log=silent).submit(admission.new())


async def test_a_place_is_held_for_the_project_as_its_event_will_name_it(admission: MemoryAdmission) -> None:
    asked: list[Request] = []

    class Seen(MemoryView):
        async def reserve(self, request: Request, *, now_ms: int | None = None) -> ReserveAnswer:
            asked.append(request)
            return await super().reserve(request, now_ms=now_ms)

    view = Seen(EPOCH, clock=admission.clock.now_ms, store=admission.store)
    outcome = await replace(admission.submitting, view=view).submit(admission.new(user="bob"))

    assert isinstance(outcome, Accepted)
    assert [each.project for each in asked] == [outcome.job.project_scope] == ["bob:shop"]

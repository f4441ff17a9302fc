"""What admission tells about jobs, on the twins of log and view."""

from __future__ import annotations

from typing import Any

from headgate_contracts import Status, Tier
from headgate_contracts.events import JobData
from headgate_contracts.tokens import job_id_for_key
from libs.capacity.answers import Heartbeat
from services.admission.finding import JobFilter
from services.admission.outcomes import Accepted
from tests.fixtures.memory_admission import MemoryAdmission

DAY_MS = 86_400_000
U1 = JobFilter(user="u1")


async def pages(admission: MemoryAdmission, wanted: JobFilter, count: int) -> list[list[str]]:
    """Every page of the list, as job ids."""
    found, before = list[list[str]](), None
    while True:
        page = await admission.listing.page(wanted, before=before, count=count)
        assert page is not None
        found.append([job.id for job in page.jobs])
        before = page.before
        if before is None:
            return found


async def test_of_others_that_were_passed_only_the_number_is_told(admission: MemoryAdmission) -> None:
    for user in ("u1", "u2"):
        await admission.submit(user=user, tier=Tier.BOOTSTRAPPER)
    passer = await admission.submitted(user="u3", tier=Tier.CTO_SCALE)

    [event] = await admission.reading.history(passer.id)

    assert event.model_dump()["passed"] == 2


async def test_a_job_that_the_view_has_not_folded_is_read_from_the_log(admission: MemoryAdmission) -> None:
    job = await admission.submitted()

    found = await admission.reading.find(job.id)

    assert found is not None
    assert (found.id, found.seq) == (job.id, job.seq)
    assert await admission.reading.find("nobody") is None


async def test_the_history_is_what_the_log_has(admission: MemoryAdmission) -> None:
    job = await admission.submitted()

    [first] = await admission.reading.history(job.id)

    assert (first.event, first.job_id, first.seq) == ("queued", job.id, job.seq)
    assert first.status == "queued"
    assert JobData.model_fields.keys() <= first.model_dump().keys()


# ── lists ─────────────────────────────────────────────────────────────────────


async def test_a_users_jobs_are_listed_newest_first_page_by_page(admission: MemoryAdmission) -> None:
    ids = [(await admission.submitted()).id for _ in range(5)]
    await admission.submitted(user="u2")
    await admission.fold()

    assert await pages(admission, U1, 2) == [[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]]
    assert await pages(admission, U1, 5) == [ids[::-1]]
    assert await pages(admission, JobFilter(user="u3"), 5) == [[]]


async def test_jobs_that_left_the_view_are_listed_among_those_that_stay(admission: MemoryAdmission) -> None:
    first = await admission.submitted()
    gone = await admission.go_on(await admission.submitted(), "cancelled")
    last = await admission.submitted()
    await admission.fold()
    await admission.forget_what_ended()
    young = await admission.submitted()

    assert await admission.view.job(gone.id) is None
    assert await pages(admission, U1, 10) == [[young.id, last.id, gone.id, first.id]]
    assert await pages(admission, U1, 1) == [[young.id], [last.id], [gone.id], [first.id]]


async def test_a_job_that_left_the_view_is_listed_as_it_ended(admission: MemoryAdmission) -> None:
    gone = await admission.go_on(await admission.submitted(), "cancelled")
    await admission.fold()
    await admission.forget_what_ended()

    page = await admission.listing.page(U1, before=None, count=5)

    assert page is not None
    assert [(job.id, job.status, job.seq) for job in page.jobs] == [(gone.id, Status.CANCELLED, gone.seq)]


async def test_a_job_whose_first_events_have_gone_by_age_is_no_longer_there(admission: MemoryAdmission) -> None:
    gone = await admission.go_on(await admission.submitted(), "dispatched", "started", "cancel_requested", "cancelled")
    admission.server.expire(through=gone.first_seq)

    assert await admission.reading.find(gone.id) is None


async def test_a_list_is_filtered_by_status_project_and_workflow(admission: MemoryAdmission) -> None:
    blog = await admission.submitted(project_id="blog")
    ended = await admission.go_on(await admission.submitted(), "cancelled")
    await admission.submitting.submit(*admission.phases(2, workflow_id="flow"))
    await admission.fold()

    async def listed(**filters: Any) -> list[str]:
        return [each for page in await pages(admission, JobFilter(user="u1", **filters), 1) for each in page]

    assert await listed(project="blog") == [blog.id]
    assert await listed(statuses=frozenset({Status.CANCELLED})) == [ended.id]
    assert await listed(workflow="flow") == ["flow-2", "flow-1"]
    assert await listed(statuses=frozenset({Status.WAITING, Status.CANCELLED})) == ["flow-2", ended.id]


# ── where a job stands ────────────────────────────────────────────────────────


async def heard(admission: MemoryAdmission, *, slots: int) -> None:
    beat = Heartbeat(worker="w1", pool="default", slots=slots, draining=False, holders=(), leases=(), ttl_ms=60_000)
    await admission.view.beat(beat)


async def test_several_jobs_are_shown_with_one_look(admission: MemoryAdmission) -> None:
    await heard(admission, slots=2)
    jobs = [await admission.submitted(user=user) for user in ("u1", "u2")]
    ended = await admission.go_on(await admission.submitted(user="u2"), "cancelled")
    await admission.fold()

    shown = await admission.reading.shown([*jobs, ended])

    assert [each.queue.position if each.queue else None for each in shown] == [1, 2, None]
    assert [each.usage.jobs_used for each in shown] == [1, 1, 1]  # the cancelled one gave its place back
    assert shown[0].queue is not None
    assert shown[0].queue.message == "no estimate yet"


async def test_an_explanation_says_what_would_let_it_run(admission: MemoryAdmission) -> None:
    job = await admission.submitted()
    await admission.fold()

    explained = await admission.reading.explained(job, owner=True)

    assert (explained.id, explained.status, explained.queue and explained.queue.position) == (job.id, "queued", 1)
    assert [each.reason for each in explained.waiting_on] == ["no_worker"]
    assert explained.would_run == ("A worker of pool default starts",)
    assert explained.may_wait_s == 604_800


async def test_an_explanation_says_how_long_a_job_may_wait_that_never_ran(admission: MemoryAdmission) -> None:
    asked = await admission.submitted(queue_ttl_s=60)
    ran = await admission.go_on(await admission.submitted(), "dispatched", "started", "given_back:lost")
    await admission.fold()

    explained = [await admission.reading.explained(job, owner=True) for job in (asked, ran)]

    assert [each.may_wait_s for each in explained] == [60, None]


async def test_a_job_that_has_ended_waits_for_nothing(admission: MemoryAdmission) -> None:
    job = await admission.go_on(await admission.submitted(), "cancelled")
    await admission.fold()

    explained = await admission.reading.explained(job, owner=True)

    assert (explained.message, explained.waiting_on, explained.would_run) == ("Cancelled", (), ())


async def test_the_usage_is_the_users_own(admission: MemoryAdmission) -> None:
    for user in ("u1", "u1", "u2"):
        await admission.submitted(user=user)
    await admission.fold()

    used = await admission.reading.usage("u1", Tier.BOOTSTRAPPER)

    assert (used.jobs_used, used.jobs_remaining, used.iterations_remaining) == (2, 3, 6)


# ── titles ────────────────────────────────────────────────────────────────────


async def test_who_is_told_of_a_job_just_taken_in_reads_its_title_and_a_later_one_asks_for_it(
    admission: MemoryAdmission,
) -> None:
    job_id = job_id_for_key("u1", "key")
    first = await admission.submit(job_id=job_id, title="A shop")
    await admission.titles.delete(job_id)  # erased since
    again = await admission.submit(job_id=job_id, title="A shop")
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)

    [told] = await admission.reading.taken(first.jobs, titles=first.titles)
    [retold] = await admission.reading.taken(again.jobs, titles=again.titles)

    assert (told.title, retold.title, again.again) == ("A shop", None, True)

"""What is told about the queue as a whole, and what operators do to it, on the twins of log and view."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from headgate_contracts import Event
from headgate_contracts.events import LeaseReleased, LimitSet, QueuePaused
from headgate_contracts.shown import Analytics
from libs.capacity.answers import Heartbeat
from libs.capacity.errors import ViewLost
from services.admission.events import Actor
from services.admission.operating import AlreadyPaused, Done, ForcedFree, NoSuchLease, NotPaused
from tests.fixtures.memory_admission import MemoryAdmission

OPS = {"by": "ops-1", "reason": "maintenance"}
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def acts(admission: MemoryAdmission) -> list[Any]:
    """The acts that the log holds."""
    found = [await admission.log.last(f"headgate.ops.v1.{act}") for act in ("paused", "resumed", "limit_set")]
    return [record.event.data for record in found if record and isinstance(record.event, Event)]


# ── the queue ─────────────────────────────────────────────────────────────────


async def test_an_operator_sees_every_job_in_order(admission: MemoryAdmission) -> None:
    low = await admission.submitted(user="u1", priority="low", labels={"team": "growth"})
    normal = await admission.submitted(user="u2")
    await admission.operating.pause("user:u1", **OPS)
    await admission.fold()
    await admission.submitted(user="u3")  # reserved, not folded yet

    queue = await admission.overseeing.whole_queue()

    assert queue.jobs is not None
    assert (queue.length, queue.cap) == (3, 100)
    assert [(line.job_id, line.user_id) for line in queue.jobs] == [(normal.id, "u2"), (low.id, "u1")]
    assert queue.jobs[1].labels == {"team": "growth"}
    assert [each.reason for each in queue.jobs[1].waiting_on] == ["paused", "no_worker"]
    assert [(pause.scope, pause.by, pause.reason) for pause in queue.paused] == [("user:u1", "ops-1", "maintenance")]


async def test_a_user_sees_how_long_it_is_and_their_own_positions(admission: MemoryAdmission) -> None:
    await admission.submitted(user="u2")
    mine = await admission.submitted(user="u1")
    ended = await admission.go_on(await admission.submitted(user="u1"), "cancelled")
    for scope in ("user:u2", "project:shop", "workflow:w", "user:u1", "pool:default"):
        await admission.operating.pause(scope, **OPS)
    await admission.fold()

    queue = await admission.overseeing.queue_of("u1")

    assert ended.status == "cancelled"
    assert (queue.length, queue.jobs) == (2, None)
    assert [each.job_id for each in queue.own] == [mine.id]
    assert sorted(pause.scope for pause in queue.paused) == ["pool:default", "user:u1"]
    assert "u2" not in queue.model_dump_json()


async def test_analytics_are_what_the_scheduler_published(admission: MemoryAdmission) -> None:
    nothing = await admission.overseeing.analytics()
    counted = Analytics(since=LONG_AGO, waits=(), forecast=())
    await admission.view.publish("analytics", counted.model_dump_json())
    for reason in ("busy", "share", "busy"):
        await admission.view.count_refused(reason)

    told = await admission.overseeing.analytics()

    assert (nothing.since, nothing.waits, nothing.refused) == (None, (), ())
    assert told.since == LONG_AGO
    assert [(each.reason, each.count) for each in told.refused] == [("busy", 2), ("share", 1)]
    assert told.refused[0].hour.minute == 0


async def test_workers_are_told_with_their_jobs(admission: MemoryAdmission) -> None:
    job = await admission.go_on(await admission.submitted(), "dispatched", "started")
    await admission.fold()
    holders = (job.holder or "",)
    beat = Heartbeat(worker="w1", pool="gpu", slots=3, draining=True, holders=holders, leases=(), ttl_ms=60_000)
    await admission.view.beat(beat)

    [worker] = await admission.overseeing.workers()

    assert (worker.worker, worker.pool, worker.slots, worker.draining) == ("w1", "gpu", 3, True)
    assert worker.jobs == (job.id,)


async def test_a_group_is_told_with_its_holders(admission: MemoryAdmission) -> None:
    job = await admission.go_on(await admission.submitted(), "dispatched", "started")
    await admission.fold()

    status = await admission.overseeing.group("user:u1")

    assert (status.limit, status.active) == (3, 1)
    assert [(each.lease, each.job_id, each.attempt) for each in status.holders] == [(f"{job.id}:1", job.id, 1)]
    assert "user:u1" in [each.group for each in await admission.overseeing.groups()]


async def test_the_last_part_of_a_group_is_no_group_and_its_full_names_are_told() -> None:
    admission = MemoryAdmission(concurrency={"limits": {"db": 3}})
    await admission.fold()
    await admission.submitted(concurrency_group="db")
    await admission.fold()

    near = await admission.overseeing.groups_near("db")

    assert near is not None
    assert near.groups == ("group:u1:shop:db",)
    assert await admission.overseeing.groups_near("group:u1:shop:db") is None


# ── acts ──────────────────────────────────────────────────────────────────────


async def test_pausing_writes_an_act_with_who_and_why(admission: MemoryAdmission) -> None:
    outcome = await admission.operating.pause("all", **OPS)
    await admission.fold()

    assert outcome == Done(in_force=False)  # nobody has folded it yet
    assert await acts(admission) == [QueuePaused(scope="all", **OPS)]
    assert [pause.scope for pause in await admission.view.pauses()] == ["all"]


async def test_pausing_what_is_paused_changes_nothing_and_says_who_did_it(admission: MemoryAdmission) -> None:
    await admission.operating.pause("all", **OPS)
    await admission.fold()
    before = await admission.log.mark()

    outcome = await admission.operating.pause("all", by="ops-2", reason="me too")

    assert isinstance(outcome, AlreadyPaused)
    assert (outcome.pause.by, outcome.pause.reason) == ("ops-1", "maintenance")
    assert await admission.log.mark() == before


async def test_resuming_what_is_not_paused_changes_nothing(admission: MemoryAdmission) -> None:
    await admission.operating.pause("user:u1", **OPS)
    await admission.fold()
    before = await admission.log.mark()

    assert await admission.operating.resume("all", **OPS) == NotPaused()
    assert await admission.log.mark() == before


async def test_a_resume_is_not_misled_by_a_view_that_is_behind(admission: MemoryAdmission) -> None:
    await admission.operating.pause("all", **OPS)  # answered, and not folded

    assert isinstance(await admission.operating.resume("all", **OPS), Done)
    await admission.fold()
    assert await admission.view.pauses() == ()


async def test_while_there_is_no_view_the_queue_can_still_be_paused(
    admission: MemoryAdmission, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost() -> None:
        raise ViewLost

    monkeypatch.setattr(admission.view, "mark", lost)

    assert await admission.operating.pause("all", **OPS) == Done(in_force=False)
    assert await acts(admission) == [QueuePaused(scope="all", **OPS)]


async def test_a_limit_is_an_act_and_counts_for_the_backlog(admission: MemoryAdmission) -> None:
    await admission.operating.set_limit("group:shop:db", 7, **OPS)
    await admission.fold()

    assert (await admission.overseeing.group("group:shop:db")).limit == 7
    assert await acts(admission) == [LimitSet(group="group:shop:db", limit=7, **OPS)]


async def test_a_limit_that_is_unset_is_an_act_and_policy_counts_again(admission: MemoryAdmission) -> None:
    await admission.operating.set_limit("workflows", 7, **OPS)
    await admission.fold()

    await admission.operating.unset_limit("workflows", **OPS)
    await admission.fold()

    assert (await admission.overseeing.group("workflows")).limit == 5
    assert (await admission.log.last("headgate.ops.v1.limit_unset")) is not None


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("workflows", None),
        ("llm:openai", None),
        ("user:u1", None),
        ("project:u1:shop", None),
        ("group:u1:shop:db", None),
        ("llm:opennai", ["llm:openai"]),
        ("group:u1:shop:dbs", ["group:u1:shop:db"]),
        ("project:u2:shop", ["project:u1:shop"]),
        ("workflow", ["workflows"]),
        ("stage:of:nothing:2", []),
        ("user:nobody", ["user:u1"]),
    ],
)
async def test_a_group_that_nobody_has_is_told_with_what_is_near_it(
    admission: MemoryAdmission, name: str, there: list[str] | None
) -> None:
    """Known by policy, or by a job that waits and whose groups nobody holds yet."""
    await admission.submitted(concurrency_group="db", concurrency_limit=2)
    await admission.fold()

    near = await admission.overseeing.groups_near(name)

    assert (near and list(near.groups[:1])) == there


async def test_a_forced_release_names_the_holder(admission: MemoryAdmission) -> None:
    job = await admission.go_on(await admission.submitted(), "dispatched", "started")
    await admission.fold()

    outcome = await admission.operating.release("user:u1", f"{job.id}:1", **OPS)

    assert isinstance(outcome, ForcedFree)
    assert (outcome.holder.job, outcome.holder.attempt) == (job.id, 1)
    record = await admission.log.last("headgate.ops.v1.lease_released")
    assert record is not None
    assert isinstance(record.event, Event)
    assert record.event.data == LeaseReleased(group="user:u1", lease=f"{job.id}:1", **OPS)


async def test_a_lease_that_nobody_holds_is_not_released(admission: MemoryAdmission) -> None:
    job = await admission.go_on(await admission.submitted(), "dispatched", "started")
    await admission.fold()
    before = await admission.log.mark()

    for group, lease in (("user:u1", f"{job.id}:2"), ("user:u2", f"{job.id}:1"), ("user:u1", "nobody")):
        assert isinstance(await admission.operating.release(group, lease, **OPS), NoSuchLease)
    assert await admission.log.mark() == before


async def test_the_audit_tells_what_operators_did_to_the_queue_and_to_jobs(admission: MemoryAdmission) -> None:
    theirs, own = await admission.submitted(user="u1"), await admission.submitted(user="u2")
    await admission.operating.pause("all", **OPS)
    await admission.operating.set_limit("workflows", 9, **OPS)
    await admission.changing.cancel(theirs, act=Actor("ops-1", "too long", operator=True))
    await admission.changing.cancel(own, act=Actor("u2", "a mistake"))

    entries = await admission.overseeing.acts(since=LONG_AGO, after=0, count=10)

    assert [(each.act, each.by, each.reason, each.about) for each in entries] == [
        ("paused", "ops-1", "maintenance", "all"),
        ("limit_set", "ops-1", "maintenance", "workflows"),
        ("cancelled", "ops-1", "too long", theirs.id),
    ]
    assert entries[1].details == {"group": "workflows", "limit": 9}
    assert [each.act for each in await admission.overseeing.acts(since=LONG_AGO, after=entries[0].seq, count=1)] == [
        "limit_set"
    ]

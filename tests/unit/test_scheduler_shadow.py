"""The engine beside the view: each plan of both is compared, and a difference is said."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_contracts.events import Group
from libs.capacity.answers import Heartbeat, LeaseRequest
from libs.capacity.turns import NO_PLAN
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import World

DB = "group:user-1:project-1:db"


async def lease(world: World, name: str, *groups: str) -> None:
    asked = {"owner": None, "ttl_ms": 30_000, "wait_ms": 0, "reply": ""}
    await world.view.acquire(LeaseRequest(lease=name, groups=groups, **asked))


async def test_both_plan_the_same_through_a_jobs_life(world: World, leader: Replica) -> None:
    await world.beat(slots=2)
    await world.submit_many(4)
    await world.settle(leader)
    await world.finish("job-00")
    await world.pass_ms(3000, leader)

    assert len(world.dispatched()) == 3
    assert set(leader.planner.shadow.verdicts) == {"same"}


async def test_a_lease_is_the_border_and_no_difference(world: World, leader: Replica) -> None:
    await world.beat(slots=2)
    await lease(world, "held", DB)
    await world.submit("job-1", groups=(Group(name=DB, limit=1),))

    await world.pass_ms(1000, leader)

    assert world.dispatched() == []
    assert leader.planner.shadow.verdicts["border"] > 0
    assert leader.planner.shadow.verdicts["differs"] == 0


async def test_a_worker_that_only_the_view_has_heard_is_no_difference(world: World, leader: Replica) -> None:
    beat = Heartbeat(worker="w", pool="default", slots=2, draining=False, holders=(), leases=(), ttl_ms=30_000)
    await world.view.beat(beat)
    await world.submit("job-1")

    await world.pass_ms(1000, leader)

    assert world.dispatched() == ["job-1"]
    assert leader.planner.shadow.verdicts["differs"] == 0


async def test_a_difference_that_stays_is_said(
    world: World, leader: Replica, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def picks_nobody(*_: Any, **__: Any) -> Any:
        return NO_PLAN.__class__(leader.planner.engine.applied, (), {}, {}, more=False)

    monkeypatch.setattr(type(leader.planner.engine), "plan", picks_nobody)
    await world.beat(slots=2)
    await world.submit("job-1")

    await world.pass_ms(1000, leader)

    assert leader.planner.shadow.verdicts["differs"] == 1
    assert "the view plans Plan(" in caplog.text

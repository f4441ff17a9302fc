"""What held a job while it waited, told afterwards: histories, and what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pytest

from headgate_contracts import Job, advance
from headgate_contracts.events import Group
from libs.capacity.projection import epoch_ms
from libs.capacity.rows import Pause
from libs.forecast.waited import FullSpan, HoldSpans, LifeStep, PausedSpan, scopes_and_groups, waits_of
from tests.fixtures.lives import step, submission

BEGAN = datetime(2026, 3, 1, 10, tzinfo=UTC)


def at(second: float) -> datetime:
    return BEGAN + timedelta(seconds=second)


def ms(second: float) -> int:
    return epoch_ms(at(second))


def lived(*events: tuple[float, str] | tuple[float, str, dict[str, Any]], **asked: Any) -> list[LifeStep]:
    """A job's life: at which second, which event, what it says."""
    job: Job | None = None
    life = list[LifeStep]()
    for second, word, *more in events:
        details: dict[str, Any] = more[0] if more else {}
        first = {"user_id": "ann", "project_id": "shop", "submission": submission(**asked)} if job is None else {}
        event = step("j1" if job is None else job, word, **first, **details)
        job = advance(job, event, at=at(second))
        life.append(LifeStep(job, event.data))
    return life


def paused(scope: str, began: float, ended: float = inf, *, reason: str = "") -> PausedSpan:
    return PausedSpan(Pause(scope, "olga", reason, ms(began)), ms(ended) if ended < inf else inf)


def full(group: str, limit: int, began: float, ended: float = inf, *, tier: str | None = None) -> FullSpan:
    return FullSpan(group, limit, tier, ms(began), ms(ended) if ended < inf else inf)


def told(
    life: Sequence[LifeStep], *holds: PausedSpan | FullSpan, owner: bool = True
) -> list[tuple[float, float | None, str]]:
    """From which second to which, and the words."""
    spans = HoldSpans(
        tuple(each for each in holds if isinstance(each, PausedSpan)),
        tuple(each for each in holds if isinstance(each, FullSpan)),
    )
    shown = waits_of(life, spans, owner=owner)
    return [
        ((each.since - BEGAN).total_seconds(), each.until and (each.until - BEGAN).total_seconds(), each.message)
        for each in shown
    ]


RUN: list[tuple[float, str]] = [(0, "queued"), (1, "dispatched"), (2, "started")]
STARTED = lived((0, "queued"), (60, "dispatched"), (61, "started"))
WAITS = lived((0, "queued"))


@pytest.mark.parametrize(
    ("life", "holds", "expected"),
    [
        (STARTED, [], [(0, 60, "Waited its turn")]),
        (WAITS, [], [(0, None, "Waits its turn")]),
        (
            STARTED,
            [paused("all", 10, 30, reason="disk full")],
            [
                (0, 10, "Waited its turn"),
                (10, 30, "The whole queue was paused by olga: disk full"),
                (30, 60, "Waited its turn"),
            ],
        ),
        (WAITS, [paused("user:ann", -50)], [(0, None, "Your jobs are paused by olga")]),
        (
            STARTED,
            [paused("user:ben", 0), paused("project:blog", 0), paused("pool:gpu", 0)],
            [(0, 60, "Waited its turn")],
        ),
        (
            STARTED,
            [full("user:ann", 2, -5, 40), full("pool:default", 4, 20)],
            [(0, 40, "Your jobs: 2 of 2 slots were taken"), (40, 60, "Pool default: 4 of 4 slots were taken")],
        ),
        (
            STARTED,
            [full("user:ann", 2, 0), paused("priority:normal", 20, 40)],
            [
                (0, 20, "Your jobs: 2 of 2 slots were taken"),
                (20, 40, "All jobs of normal priority were paused by olga"),
                (40, 60, "Your jobs: 2 of 2 slots were taken"),
            ],
        ),
        (STARTED, [full("user:ben", 2, 0), full("project:shop", 2, 0, tier="cto_scale")], [(0, 60, "Waited its turn")]),
        (
            STARTED,
            [full("project:shop", 3, 0, 20, tier="partner"), full("project:shop", 3, 20.4, 59.6, tier="partner")],
            [(0, 60, "This project's jobs: 3 of 3 slots were taken")],
        ),
    ],
    ids=["nothing", "still", "paused", "paused long", "others", "two groups", "pause first", "tiers", "brief"],
)
def test_a_wait_in_the_queue_is_told_by_what_held_it(
    life: list[LifeStep], holds: list[PausedSpan | FullSpan], expected: list[Any]
) -> None:
    assert told(life, *holds) == expected


TRIED = {
    "stage": "code",
    "iteration": 1,
    "tries": 1,
    "most": 3,
    "summary": "429",
    "again_at": at(90),
}


@pytest.mark.parametrize(
    ("life", "expected"),
    [
        (
            lived((0, "scheduled", {"scheduled_for": at(100)}), (130, "queued"), (131, "dispatched")),
            [
                (0, 100, "The day's jobs were used: waited until 2026-03-01 10:01 UTC"),
                (100, 130, "Its time had come: waited to enter the queue"),
                (130, 131, "Waited its turn"),
            ],
        ),
        (
            lived(
                (0, "scheduled", {"scheduled_for": at(60)}),
                (60.2, "queued"),
                (70, "cancelled"),
                run_at=at(60),
            ),
            [(0, 60.2, "Submitted for later: waited until 2026-03-01 10:01 UTC"), (60.2, 70, "Waited its turn")],
        ),
        (
            lived((0, "waiting", {"workflow": "w", "phase": 2}), (20, "queued"), workflow="w", phase=2, phases=2),
            [(0, 20, "Waited for phase 1 of the workflow"), (20, None, "Waits its turn")],
        ),
        (
            lived(*RUN, (3, "given_back:lost"), (9, "dispatched")),
            [(0, 1, "Waited its turn"), (3, 9, "Its worker was lost: waited its turn, at its old place")],
        ),
        (
            lived(*RUN, (3, "given_back:drained"), (9, "cancelled")),
            [(0, 1, "Waited its turn"), (3, 9, "Its worker was stopped: waited its turn, at its old place")],
        ),
        (
            lived(*RUN, (3, "given_back:forced")),
            [(0, 1, "Waited its turn"), (3, None, "An operator freed its slot: waits its turn, at its old place")],
        ),
        (
            lived(*RUN, (3, "given_back:provider", {"provider": "gemini"}), (9, "dispatched")),
            [
                (0, 1, "Waited its turn"),
                (3, 9, "Provider gemini had paused: waited until it takes calls, and its turn"),
            ],
        ),
        (
            lived(*RUN, (3, "scaffold"), (4, "code"), (50, "try_failed", {"tried": TRIED}), (200, "deps")),
            [(0, 1, "Waited its turn"), (50, 90, "Waited before try 2 of 4 of code")],
        ),
        (
            lived(
                *RUN, (3, "scaffold"), (4, "code"), (5, "deps"), (6, "checks"), (7, "awaiting_confirmation"),
                (8, "confirmation_reminder"), (50, "confirmed"), (55, "dispatched"),
            ),
            [(0, 1, "Waited its turn"), (7, 50, "Waited for your answer"), (50, 55, "Waited its turn")],
        ),
    ],
    ids=["day", "later", "phase", "lost", "drained", "forced", "provider", "try", "answer"],
)  # fmt: skip
def test_every_other_wait_is_told_by_its_own_events(life: list[LifeStep], expected: list[Any]) -> None:
    assert told(life) == expected


def test_how_it_came_to_wait_stands_beside_each_piece() -> None:
    life = lived(
        (0, "queued"), (1, "dispatched"), (2, "started"), (3, "given_back:lost"), (9, "moved"), (20, "dispatched")
    )

    shown = waits_of(life, HoldSpans((paused("all", 5, 12),)))

    assert [(each.after, each.reason, each.by) for each in shown] == [
        ("submitted", "turn", None),
        ("lost", "turn", None),
        ("lost", "paused", "olga"),
        ("lost", "turn", None),
    ]


def test_a_pause_of_a_class_holds_it_only_while_it_is_of_that_class() -> None:
    life = lived(
        (0, "queued"), (20, "reprioritized", {"from_": "normal", "to": "high", "place": 9}), (60, "dispatched")
    )

    assert told(life, paused("priority:normal", 0)) == [
        (0, 20, "All jobs of normal priority were paused by olga"),
        (20, 60, "Waited its turn"),
    ]


def test_an_operator_reads_whose_jobs_they_are() -> None:
    [(_, _, own)] = told(WAITS, full("user:ann", 2, 0), owner=False)
    [(_, _, asks)] = told(WAITS, paused("user:ann", 0), owner=False)

    assert own == "Jobs of user ann: 2 of 2 slots are taken"
    assert asks == "The jobs of user ann are paused by olga"


def test_named_groups_and_workflows_are_told_too() -> None:
    life = lived((0, "queued"), groups=(Group(name="group:shop:db"),), workflow="w", phase=1, phases=2)

    assert told(life, full("workflows", 5, 0, 10), full("group:shop:db", 1, 0, 20)) == [
        (0, 20, "Group group:shop:db: 1 of 1 slots were taken"),
        (20, None, "Waits its turn"),
    ]
    assert told(life, full("workflows", 5, 0)) == [(0, None, "Jobs of all workflows: 5 of 5 slots are taken")]
    assert scopes_and_groups(life) == (
        {"all", "priority:normal", "pool:default", "user:ann", "project:shop", "workflow:w"},
        {"user:ann", "project:shop", "workflows", "group:shop:db", "pool:default"},
    )


def test_a_wait_begins_and_ends_with_its_events_to_the_millisecond() -> None:
    life = lived((0.0006, "queued"), (0.9999, "dispatched"))

    [wait] = waits_of(life, HoldSpans())

    assert (wait.since - BEGAN, wait.until and wait.until - BEGAN) == (timedelta(0), timedelta(milliseconds=999))


def test_many_spans_of_a_group_are_told_as_long_as_they_do_not_overlap() -> None:
    spans = [full("user:ann", 2, 10 * number, 10 * number + 5) for number in range(-2, 9)]

    found = told(STARTED, *spans)

    assert len(found) == 12
    assert found[:3] == [
        (0, 5, "Your jobs: 2 of 2 slots were taken"),
        (5, 10, "Waited its turn"),
        (10, 15, "Your jobs: 2 of 2 slots were taken"),
    ]

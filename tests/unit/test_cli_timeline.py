"""A job's life as a waterfall: hops, attempts and bars from the events of its history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.values import JobWait
from libs.cli.timeline import Hop, attempts, bars, hops, with_waits


def event(name: str, at_ms: int, *, attempt: int = 0, **more: Any) -> dict[str, Any]:
    """One of a history, so many milliseconds after noon."""
    at = f"2026-11-18T12:00:{at_ms // 1000:02}.{at_ms % 1000:03}Z"
    return {"seq": at_ms + 1, "at": at, "event": name, "attempt": attempt, **more}


def shown(told: tuple[Hop, ...]) -> list[tuple[str, float, float | None]]:
    return [(hop.words, hop.at_ms, hop.took_ms) for hop in told]


SUBMITTED: dict[str, Any] = {"submission": {"submitted_at": "2026-11-18T12:00:00.000Z"}}
WHOLE = [
    event("queued", 4, **SUBMITTED),
    event("dispatched", 9, attempt=1),
    event("started", 12, attempt=1, worker="w1"),
    event("stage", 15, attempt=1, stage="scaffold", iteration=1),
    event("stage", 25, attempt=1, stage="code", iteration=2),
    event("ready", 55, attempt=1),
]


def test_each_hop_lasts_until_the_next_one() -> None:
    assert shown(hops(WHOLE)) == [
        ("on its way into the log", 0, 4),
        ("in the queue", 4, 5),
        ("on its way to a worker", 9, 3),
        ("claimed by w1", 12, 3),
        ("stage scaffold", 15, 10),
        ("stage code, iteration 2", 25, 30),
        ("ready", 55, 0),
    ]


def test_what_changes_only_the_place_is_a_moment_and_ends_no_hop() -> None:
    told = hops([event("queued", 0), event("moved", 3), event("dispatched", 10, attempt=1)])

    assert shown(told) == [("in the queue", 0, 10), ("moved", 3, 0), ("on its way to a worker", 10, None)]


def test_a_hop_that_still_lasts_has_no_length() -> None:
    assert hops(WHOLE[:3])[-1].took_ms is None
    assert hops(WHOLE[:3])[-1].row[1] == "…"


def test_a_job_that_came_back_has_two_attempts() -> None:
    told = hops(
        [
            event("queued", 0),
            event("dispatched", 10, attempt=1),
            event("started", 20, attempt=1, worker="w1"),
            event("given_back", 50, attempt=1, reason="lost"),
            event("dispatched", 60, attempt=2),
            event("started", 65, attempt=2, worker="w2"),
            event("failed", 80, attempt=2),
        ]
    )

    assert ("given back, waits again: lost", 50, 10) in shown(told)
    assert attempts(told) == {1: 40, 2: 20}


def test_what_held_it_stands_below_the_wait_in_which_it_did() -> None:
    history = [event("queued", 0), event("dispatched", 50, attempt=1), event("ready", 60, attempt=1)]
    noon = datetime(2026, 11, 18, 12, tzinfo=UTC)

    def piece(reason: str, since_ms: int, until_ms: int | None) -> JobWait:
        since, until = (None if each is None else noon + timedelta(milliseconds=each) for each in (since_ms, until_ms))
        return JobWait(since=since or noon, until=until, reason=reason, message=reason.replace("_", " "))

    told = with_waits(
        hops(history), history, [piece("pool_full", 0, 30), piece("paused", 30, 40), piece("turn", 40, 50)]
    )

    assert shown(told) == [
        ("in the queue", 0, 50),
        ("· pool full", 0, 30),
        ("· paused", 30, 10),
        ("on its way to a worker", 50, 10),
        ("ready", 60, 0),
    ]
    assert with_waits(hops(history[:1]), history[:1], [piece("paused", 30, None)])[-1].row[1] == "…"


def test_a_clock_of_admission_that_is_ahead_shortens_nothing() -> None:
    late: dict[str, Any] = {"submission": {"submitted_at": "2026-11-18T12:00:07.000Z"}}

    assert shown(hops([event("queued", 4, **late), event("cancelled", 9)])) == [
        ("in the queue", 0, 5),
        ("cancelled", 5, 0),
    ]


def test_bars_stand_where_their_hops_do_to_one_scale() -> None:
    told = hops([event("queued", 0), event("dispatched", 50, attempt=1), event("ready", 100, attempt=1)])

    assert bars(told, width=10) == ["█████", "     █████", "         ▏"]


def test_no_bar_is_wider_than_it_may_be_and_none_vanishes() -> None:
    for width in (1, 7, 80):
        drawn = bars(hops(WHOLE), width=width)
        assert max(map(len, drawn)) <= width
        assert all(line.strip() for line in drawn)


def test_a_job_without_a_history_has_no_hops() -> None:
    assert (hops([]), bars((), width=10), attempts(())) == ((), [], {})

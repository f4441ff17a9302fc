"""What a drill concludes from what it saw."""

from __future__ import annotations

from tests.drills.losses import Happened, NodeLoss, Seen, Submitted, cost_of, faults

LOSS = NodeLoss("one", "nats, worker", killed_at=100.0, back_at=140.0, until=160.0)


def seen_of(*history: tuple[str, str, float], untold: tuple[int, ...] = ()) -> Seen:
    happened = [Happened(seq, job, event, at) for seq, (job, event, at) in enumerate(history)]
    arrived = {each.seq: each.at + 0.5 for each in happened if each.seq not in untold}
    return Seen([Submitted(job, 99.0, 99.1) for job in sorted({each.job_id for each in happened})], happened, arrived)


def test_what_was_lost_counts_from_the_kill_until_it_runs_again() -> None:
    seen = seen_of(("a", "started", 98), ("a", "given_back", 131), ("a", "started", 133.5), ("a", "ready", 138))
    seen.submitted.append(Submitted("b", 101.0, 109.0))

    cost = cost_of(LOSS, seen)

    assert (cost.given_back, cost.again, cost.pause, cost.answer, cost.late) == (1, 33.5, 33.5, 8.0, 0.5)


def test_nothing_of_another_loss_is_counted() -> None:
    cost = cost_of(LOSS, seen_of(("a", "given_back", 99), ("a", "started", 161)))

    assert (cost.given_back, cost.again, cost.pause, cost.late) == (0, 0.0, 0.0, 0.0)


def test_a_job_that_ended_once_and_was_told_is_no_fault() -> None:
    assert not faults(seen_of(("a", "started", 101), ("a", "ready", 102)))


def test_a_job_that_never_ended_or_ended_twice_or_badly_or_untold_is_one() -> None:
    assert faults(seen_of(("a", "started", 101))) == ["a has ended 0 times"]
    assert faults(seen_of(("a", "ready", 101), ("a", "ready", 102))) == ["a has ended 2 times"]
    assert faults(seen_of(("a", "failed", 101))) == ["a is failed"]
    assert faults(seen_of(("a", "ready", 101), untold=(0,))) == ["a: no stream told ready"]


def test_a_job_that_nobody_was_promised_is_one_too() -> None:
    seen = seen_of(("a", "ready", 101))
    seen.submitted.clear()

    assert faults(seen) == ["a was accepted of nobody"]

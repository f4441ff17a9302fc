"""Whose turn it is: when a class starves, which start is its own, and what does not count."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts import Priority
from headgate_contracts.events import Act, QueuePaused, QueueResumed
from libs.capacity.ledger import Ledger
from libs.capacity.snapshot import dump, load
from libs.capacity.turns import Turn, before_next, owed
from libs.policy import Policy
from tests.fixtures.lives import step, submission
from tests.unit.test_ledger import act

T0 = datetime(2026, 1, 1, tzinfo=UTC)
URGENT, NORMAL, LOW = 10, 50, 70
RULE = {"after_ms": 3_600_000, "every": 10}


@dataclass(frozen=True)
class Logged:
    seq: int
    at: datetime
    event: object


class Queue:
    """A ledger in which a second passes with each record."""

    def __init__(self) -> None:
        self.ledger = Ledger(Policy())
        self.at = T0

    def enter(self, name: str, priority: Priority) -> None:
        self.write(step(name, "queued", submission=submission(priority=priority)))

    def start(self, name: str, *, starved: bool = False) -> None:
        self.write(step(self.ledger.jobs[name], "dispatched", starved=starved))

    def start_others(self, count: int) -> None:
        for number in range(count):
            name = f"other-{self.ledger.applied}-{number}"
            self.enter(name, Priority.URGENT)
            self.start(name)

    def write(self, event: object) -> None:
        self.at += timedelta(seconds=1)
        change = self.ledger.apply(Logged(self.ledger.applied + 1, self.at, event))
        assert change.complaint is None, change.complaint

    def act(self, data: Act) -> None:
        self.write(act(data))

    def turn(self, class_number: int) -> Turn | None:
        return self.ledger.turns.by_class.get(class_number)

    @property
    def owed(self) -> tuple[int, ...]:
        return owed(self.ledger.turns.by_class, now_ms=ms(self.at), **RULE)

    @property
    def before_next(self) -> int | None:
        return before_next(self.ledger.turns.by_class, now_ms=ms(self.at), **RULE)


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def starving(others: int) -> Queue:
    """Low has waited for an hour, while so many others were started."""
    queue = Queue()
    queue.enter("low-1", Priority.LOW)
    queue.enter("low-2", Priority.LOW)
    queue.at += timedelta(hours=1)
    queue.start_others(others)
    return queue


def test_a_class_that_has_waited_for_an_hour_is_owed_every_tenth_start() -> None:
    assert [starving(others).owed for others in (8, 9, 10)] == [(), (LOW,), (LOW,)]


def test_a_batch_is_cut_before_the_start_that_is_owed() -> None:
    assert [starving(others).before_next for others in (0, 4, 8, 9)] == [9, 5, 1, None]


def test_before_an_hour_is_over_nothing_is_owed() -> None:
    queue = Queue()
    queue.enter("low-1", Priority.LOW)
    queue.start_others(20)

    assert (queue.owed, queue.before_next) == ((), None)


def test_an_owed_start_counts_anew_and_the_class_starves_on() -> None:
    queue = starving(9)
    since_ms = queue.ledger.turns.by_class[LOW].since_ms

    queue.start("low-1", starved=True)

    assert queue.turn(LOW) == Turn(since_ms, 0)
    assert queue.before_next == 9


def test_a_start_in_its_turn_ends_the_claim() -> None:
    queue = starving(9)

    queue.start("low-1")

    assert queue.turn(LOW) == Turn(ms(queue.at), 0)
    assert (queue.owed, queue.before_next) == ((), None)


def test_an_empty_class_has_no_claim() -> None:
    queue = starving(9)
    for name in ("low-1", "low-2"):
        queue.write(step(queue.ledger.jobs[name], "cancelled"))

    queue.enter("low-3", Priority.LOW)

    assert queue.turn(LOW) == Turn(ms(queue.at), 0)


def test_a_paused_class_has_no_claim_and_begins_anew() -> None:
    queue = starving(9)
    queue.act(QueuePaused(scope="user:user-1", by="olga"))
    paused = queue.turn(LOW)

    queue.act(QueueResumed(scope="user:user-1", by="olga"))

    assert (paused, queue.turn(LOW)) == (None, Turn(ms(queue.at), 0))


def test_one_unpaused_job_keeps_the_claim() -> None:
    queue = starving(9)
    queue.write(step("low-3", "queued", user_id="user-2", submission=submission(priority=Priority.LOW)))
    queue.act(QueuePaused(scope="user:user-1", by="olga"))

    assert queue.owed == (LOW,)


def test_who_waits_longest_for_its_own_start_goes_first() -> None:
    turns = {50: Turn(0, 12), 70: Turn(0, 14), 90: Turn(0, 12), 20: Turn(0, 3)}

    assert owed(turns, now_ms=3_600_000, **RULE) == (70, 50, 90)
    assert before_next(turns, now_ms=3_600_000, **RULE) == 6


@given(seed=st.integers(0, 2**32))
def test_a_class_is_present_exactly_while_it_has_an_unpaused_job(seed: int) -> None:
    random, queue = Random(seed), Queue()
    for number in range(60):
        scope = random.choice(["all", "priority:low", "user:user-1", "pool:default", "project:project-1", "pool:gpu"])
        match random.randrange(6):
            case 0 | 1:
                queue.enter(f"job-{number}", random.choice(list(Priority)))
            case 2:
                queue.act(QueuePaused(scope=scope, by="olga"))
            case 3:
                queue.act(QueueResumed(scope=scope, by="olga"))
            case _:
                jobs = [job for job in queue.ledger.jobs.values() if job.status.value == "queued"]
                if jobs:
                    queue.write(step(random.choice(jobs), random.choice(["dispatched", "cancelled"])))

    stand = [job for job in queue.ledger.jobs.values() if job.status.value == "queued"]
    unpaused = [job for job in stand if not set(queue.ledger.orders.pauses) - {"pool:gpu"} & scopes(job.priority)]
    present = {job.priority.class_number for job in unpaused}
    resumed = load(dump(queue.ledger, epoch="E"), epoch="E", policy=Policy())

    assert set(queue.ledger.turns.by_class) == set(queue.ledger.turns.present) == present
    assert resumed.turns == queue.ledger.turns


def scopes(priority: Priority) -> set[str]:
    return {"all", "user:user-1", "pool:default", "project:project-1", f"priority:{priority.value}"}

"""Whose turn it is: when a class starves, which start is its own, and what does not count."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts import Priority
from headgate_contracts.events import Act, QueuePaused, QueueResumed
from libs.capacity.answers import Pick, Plan
from libs.capacity.ledger import Ledger
from libs.capacity.snapshot import dump, load
from libs.capacity.turns import Starts, Turn, before_next, next_starts, owed
from libs.policy import Order, Policy
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


def test_a_batch_is_cut_before_the_first_of_several_claims() -> None:
    turns = {50: Turn(0, 2), 70: Turn(0, 7), 90: Turn(0, 4)}

    assert before_next(turns, now_ms=3_600_000, **RULE) == 2


async def starts_of(low: Turn, *, standing: tuple[int, ...], now_ms: int = 3_600_000) -> Starts:
    """What starts next where low is the only class that may starve, of jobs of these classes in the queue's order."""
    picks = [Pick(f"{class_number}-{number}", number) for number, class_number in enumerate(standing)]

    async def picked(most: int, *, only_class: int | None = None) -> Plan:
        own = [pick for pick in picks if only_class is None or class_of(pick) == only_class]
        return Plan(0, tuple(own[:most]), {}, {}, more=False)

    order = Order(starved_after_s=3600, starved_every=10)
    return await next_starts({LOW: low}, order, now_ms=now_ms, most=5, picks=picked, first_class=first_class)


def first_class(plan: Plan) -> int | None:
    return class_of(plan.picks[0]) if plan.picks else None


def class_of(pick: Pick) -> int:
    return int(pick.job.split("-")[0])


async def test_a_class_is_owed_from_the_very_millisecond_at_which_it_starves() -> None:
    asked = [await starts_of(Turn(0, 9), standing=(URGENT, LOW), now_ms=now) for now in (3_599_999, 3_600_000)]

    assert [starts.owed for starts in asked] == [False, True]


async def test_a_class_that_is_owed_a_start_and_comes_first_anyway_is_given_one_alone() -> None:
    starts = await starts_of(Turn(0, 9), standing=(LOW, LOW, LOW))

    assert (starts.most, starts.owed, starts.claimed) == (1, False, True)


async def test_an_owed_start_is_one_alone_and_the_next_is_decided_anew() -> None:
    starts = await starts_of(Turn(0, 9), standing=(URGENT, LOW, LOW))

    assert (starts.most, starts.owed, starts.claimed) == (1, True, True)
    assert [pick.job for pick in starts.plan.picks] == ["70-1"]


async def test_who_owes_nobody_starts_as_many_as_fit_before_the_next_claim() -> None:
    starts = [await starts_of(Turn(0, others), standing=(URGENT,) * 5) for others in (2, 7)]

    assert [(each.most, each.owed, each.claimed) for each in starts] == [(5, False, False), (2, False, False)]


async def test_a_claim_that_nobody_can_take_up_leaves_the_starts_to_the_others() -> None:
    starts = await starts_of(Turn(0, 9), standing=(URGENT, URGENT))

    assert (starts.most, starts.owed, starts.claimed, len(starts.plan.picks)) == (5, False, True, 2)


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

"""Whose turn it is: no class of the queue waits for ever behind higher ones.

    a class starves    it has had an unpaused job in the queue for `after_ms`, and nothing of it was started in its turn
    it is owed         every n-th start while it starves: n - 1 of them went to others since one was its own

A start that was owed is not one in the class's turn: the class starves on until it is reached in order, or is empty.
Owns the counting, the question who is owed, and what the scheduler and the forecast start next by it. Refuses to know
why a job cannot run: a class whose jobs cannot gives its turn to the others and keeps its claim. When a job rises a
class by waiting is another rule: `Order.risen` of the policy.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from headgate_contracts import Job, Status
from libs.capacity.answers import Plan
from libs.policy import Order

NO_PLAN: Final = Plan(0, (), {}, {}, more=False)


@dataclass(frozen=True, slots=True)
class Turn:
    """Of a class with unpaused jobs: since when nothing was started in its turn, and how many starts others had since
    its own last one."""

    since_ms: int
    others: int = 0


@dataclass(slots=True)
class Turns:
    """The turns of all classes, by class number."""

    by_class: dict[int, Turn] = field(default_factory=dict[int, Turn])
    present: Counter[int] = field(default_factory=Counter[int])  # unpaused jobs in the queue
    counted: dict[str, int] = field(default_factory=dict[str, int])  # which those are, with their class

    def fold(self, job: Job, *, paused: bool, at_ms: int) -> None:
        """The job is like this now."""
        was = self.counted.get(job.id)
        now = job.priority.class_number if job.status is Status.QUEUED and not paused else None
        if was == now:
            return
        if now is not None:
            self.counted[job.id] = now
            self.come(now, at_ms=at_ms)
        if was is not None:
            if now is None:
                del self.counted[job.id]
            self.go(was)

    def restore(self, job: Job, *, paused: bool) -> None:
        """As a snapshot holds it: the turns are known."""
        if job.status is Status.QUEUED and not paused:
            self.counted[job.id] = job.priority.class_number
            self.present[job.priority.class_number] += 1

    def come(self, class_number: int, *, at_ms: int) -> None:
        """One more unpaused job of the class stands in the queue."""
        self.present[class_number] += 1
        self.by_class.setdefault(class_number, Turn(at_ms))

    def go(self, class_number: int) -> None:
        """One less, by whatever. A class without any has no claim."""
        self.present[class_number] -= 1
        if not self.present[class_number]:
            del self.present[class_number]
            self.by_class.pop(class_number, None)

    def start(self, class_number: int, *, at_ms: int, starved: bool) -> None:
        """A job of this class was started; it is out of the queue already."""
        for other, turn in self.by_class.items():
            if other != class_number:
                self.by_class[other] = Turn(turn.since_ms, turn.others + 1)
            else:
                self.by_class[other] = Turn(turn.since_ms if starved else at_ms)


@dataclass(frozen=True, slots=True)
class Starts:
    """Who may start now: at most `most` of the plan, `owed` as their class's due. `claimed`: some class is owed one."""

    plan: Plan = NO_PLAN
    most: int = 0
    owed: bool = False
    claimed: bool = False


class Picks(Protocol):
    """Whom the view picks: of all that wait, or of one class alone."""

    def __call__(self, most: int, *, only_class: int | None = None) -> Awaitable[Plan]: ...


async def next_starts(
    turns: Mapping[int, Turn],
    order: Order,
    *,
    now_ms: int,
    most: int,
    picks: Picks,
    first_class: Callable[[Plan], int | None],
) -> Starts:
    """In the order of the queue, unless a class that starves is owed the next start and one of its jobs can run."""
    rule = {"now_ms": now_ms, "after_ms": round(order.starved_after_s * 1000), "every": order.starved_every}
    claims, next_after = owed(turns, **rule), before_next(turns, **rule)
    most = most if next_after is None else min(most, next_after)
    plan = await picks(most)
    first = first_class(plan)
    for class_number in claims if plan.picks or plan.more else ():
        if class_number == first:
            return Starts(plan, most=1, claimed=True)  # it is its turn anyway
        own = await picks(1, only_class=class_number)
        if own.picks or own.more:
            return Starts(own, most=1, owed=True, claimed=True)
    return Starts(plan, most=most, claimed=bool(claims))


def owed(turns: Mapping[int, Turn], *, now_ms: int, after_ms: int, every: int) -> tuple[int, ...]:
    """The classes whose own start is next, the one that waits longest for it first."""
    starving = _starving(turns, now_ms=now_ms, after_ms=after_ms)
    due = [number for number, turn in starving.items() if turn.others >= every - 1]
    return tuple(sorted(due, key=lambda number: (-starving[number].others, number)))


def before_next(turns: Mapping[int, Turn], *, now_ms: int, after_ms: int, every: int) -> int | None:
    """How many starts may go to others before a class that starves is owed one; null where none is to come."""
    starving = _starving(turns, now_ms=now_ms, after_ms=after_ms).values()
    return min((every - 1 - turn.others for turn in starving if turn.others < every - 1), default=None)


def _starving(turns: Mapping[int, Turn], *, now_ms: int, after_ms: int) -> dict[int, Turn]:
    return {number: turn for number, turn in turns.items() if now_ms - turn.since_ms >= after_ms}

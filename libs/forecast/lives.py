"""What jobs did, apart from the policy under which they did it: what a replay is fed with.

Plain data. When a job came and how long each of its stays in the slots was is its own; when it started, and when it
came back, follows from the rules.
"""

from dataclasses import dataclass

from libs.capacity.rows import OperatorOrder
from libs.forecast.machine import PoolSlots


@dataclass(frozen=True, slots=True)
class Stay:
    """One time in the slots. `away_s`: after it the job is back in the queue so much later; null: it is over."""

    hold_s: float
    away_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One job. Without `stays` it was never seen to start: then it is dealt one."""

    job: str
    user: str
    project: str
    tier: str
    priority: str
    at_ms: int  # when it was submitted
    pool: str = "default"
    groups: tuple[tuple[str, int | None], ...] = ()  # those it asked for, and the limits it brought
    workflow: str | None = None
    after: str | None = None  # the phase before it: it enters the queue when that is over
    run_at_ms: int | None = None
    stays: tuple[Stay, ...] = ()
    ranks: tuple[tuple[int, str], ...] = ()  # when somebody gave it which other priority
    patience_s: float | None = None  # it left the queue after so long; null: it waited till its turn
    refunded: bool = False  # its end gave the place of its day back


@dataclass(frozen=True, slots=True)
class RecordedAct:
    """What an operator did then."""

    at_ms: int
    order: OperatorOrder


@dataclass(frozen=True, slots=True)
class Staffed:
    """From then on a pool had so many slots."""

    at_ms: int
    slots: PoolSlots


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPast:
    """Everything that came from outside, in the order in which it came."""

    lives: tuple[Life, ...]
    acts: tuple[RecordedAct, ...] = ()
    staffed: tuple[Staffed, ...] = ()

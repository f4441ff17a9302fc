"""Who is still to come: jobs as often, and of the tiers, pools and classes, as came lately.

Jobs of a low class wait for those most of all. They come at moments that each run deals anew, as nobody knows
them; none of them shares a user or a project with another. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from random import Random
from typing import Final

from headgate_contracts.envelope import utc
from headgate_contracts.vocabulary import Priority
from libs.capacity.paces import Wait
from libs.capacity.projection import epoch_ms
from libs.capacity.rows import Row

WINDOW_MS: Final = 3_600_000  # what counts as lately
KNOWN_MS: Final = 600_000  # less of a past than this tells no rate

ArrivalKind = tuple[str, str, int]  # tier, pool, class


@dataclass(frozen=True, slots=True)
class Guest:
    """A job that is still to come."""

    number: int
    at_ms: int
    tier: str
    pool: str
    class_number: int


@dataclass(frozen=True, slots=True)
class Coming:
    """How many of each kind came within `span_ms`."""

    counts: Mapping[ArrivalKind, int] = field(default_factory=dict[ArrivalKind, int])
    span_ms: int = WINDOW_MS

    def deal(self, number: int, *, from_ms: int) -> Iterator[Guest]:
        """When who comes, for ever, in order; another way for each number."""
        kinds, weights = list(self.counts), list(self.counts.values())
        rng, at_ms, count = Random(number), float(from_ms), 0
        while kinds:
            at_ms += rng.expovariate(sum(weights) / self.span_ms)
            count += 1
            yield Guest(count, round(at_ms), *rng.choices(kinds, weights)[0])


def lately(waits: Sequence[Wait], waiting: Iterable[Row], *, now_ms: int) -> Coming:
    """Those that entered the queue in the last hour: they have started since, or wait still. `waits`: oldest first."""
    entered = [(row.entered_ms or now_ms, (row.tier, row.pool, row.class_number)) for row in waiting]
    entered += (_entry(wait) for wait in _since(waits, utc(now_ms - WINDOW_MS)))
    span_ms = min(WINDOW_MS, now_ms - min((at_ms for at_ms, _ in entered), default=now_ms))
    if span_ms < KNOWN_MS:
        return Coming()
    return Coming(Counter(kind for at_ms, kind in entered if at_ms > now_ms - span_ms), span_ms)


def _since(waits: Sequence[Wait], moment: datetime) -> Iterator[Wait]:
    return takewhile(lambda wait: wait.at > moment, reversed(waits))


def _entry(wait: Wait) -> tuple[int, ArrivalKind]:
    entered_ms = epoch_ms(wait.at) - round(wait.wait_s * 1000)
    return entered_ms, (wait.tier, wait.pool, Priority(wait.priority).class_number)

"""What is kept does not grow with what has ended: every entry of ledger and view is counted, twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate_contracts.events import Group
from libs.capacity.ledger import Ledger
from libs.capacity.memory import MemoryStore, MemoryView
from libs.capacity.memory.sorted_set import SortedSet
from libs.capacity.rows import Row
from libs.policy import Policy
from libs.policy.daily_cap import EPOCH_DAY
from tests.fixtures.lives import life_of, submission

T0 = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Policy.model_validate({"retention": {"ended_jobs": 50}})
BOUNDED = {"learned", "policy"}  # the last waits and durations, so many and no more


@dataclass(frozen=True)
class Logged:
    seq: int
    at: datetime
    event: object


def entries(kept: Any) -> int:
    """How many things are in it, however deep."""
    if isinstance(kept, Row):
        return 0
    if isinstance(kept, SortedSet):
        return len(kept)
    if is_dataclass(kept):
        return sum(entries(getattr(kept, each.name)) for each in fields(kept) if each.name not in BOUNDED)
    if isinstance(kept, Mapping):
        return sum(1 + entries(each) for each in kept.values())
    if isinstance(kept, set | frozenset | list | tuple):
        return sum(1 + entries(each) for each in kept)
    return len(kept) if hasattr(kept, "maxlen") else 0


class Fold:
    """A ledger and a view, and lives of jobs that all end."""

    def __init__(self) -> None:
        self.ledger, self.store = Ledger(POLICY), MemoryStore()
        self.view = MemoryView("E", clock=lambda: round(T0.timestamp() * 1000), store=self.store)

    async def open(self) -> None:
        await self.view.begin("E", generation="g", applied=0, standing=self.ledger.standing())
        await self.view.open(generation="g", quarantine_ms=0)

    async def live(self, names: Iterator[str]) -> None:
        """One after the other, in a second each, and what belongs to many of them is of few."""
        for number, name in enumerate(names):
            asked = submission(groups=(Group(name=f"group:p:{name}", limit=2),), input_bytes=100)
            for event in life_of(name, user_id=f"user-{number % 3}", submission=asked, quota_day=T0.date()):
                seq = self.ledger.applied + 1
                change = self.ledger.apply(Logged(seq, T0 + timedelta(seconds=seq / 10), event))
                assert change.complaint is None, change.complaint
                await self.view.fold([change], lease_ms=30_000)

    @property
    def size(self) -> tuple[int, int]:
        return entries(self.ledger), entries(self.store.state)


async def test_neither_ledger_nor_view_grows_with_what_has_ended() -> None:
    fold = Fold()
    await fold.open()

    await fold.live(f"a-{number}" for number in range(120))
    before = fold.size
    await fold.live(f"b-{number}" for number in range(480))

    assert fold.size == before
    assert await fold.view.day_used("user-1", (T0.date() - EPOCH_DAY).days) == 200

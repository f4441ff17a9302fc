"""The fold of a turn runs beside it: who starts waits for none, and what asks the view waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from headgate_contracts.events import Group
from libs.capacity.answers import Folded, StaleView
from libs.capacity.errors import ViewUnavailable
from libs.capacity.memory.view import MemoryView
from libs.capacity.rows import Change
from services.scheduler.folding import Folding
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import EPOCH, MemorySchedulers

DB = "group:user-1:project-1:db"
MOMENTS = 200  # of the loop: all that does not wait for the fold has happened by then


class FoldedLate(MemoryView):
    """A view that folds when it may."""

    def __init__(self, world: MemorySchedulers) -> None:
        super().__init__(EPOCH, clock=world.clock.now_ms, store=world.store)
        self.may_fold = asyncio.Event()
        self.may_fold.set()

    async def fold(self, changes: Sequence[Change], *, lease_ms: int, now_ms: int | None = None) -> Folded | StaleView:
        await self.may_fold.wait()
        return await super().fold(changes, lease_ms=lease_ms, now_ms=now_ms)


@asynccontextmanager
async def turn_that_folds_late(world: MemorySchedulers, view: FoldedLate, replica: Replica) -> AsyncIterator[None]:
    """What has happened by then but for what waits for the fold."""
    view.may_fold.clear()
    turn = asyncio.create_task(replica.cycle.turn())
    for _ in range(MOMENTS):
        await asyncio.sleep(0)
    assert not turn.done()
    yield
    view.may_fold.set()
    await turn


async def ready(world: MemorySchedulers) -> tuple[FoldedLate, Replica]:
    view = FoldedLate(world)
    replica = world.replica("a", view=view)
    await world.settle(replica)
    await world.begun(replica)
    await world.beat(slots=2)
    await world.settle(replica)
    return view, replica


async def test_a_job_starts_while_the_view_has_yet_to_hear_of_it(world: MemorySchedulers) -> None:
    view, replica = await ready(world)
    await world.submit("job-1")

    async with turn_that_folds_late(world, view, replica):
        assert world.dispatched() == ["job-1"]


async def test_a_job_at_the_border_claims_when_the_view_is_folded(world: MemorySchedulers) -> None:
    view, replica = await ready(world)
    await world.submit("job-1", groups=(Group(name=DB, limit=1),))

    async with turn_that_folds_late(world, view, replica):
        assert world.dispatched() == []

    assert world.dispatched() == ["job-1"]


async def test_what_the_fold_raises_is_raised_where_it_is_waited_for_and_at_the_end() -> None:
    folding = Folding()
    waited: list[object] = []

    async def fold() -> None:
        raise ViewUnavailable("no answer")

    async def turn() -> None:
        async with folding.beside(fold()):
            waited.extend(await asyncio.gather(folding.over(), return_exceptions=True))

    with pytest.raises(ViewUnavailable):
        await turn()

    await folding.over()
    assert [type(error) for error in waited] == [ViewUnavailable]

"""A view and an engine that is fed the same history: who may run is the engine's answer, all else the view's."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from libs.capacity.answers import Folded, Heartbeat, HeartbeatAnswer, Plan, StaleView
from libs.capacity.engine import Engine
from libs.capacity.ports import View
from libs.capacity.rows import Change, Seed
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import observe


def beside(view: View) -> ViewScenario:
    """A world over this view whose plans are an engine's."""
    both: Any = Beside(view, lambda: world)
    world = ViewScenario(both)
    return world


class Beside:
    """Keeps the interface, and plans. The engine is told what the log says, who works, and how the border is."""

    def __init__(self, view: View, world: Callable[[], ViewScenario]) -> None:
        self.view = view
        self._world = world
        self._engine: Engine | None = None
        self._seeds: list[Seed] = []

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        return getattr(self.view, verb)

    # ── what both hear ────────────────────────────────────────────────────────

    async def seed(self, seeds: Sequence[Seed], **details: Any) -> None:
        self._seeds = [*seeds]
        await self.view.seed(seeds, **details)

    async def open(self, **details: Any) -> None:
        await self.view.open(**details)
        self._begin(self._seeds)

    async def configure(self, defaults: Mapping[str, int], **details: Any) -> None:
        """Policy changes where a process is started anew."""
        await self.view.configure(defaults, **details)
        self._begin(self._world().seeds())

    def _begin(self, seeds: Iterable[Seed]) -> None:
        world = self._world()
        self._engine = Engine(world.orders.standing(), seeds, applied=world.seq, clock=lambda: world.now_ms)

    async def fold(self, changes: Sequence[Change], **details: Any) -> Folded | StaleView:
        assert self._engine is not None
        for change in changes:  # some tests tell the view what it has folded, or cannot fold: a ledger does neither
            if change.prev == self._engine.applied:
                self._engine.take([change])
        return await self.view.fold(changes, **details)

    async def beat(self, heartbeat: Heartbeat, **details: Any) -> HeartbeatAnswer:
        """Heard at once, as by the leader: a later word of a worker may end sooner than the one before."""
        if self._engine is not None:
            self._engine.staff.beat(heartbeat)
        return await self.view.beat(heartbeat, **details)

    # ── who may run ───────────────────────────────────────────────────────────

    async def plan(self, limit: int, *, only_class: int | None = None, now_ms: int | None = None) -> Plan:
        """Those who wait for a slot are served first, as where jobs claim theirs."""
        assert self._engine is not None
        await self.view.claim((), applied=self._engine.applied, lapse_ms=0, now_ms=now_ms)
        await self._tell_the_border(self._engine)
        return self._engine.plan(limit, only_class=only_class)

    async def _tell_the_border(self, engine: Engine) -> None:
        at_ms = self._world().now_ms
        now = {"now_ms": at_ms}
        seen = await observe(self.view, **now)
        engine.staff.take(await self.view.workers(**now))
        engine.unlearn()
        if await self._is_quarantined(now):
            engine.quarantine(at_ms + 1)
        for group in {*seen.groups, *seen.shut}:
            others = sum(holder not in seen.leases for holder in seen.groups.get(group, ()))
            engine.learn(group, others=others, until_ms=seen.shut.get(group))

    async def _is_quarantined(self, now: Mapping[str, int]) -> bool:
        queued = [row.id for row in self._world().rows.values() if row.place is not None]
        outlooks = await self.view.outlooks(queued, **now)
        return any(outlook is not None and outlook.quarantined for outlook in outlooks)

"""Two plans of one moment compared: the view's and the engine's.

    same      they pick the same jobs, with the same limits and slots
    border    they do once the engine knows who holds what the log does not tell of, and what is shut
    workers   one of them has heard of a worker, or has given it up, before the other
    apart     there is nothing to compare: not both were folded up to the same record, or one has not looked at all
    differs   they are not the same plan, looked at again and again: a fault

Owns the verdict and its count. The view is asked on a server, one question after the other, and goes on meanwhile: so a
difference is believed only where it stays.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final

from opentelemetry.metrics import Meter

from libs.capacity.answers import Plan, WorkerStatus
from libs.capacity.engine import Engine
from libs.capacity.ports import View
from libs.capacity.turns import NO_PLAN

logger = logging.getLogger(__name__)

TRIES: Final = 3
OUTLOOKS: Final = 20  # jobs that are asked about whether running jobs have yet to say what they hold

SAME, BORDER, WORKERS, APART, DIFFERS = "same", "border", "workers", "apart", "differs"


class Shadow:
    """Of one replica's engine."""

    def __init__(self, view: View, engine: Engine, meter: Meter) -> None:
        self.verdicts = Counter[str]()
        self._view = view
        self._engine = engine
        self._compared = meter.create_counter(
            "headgate_scheduler_plans_compared", description="plans of the view and of the scheduler itself, by verdict"
        )

    async def compare(self, limit: int) -> None:
        """The view's plan with the engine's."""
        plan, own, verdict = NO_PLAN, NO_PLAN, SAME
        for _ in range(TRIES):
            plan = await self._view.plan(limit)
            verdict, own = await self._verdict(plan, self._engine.plan(limit), limit)
            if verdict in (SAME, BORDER, APART):
                break
        self.verdicts[verdict] += 1
        self._compared.add(1, {"verdict": verdict})
        if verdict == DIFFERS:
            logger.error("the view plans %s, the scheduler itself %s", plan, own)

    async def _verdict(self, plan: Plan, own: Plan, limit: int) -> tuple[str, Plan]:
        if plan.applied != own.applied or plan.more or own.more:
            return APART, own
        if plan == own:
            return SAME, own
        workers = await self._view.workers()
        self._engine.staff(workers)
        if self._engine.slots() != _slots(workers):
            return WORKERS, own
        await self._learn()
        own = self._engine.plan(limit)
        self._engine.unlearn()
        return BORDER if plan == own else DIFFERS, own

    async def _learn(self) -> None:
        """How the border stands, as the view shows it to readers."""
        soon_ms = self._engine.now_ms + 60_000  # the border is forgotten before
        outlooks = await self._view.outlooks(sorted(self._engine.at_border())[:OUTLOOKS])
        if any(outlook is not None and outlook.quarantined for outlook in outlooks):
            self._engine.quarantine(soon_ms)
        for group in sorted(self._engine.border()):
            status = await self._view.group(group)
            others = sum(not self._engine.runs(holder.name) for holder in status.holders)
            self._engine.learn(group, others=others, until_ms=status.shut_until_ms)


def _slots(workers: Iterable[WorkerStatus]) -> dict[str, int]:
    slots = Counter[str]()
    for each in workers:
        slots[each.pool] += 0 if each.draining else each.slots
    return {pool: count for pool, count in slots.items() if count}

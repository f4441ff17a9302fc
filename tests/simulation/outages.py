"""Outages for everybody, longer than a lease: the view away, the log, what carries the heartbeats, or all of it.

Jobs run through them, so some of their stages are long; and a worker may die meanwhile, of which nobody can hear.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tests.simulation.dice import Dice
from tests.simulation.plan import PEACE_S, WORKERS, Fault, Order

SHARE: Final = 0.15  # of the seeds
AWAY: Final = ("view", "view", "commands", "log", "*")
LONG_S: Final = (12.0, 40.0)


def outages_of(dice: Dice) -> tuple[Fault, ...]:
    """Those of a seed; most have none."""
    if not dice.chance("outages", SHARE):
        return ()
    at_s = dice.between("outages", 3.0, 16.0)
    until_s = min(at_s + dice.between("outages", 12.0, 42.0), PEACE_S)
    away = Fault(kind="cut", at_s=at_s, for_s=until_s - at_s, server=dice.one_of("outages", AWAY))
    if not dice.chance("outages", 0.4):
        return (away,)
    died_s = dice.between("outages", at_s, until_s)
    return away, Fault(kind="crash", at_s=died_s, for_s=2.0, who=dice.one_of("outages", WORKERS))


def long_runs(dice: Dice, orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """Every third runs for so long that an outage may come and go meanwhile."""
    return tuple(
        _long(dice, order) if number % 3 == 0 and not order.phases else order for number, order in enumerate(orders)
    )


def _long(dice: Dice, order: Order) -> Order:
    stages: dict[str, dict[str, Any]] = {**order.stages}
    stages["deps"] = {**stages["deps"], "s": round(dice.between("long", *LONG_S), 3)}
    return replace(order, stages=stages)

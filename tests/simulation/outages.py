"""Outages longer than a lease: of the view, the log, what carries heartbeats, or all, for everybody; or of one worker.

Jobs run through them, so some of their stages are long; and a worker may die meanwhile, of which nobody can hear.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tests.simulation.dice import Dice
from tests.simulation.plan import GROUPS, PEACE_S, PROJECTS, WORKERS, Fault, Order

SHARE: Final = 0.15  # of the seeds
ALONE: Final = 0.08  # of the seeds: one worker, and nobody else
AWAY: Final = ("view", "view", "commands", "log", "*")
LONG_S: Final = (12.0, 40.0)
HELD: Final = 0.6  # of those in which the view alone is away
HELD_S: Final = 12.0
BEYOND_S: Final = (45.0, 65.0)


def outages_of(dice: Dice) -> tuple[Fault, ...]:
    """Those of a seed; most have none."""
    if dice.chance("silence", ALONE):
        kind, server = dice.one_of("silence", (("pause", "*"), ("cut", "*"), ("cut", "commands")))
        at_s, who = dice.between("silence", 9.0, 15.0), dice.one_of("silence", WORKERS)
        for_s = dice.between("silence", 33.0, PEACE_S - at_s)
        return (Fault(kind=kind, at_s=at_s, for_s=for_s, who=who, server=server),)
    if not dice.chance("outages", SHARE):
        return ()
    at_s = dice.between("outages", 5.0, 16.0)
    until_s = min(at_s + dice.between("outages", 12.0, 42.0), PEACE_S)
    away = Fault(kind="cut", at_s=at_s, for_s=until_s - at_s, server=dice.one_of("outages", AWAY))
    if not dice.chance("outages", 0.4):
        return (away,)
    died_s = dice.between("outages", at_s, until_s)
    return away, Fault(kind="crash", at_s=died_s, for_s=2.0, who=dice.one_of("outages", WORKERS))


def long_runs(dice: Dice, orders: tuple[Order, ...], *, outages: tuple[Fault, ...]) -> tuple[Order, ...]:
    """Some run for so long that an outage may come and go meanwhile, or until a worker that was alone is back."""
    lasts_s, every = (BEYOND_S, 6) if any(fault.who in WORKERS for fault in outages[:1]) else (LONG_S, 3)
    return tuple(
        _long(dice, order, lasts_s) if outages and number % every == 0 and not order.phases else order
        for number, order in enumerate(orders)
    )


def held_through(dice: Dice, orders: tuple[Order, ...], *, outages: tuple[Fault, ...]) -> tuple[Order, ...]:
    """While the view alone is away some stages hold a slot, and jobs that name its group wait: nobody can be asked."""
    if not any(fault.server == "view" for fault in outages) or not dice.chance("held through", HELD):
        return orders
    return tuple(_at_one_slot(order, number % 3) if not order.phases else order for number, order in enumerate(orders))


def _at_one_slot(order: Order, part: int) -> Order:
    at_s, code = order.at_s / 3, order.stages["code"]
    match part:
        case 0:
            stages = {**order.stages, "code": {**code, "s": HELD_S, "slots": GROUPS[:1]}}
            return replace(order, at_s=at_s, project=PROJECTS[0], group=None, limit=None, stages=stages)
        case 1:
            stages = {**order.stages, "code": {name: value for name, value in code.items() if name != "slots"}}
            return replace(order, at_s=at_s, project=PROJECTS[0], group=GROUPS[0], limit=None, stages=stages)
        case _:
            return order


def _long(dice: Dice, order: Order, lasts_s: tuple[float, float]) -> Order:
    stages: dict[str, dict[str, Any]] = {**order.stages}
    stages["deps"] = {**stages["deps"], "s": round(dice.between("long", *lasts_s), 3)}
    checks = {name: value for name, value in stages["checks"].items() if name != "fails"}
    return replace(order, at_s=order.at_s / 5, stages={**stages, "checks": checks})

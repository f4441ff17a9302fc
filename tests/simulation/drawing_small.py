"""What keeps a seed small: no more jobs than were asked for, pipelines of two stages, one scheduler where one will do.

A seed's cost is its records, and each stage is one; both schedulers fold each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from typing import Final

from tests.simulation.dice import Dice
from tests.simulation.plan import SCHEDULERS, Order, Plan

LONE: Final = 0.7  # of the seeds: one scheduler
SHORT: Final = 0.9  # of the orders whose stages are all ordinary
SINGLE: Final = 0.7  # of those that have nothing to check
ORDINARY_S: Final = 2.5  # or less
LEFT_OUT: Final = ("deps", "checks")  # of moments to cancel in


def first_of(orders: Iterable[Order], *, jobs: int) -> tuple[Order, ...]:
    """So many jobs: each phase of a workflow is one."""
    kept = list(orders)
    counts = accumulate(max(1, order.phases) for order in kept)
    return tuple(order for order, count in zip(kept, counts, strict=True) if count <= jobs)


def shortened(dice: Dice, orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """Most of those to which nothing happens in the stages that are left out."""
    return tuple(_short(dice, order) if dice.chance("short", SHORT) else order for order in orders)


def alone(dice: Dice, plan: Plan) -> Plan:
    """With one scheduler, where nothing is about two: what would meet the other one meets it."""
    first, *_ = SCHEDULERS
    if not dice.chance("alone", LONE) or _is_about_two(plan):
        return plan
    faults = (replace(fault, who=first) if fault.who in SCHEDULERS else fault for fault in plan.faults)
    return replace(plan, faults=tuple(dict.fromkeys(faults)), schedulers=(first,))


def _short(dice: Dice, order: Order) -> Order:
    if not _are_ordinary(order, "scaffold", "deps"):
        return order
    if dice.chance("single", SINGLE) and _are_ordinary(order, "checks"):
        return replace(order, pipeline="single", cancel_on="code" if order.cancel_on in LEFT_OUT else order.cancel_on)
    return replace(order, pipeline="short", cancel_on="code" if order.cancel_on == "deps" else order.cancel_on)


def _are_ordinary(order: Order, *names: str) -> bool:
    asked = [order.stages.get(name, {}) for name in names]
    return all(each.keys() <= {"s"} and each.get("s", 0.0) <= ORDINARY_S for each in asked)


def _is_about_two(plan: Plan) -> bool:
    """Two that believe in themselves, or each of them stopped as it writes."""
    stopped = {fault.who for fault in plan.faults if fault.kind in ("halt", "held")}
    return stopped >= set(SCHEDULERS) or any(fault.kind == "split" for fault in plan.faults)

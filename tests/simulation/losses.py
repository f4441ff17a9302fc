"""Losses of the view while stages are inside of slots, and others stand in line for the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.simulation.dice import Dice
from tests.simulation.plan import GROUPS, Fault, Order

SHARE: Final = 0.1  # of the seeds
LONG_S: Final = (4.0, 12.0)


def losses_of(dice: Dice) -> tuple[Fault, ...]:
    """Those of a seed; most have none."""
    if not dice.chance("losses", SHARE):
        return ()
    return tuple(Fault(kind="flush", at_s=dice.between("losses", 6.0, 36.0)) for _ in range(dice.whole("losses", 1, 2)))


def long_holds(dice: Dice, orders: tuple[Order, ...], *, losses: tuple[Fault, ...]) -> tuple[Order, ...]:
    """Half of them want one slot, for long."""
    return tuple(
        _long(dice, order) if losses and number % 2 == 0 and order.group is None else order
        for number, order in enumerate(orders)
    )


def _long(dice: Dice, order: Order) -> Order:
    code = {"s": round(dice.between("long hold", *LONG_S), 3), "slots": GROUPS[:1]}
    return replace(order, at_s=order.at_s / 2, stages={**order.stages, "code": code})

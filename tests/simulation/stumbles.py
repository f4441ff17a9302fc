"""Stages that fail by something passing, and are run again: a few times, or more often than their author allows.

Some say how long to stay away, and for some that is longer than a job may hold its slots meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from headgate_pipeline.rules import StageRules
from tests.simulation.dice import Dice
from tests.simulation.plan import Order

SHARE: Final = 0.3  # of the seeds
EACH: Final = 0.3  # of their orders
RETRIES: Final = 3
TRIED: Final = StageRules(retries=RETRIES, backoff_s=(0.5, 4.0))
OFTEN: Final = (1, 1, 2, 2, 3, RETRIES + 1)
AWAY_S: Final = (0.0, 0.0, 0.0, 2.0, 6.0)  # put off where it is longer than `providers.give_back_after_s`


def stumbling(dice: Dice, orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """The orders of a seed; in most nothing changes."""
    if not dice.chance("stumbles", SHARE):
        return orders
    return tuple(_stumbling(dice, order) if dice.chance("stumbling", EACH) else order for order in orders)


def _stumbling(dice: Dice, order: Order) -> Order:
    stages: dict[str, dict[str, Any]] = {**order.stages}
    again = {"stumbles": dice.one_of("stumbles", OFTEN), "after_s": dice.one_of("stumbles away", AWAY_S)}
    stages["code"] = {**stages["code"], **again}
    return replace(order, stages=stages)

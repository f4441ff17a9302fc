"""A rush: all jobs want the one slot of a group, urgent ones come behind the others, and whoever leads is stopped as
it writes whom it has let in. So the next leader lets in another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headgate_contracts import Priority
from tests.simulation.dice import Dice
from tests.simulation.plan import GROUPS, POLICY, PROJECTS, SCHEDULERS, USERS, Fault, Order

SHARE: Final = 0.08  # of the seeds
WAITING: Final = 0.6  # of the orders: they are there when the leader is stopped
COME_WITHIN_S: Final = 5.0  # the lead of one that is stopped lasts for so long
STAYS_S: Final = (6.0, 11.0)


def is_rush(dice: Dice) -> bool:
    return dice.chance("rush", SHARE)


def rush_of(dice: Dice, orders: tuple[Order, ...]) -> tuple[tuple[Order, ...], tuple[Fault, ...]]:
    at_s, for_s = dice.between("rush", 6.0, 20.0), dice.between("rush", *STAYS_S)
    stopped = tuple(Fault(kind="halt", at_s=at_s, for_s=for_s, who=who, server="append") for who in SCHEDULERS)
    return tuple(_hurried(dice, order, at_s) for order in orders), stopped


def _hurried(dice: Dice, order: Order, at_s: float) -> Order:
    waits = dice.chance("rush order", WAITING)
    begins_s = dice.between("rush order", 0.0, at_s) if waits else at_s + dice.between("rush order", 0.3, COME_WITHIN_S)
    stages = {name: {key: asked[key] for key in asked if key != "slots"} for name, asked in order.stages.items()}
    return replace(
        order,
        at_s=begins_s,
        project=PROJECTS[0],
        priority=Priority.NORMAL if waits else POLICY.tier_limits(USERS[order.user]).highest_priority,
        phases=0,
        group=GROUPS[0],
        limit=None,
        stages=stages,
    )

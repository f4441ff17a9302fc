"""One user's jobs in one line for one slot: all but the last are withdrawn, each when it may just be the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headgate_contracts import Priority
from tests.simulation.dice import Dice
from tests.simulation.plan import USERS, Act, Order

SHARE: Final = 0.25  # of the seeds whose workers have one slot: so the next of a line has to wait for a worker


def withdrawn(dice: Dice, orders: tuple[Order, ...]) -> tuple[tuple[Order, ...], tuple[Act, ...]]:
    """The orders, with such a line among them, and who makes it one; most seeds have none."""
    user = dice.one_of("withdrawn", tuple(USERS))
    mine = [order for order in orders if order.user == user and not order.phases]
    if len(mine) < 3 or not dice.chance("withdrawn", SHARE):
        return orders, ()
    line = {order.name: _in_line(dice, order, is_last=order is mine[-1]) for order in mine}
    alone = Act(kind="limit", at_s=0.1, what=f"user:{user}", number=1)
    return tuple(line.get(order.name, order) for order in orders), (alone,)


def _in_line(dice: Dice, order: Order, *, is_last: bool) -> Order:
    return replace(
        order,
        at_s=4.5 if is_last else dice.between("withdrawn", 0.5, 4.0),
        priority=Priority.LOW,  # others take the workers meanwhile
        group=None,
        limit=None,
        run_after_s=None,
        cancel_on=None,
        cancel_after_s=None if is_last else dice.between("withdrawn", 3.0, 45.0),
        raise_after_s=None,
        submits_again=False,
    )

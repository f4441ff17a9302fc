"""Several starts are under way for longer than a leader waits to know what became of them, and land once it has gone
on.

the queue is paused ─► resumed: all start at once, in one batch, which is held on its way
                                    their class is paused, and one urgent job comes
                       silence: the leader plans anew, and starts that one alone
                       then every copy of the batch arrives
"""

from dataclasses import replace
from typing import Final

from headgate_contracts import Priority
from tests.simulation.dice import Dice
from tests.simulation.plan import POLICY, SCHEDULERS, USERS, Act, Fault, Order, Plan

LARGEST: Final = min(USERS, key=lambda user: POLICY.tier_limits(USERS[user]).highest_priority.class_number)
URGENT: Final = POLICY.tier_limits(USERS[LARGEST]).highest_priority

SHARE: Final = 0.03  # of the seeds: nothing else goes wrong in them
FIRST_AT_S: Final = 1.0
PAUSED_AT_S: Final = 6.0  # whoever leads has begun by then, with the first job
WAITING: Final = 6  # jobs
COME_WITHIN_S: Final = 3.0  # before the queue goes on: so none has waited for so long that it rises, when all land
SILENT_S: Final = (13.0, 15.0)  # an append is settled within 15 s, and sent for the last time some 4 s before
ARRIVE_S: Final = (16.5, 20.5)  # from the first of them: it has gone on by then
CLASS_PAUSED_S: Final = 26.0
FIRST: Final = {name: {"s": 0.1} for name in ("scaffold", "code", "deps", "checks")}


def late_copies(dice: Dice, plan: Plan) -> Plan:
    """Such a plan in its place; most stay as they are."""
    first, *others = plan.orders[: WAITING + 2]
    if not others or not dice.chance("late copies", SHARE):
        return plan
    goes_on_s = dice.between("late copies", 10.0, 14.0)
    usual = [_plain(each, goes_on_s - dice.between("late copies", 0.5, COME_WITHIN_S)) for each in others[:-1]]
    urgent = _plain(others[-1], goes_on_s + dice.between("late copies", 0.5, 9.0), URGENT)
    return replace(
        plan,
        orders=(replace(_plain(first, FIRST_AT_S), stages=FIRST), *usual, urgent),
        acts=_pauses(dice, goes_on_s),
        faults=_held(dice, goes_on_s),
        visits=(),
        leases=(),
        readers=(),
        slots=1,
    )


def _pauses(dice: Dice, goes_on_s: float) -> tuple[Act, ...]:
    at_s = goes_on_s + dice.between("late copies", 0.5, 6.0)
    return (
        Act(kind="pause", at_s=PAUSED_AT_S, what="all", for_s=goes_on_s - PAUSED_AT_S),
        Act(kind="pause", at_s=at_s, what=f"priority:{Priority.NORMAL}", for_s=CLASS_PAUSED_S),
    )


def _held(dice: Dice, goes_on_s: float) -> tuple[Fault, ...]:
    """Of whoever leads then."""
    at_s, for_s = goes_on_s - 0.05, dice.between("late copies", *SILENT_S)
    later_s = dice.between("late copies", *ARRIVE_S) - for_s
    return tuple(
        Fault(kind="held", at_s=at_s, for_s=for_s, who=who, server="append", share=later_s) for who in SCHEDULERS
    )


def _plain(order: Order, at_s: float, priority: Priority = Priority.NORMAL) -> Order:
    """Nobody changes their mind, and nothing but the one slot of each worker is short."""
    return replace(
        order,
        at_s=at_s,
        user=LARGEST if priority is not Priority.NORMAL else order.user,
        priority=priority,
        key_of=None,
        phases=0,
        pipeline="build",
        group=None,
        run_after_s=None,
        raise_after_s=None,
        cancel_after_s=None,
        cancel_on=None,
    )

"""One user's jobs in one line for one slot. As the first of them ends a long job of another user takes its worker, and
while that runs all but the last are withdrawn, each when it may just be the next. So nothing of that user ends that
would have the last one looked at.
"""

from dataclasses import replace
from typing import Final

from headgate_contracts import Priority
from tests.simulation.dice import Dice
from tests.simulation.plan import USERS, WORKERS, Act, Order, Plan

SHARE: Final = 0.02  # of the seeds: nothing goes wrong in them
IN_LINE: Final = 3
FIRST_S, LONG_S = 4.0, 12.0
COME_S: Final = (1.5, 4.0)  # while the first runs
WITHDRAWN_S: Final = (4.0, 8.0)  # behind its submission: while the long ones run


def withdrawn(dice: Dice, plan: Plan) -> Plan:
    """Such a plan in its place; most stay as they are."""
    if len(plan.orders) < len(WORKERS) + 1 + IN_LINE or not dice.chance("withdrawn", SHARE):
        return plan
    user, other, *_ = dice.some_of("withdrawn", tuple(USERS), 2)
    first, *busy = plan.orders[: 1 + len(WORKERS)]
    *gone, last = plan.orders[1 + len(WORKERS) : 1 + len(WORKERS) + IN_LINE]
    taken = [_plain(order, user=other, at_s=0.3 * number, code_s=LONG_S) for number, order in enumerate(busy)]
    taken[-1] = replace(taken[-1], at_s=COME_S[0])
    line = [_in_line(dice, order, user=user) for order in gone]
    return replace(
        plan,
        orders=(
            _plain(first, user=user, at_s=0.3, code_s=FIRST_S),
            *taken,
            *(replace(order, cancel_after_s=dice.between("withdrawn", *WITHDRAWN_S)) for order in line),
            replace(_in_line(dice, last, user=user), at_s=COME_S[1]),
        ),
        acts=(Act(kind="limit", at_s=0.1, what=f"user:{user}", number=1),),
        faults=(),
        visits=(),
        leases=(),
        readers=(),
        slots=1,
    )


def _in_line(dice: Dice, order: Order, *, user: str) -> Order:
    plain = _plain(order, user=user, at_s=dice.between("withdrawn", *COME_S), code_s=0.1)
    return replace(plain, priority=Priority.LOW)


def _plain(order: Order, *, user: str, at_s: float, code_s: float) -> Order:
    return replace(
        order,
        at_s=at_s,
        user=user,
        priority=Priority.NORMAL,
        phases=0,
        pipeline="build",
        stages={name: {"s": code_s if name == "code" else 0.1} for name in ("scaffold", "code", "deps", "checks")},
        group=None,
        limit=None,
        run_timeout_s=None,
        queue_ttl_s=None,
        cancel_after_s=None,
        raise_after_s=None,
        run_after_s=None,
        leaves=False,
        submits_again=False,
        key_of=None,
        cancel_on=None,
    )

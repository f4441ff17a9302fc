"""Much of what workers say to schedulers comes late, while stages take slots and give them back again and again: so a
heartbeat or a question about a slot comes to the view after the slot was given back.
"""

from dataclasses import replace
from typing import Final

from tests.simulation.dice import Dice
from tests.simulation.plan import GROUPS, PROJECTS, Fault, Order, Plan

SHARE: Final = 0.03  # of the seeds: nothing else goes wrong in them
JOBS: Final = 6
COME_WITHIN_S: Final = 8.0
HELD_S: Final = (0.15, 0.9)
TIMES: Final = 4  # that each job takes a slot: once more than its checks fail
LATE: Final = 0.3  # of the messages
AT_S, FOR_S = 4.0, 30.0


def late_words(dice: Dice, plan: Plan) -> Plan:
    """Such a plan in its place; most stay as they are."""
    if not plan.orders or not dice.chance("late words", SHARE):
        return plan
    return replace(
        plan,
        orders=tuple(_busy(dice, order) for order in plan.orders[:JOBS]),
        acts=(),
        faults=(Fault(kind="late", at_s=AT_S, for_s=FOR_S, server="commands", share=LATE),),
        visits=(),
        leases=(),
        readers=(),
    )


def _busy(dice: Dice, order: Order) -> Order:
    stages = {name: {"s": 0.1} for name in ("scaffold", "deps")}
    code = {"s": round(dice.between("late words", *HELD_S), 3), "slots": GROUPS[:1]}
    return replace(
        order,
        at_s=dice.between("late words", 0.5, COME_WITHIN_S),
        project=PROJECTS[0],
        phases=0,
        pipeline="short",
        group=None,
        run_after_s=None,
        cancel_after_s=None,
        cancel_on=None,
        answer_after_s=0.5,
        leaves=False,
        stages={**stages, "code": code, "checks": {"s": 0.1, "fails": TIMES - 1}},
    )

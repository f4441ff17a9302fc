"""From a seed to who reads along, and to what goes wrong between them and the notifier.

Only a share of the seeds has readers, and with them a notifier: the others cost nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.simulation.audience import NOTIFIERS, Reader
from tests.simulation.dice import Dice
from tests.simulation.plan import Fault, Order

SHARE: Final = 0.12  # of the seeds: a reader's cost as much as two others
READERS: Final = 4  # at most
LAST_FAULT_S: Final = 38.0


def readers_of(dice: Dice, orders: Sequence[Order]) -> tuple[Reader, ...]:
    if not orders or not dice.chance("audience", SHARE):
        return ()
    return tuple(_reader(dice, number, orders) for number in range(1, dice.whole("readers", 1, READERS) + 1))


def _reader(dice: Dice, number: int, orders: Sequence[Order]) -> Reader:
    order = dice.one_of("reader", orders)
    of_user = dice.chance("reader", 0.4)
    return Reader(
        name=f"reader-{number}",
        at_s=order.at_s + dice.between("reader at", -2.0, 15.0) if dice.chance("reader", 0.8) else 0.0,
        user=order.user,
        order=None if of_user else order.name,
        replay=not of_user and dice.chance("reader", 0.2),
        cut_share=dice.one_of("reader", (0.0, 0.5, 0.8)),
        slow_share=dice.one_of("reader", (0.0, 0.0, 0.5)),
    )


def faults_among(dice: Dice) -> tuple[Fault, ...]:
    """Of notifiers, besides what goes wrong elsewhere."""
    return tuple(_fault(dice) for _ in range(dice.whole("edge faults", 0, 4)))


def _fault(dice: Dice) -> Fault:
    kind = dice.one_of("edge fault", ("crash", "stop", "pause", "cut", "slow", "slow", "lossy"))
    at_s, for_s = dice.between("edge fault", 1.0, LAST_FAULT_S), dice.between("edge fault", 0.3, 11.0)
    who, server = dice.one_of("edge fault", NOTIFIERS), dice.one_of("edge fault", ("log", "log", "http", "commands"))
    match kind:
        case "crash" | "stop" | "pause":
            return Fault(kind=kind, at_s=at_s, for_s=for_s, who=who)
        case "slow" | "lossy":
            share = dice.between("edge fault", 0.05, 0.5 if kind == "lossy" else 1.5)
            return Fault(kind=kind, at_s=at_s, for_s=for_s, who=who, server=server, share=share)
        case _:
            return Fault(kind=kind, at_s=at_s, for_s=for_s, who=who, server=server)

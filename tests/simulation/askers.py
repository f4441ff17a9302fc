"""Stages that ask their user, once or twice: each answer names its job and its question, so that one that comes to
another is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tests.simulation.dice import Dice
from tests.simulation.plan import Order

SHARE: Final = 0.25  # of the seeds
EACH: Final = 0.4  # of their orders
AGAIN: Final = 0.5  # of those: each answer is sent twice
AGAIN_S: Final = (0.5, 12.0)  # the next question may be open by then
STAGES: Final = ("scaffold", "code", "checks")


def asking(dice: Dice, orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """The orders of a seed; in most nothing changes."""
    if not dice.chance("asks", SHARE):
        return orders
    return tuple(_asking(dice, order) if dice.chance("asking", EACH) else order for order in orders)


def answer_to(job_id: str, key: str | None) -> str:
    return f"{job_id} {key}"


def _asking(dice: Dice, order: Order) -> Order:
    stages: dict[str, dict[str, Any]] = {**order.stages}
    name = dice.one_of("asks at", STAGES)
    stages[name] = {**stages.get(name, {}), "questions": dice.whole("questions", 1, 2)}
    again_s = dice.between("answers again", *AGAIN_S) if dice.chance("answers again", AGAIN) else None
    return replace(order, stages=stages, answers_again_s=again_s)

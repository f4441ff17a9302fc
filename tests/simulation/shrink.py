"""From a plan that fails to the shortest one that still does: fewer faults, fewer acts, fewer orders, shorter delays.

A number depends on what it is for and not on what was drawn before, so leaving something out changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.simulation.plan import Fault, Plan

MOST_RUNS = 300


def shrink(plan: Plan, fails: Callable[[Plan], bool], *, most_runs: int = MOST_RUNS) -> Plan:
    """What is left when nothing more can be left out. `fails` runs a plan and looks for the same kind of finding."""
    runs = 0
    smaller = True
    while smaller:
        smaller = False
        for less in _less(plan):
            runs += 1
            if runs > most_runs:
                return plan
            if fails(less):
                plan, smaller = less, True
                break
    return plan


def _less(plan: Plan) -> Iterator[Plan]:
    """The largest pieces first."""
    for name in ("faults", "acts", "visits", "leases", "readers", "orders"):
        yield from (replace(plan, **{name: rest}) for rest in _without(getattr(plan, name)))
    for number, fault in enumerate(plan.faults):
        if (shorter := _shorter(fault)) != fault:
            yield replace(plan, faults=(*plan.faults[:number], shorter, *plan.faults[number + 1 :]))


def _without(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    size = len(items)
    while size:
        for start in range(0, len(items), size):
            yield items[:start] + items[start + size :]
        size //= 2


def _shorter(fault: Fault) -> Fault:
    return fault if fault.for_s < 1 else replace(fault, for_s=fault.for_s / 2)

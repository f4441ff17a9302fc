"""From a seed to what goes wrong around a single process: somebody lies in wait for it, or it alone is cut off.

What is drawn elsewhere comes at any moment; this comes in the one that matters.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.dice import Dice
from tests.simulation.plan import PEACE_S, SCHEDULERS, SERVICES, WAITS_S, WORKERS, Fault

SHARE: Final = 0.6  # of the seeds
LONG_STAGES: Final = 0.12  # of the orders of some seeds
LONG_S: Final = 36.0  # longer than a lease
KINDS: Final = ("lonely", "lonely", "halt", "halt", "fall", "fall", "stall", "drain", "shelf")
PLACES: Final = {"worker": ("append", "appended", "put"), "scheduler": ("append", "append", "appended")}


def faults_around_one(dice: Dice) -> tuple[Fault, ...]:
    if not dice.chance("one", SHARE):
        return ()
    return tuple(_fault(dice) for _ in range(dice.one_of("one", (1, 1, 2))))


def _fault(dice: Dice) -> Fault:
    def between(low: float, high: float) -> float:
        return dice.between("one", low, high)

    who, worker = dice.one_of("one", (*SERVICES, *SCHEDULERS)), dice.one_of("one", WORKERS)
    at_s, for_s = between(1.0, PEACE_S - 20), between(0.3, 11.0)
    match kind := dice.one_of("one", KINDS):
        case "lonely":
            what = dice.one_of("one", ("cut", "mute"))
            return Fault(kind=what, at_s=between(3.0, 9.0), for_s=between(36.0, 40.0), who=worker, server="commands")
        case "halt" | "fall":
            places = PLACES.get(who.rpartition("-")[0], ("append", "appended"))
            if kind == "halt" and who in WORKERS and dice.chance("one", 0.3):
                at_s, for_s = between(1.0, PEACE_S - WAITS_S - 38.0), 38.0  # past its lease
            return Fault(kind=kind, at_s=at_s, for_s=for_s, who=who, server=dice.one_of("one", places))
        case "stall":
            return Fault(kind="cut", at_s=at_s, for_s=for_s, who=dice.one_of("one", SCHEDULERS), server="reader")
        case "drain":
            return Fault(kind=kind, at_s=min(at_s, PEACE_S - 20))
        case _:
            share = between(0.1, 0.6)
            return Fault(kind="lossy", at_s=at_s, for_s=for_s, who=worker, server="buckets", share=share)

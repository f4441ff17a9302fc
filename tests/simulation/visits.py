"""What applications want outside any job: slots of groups, for a while, after a while in line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.simulation.dice import Dice

SHARE: Final = 0.3  # of the seeds
CALM: Final = 0.5  # of those: nothing goes wrong in them, so whoever waits has to come in at once
APPLICATIONS: Final = ("app-1", "app-2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One lease: who asks for it, when, and for how long it is inside of all these groups at most."""

    name: str
    who: str
    at_s: float
    groups: tuple[str, ...]
    ttl_s: float
    wait_s: float
    stays_s: float
    dies_after_s: float | None = None  # from when it asked: nothing more is heard of it


def visits_of(dice: Dice, *, projects: tuple[str, ...], groups: tuple[str, ...], until_s: float) -> tuple[Visit, ...]:
    """Those of a seed; most have none."""
    if not dice.chance("visits", SHARE):
        return ()
    names = tuple(f"group:{project}:{group}" for project in projects for group in groups)
    return tuple(_visit(dice, number, names, until_s) for number in range(1, dice.whole("visits", 4, 12) + 1))


def are_calm(dice: Dice, visits: tuple[Visit, ...]) -> bool:
    return bool(visits) and dice.chance("calm", CALM)


def _visit(dice: Dice, number: int, names: tuple[str, ...], until_s: float) -> Visit:
    dies = dice.chance("visit", 0.2)
    return Visit(
        name=f"visit-{number:02}",
        who=dice.one_of("visit", APPLICATIONS),
        at_s=dice.between("visit", 1.0, until_s),
        groups=dice.some_of("visited", names, dice.one_of("visit", (1, 1, 2, 2, 3))),
        ttl_s=dice.between("visit", 2.0, 15.0),
        wait_s=dice.one_of("visit", (0.0, 10.0, 25.0, 25.0)),
        stays_s=dice.between("visit", 0.2, 8.0),
        dies_after_s=dice.between("visit", 0.0, 6.0) if dies else None,
    )

"""What users hold outside any job, over HTTP: a slot of one group, extended as long as it is needed.

In some seeds nothing goes wrong besides, so whoever waits has to come in in its turn; in others the view is lost
meanwhile, after which nobody knows who holds what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.simulation.dice import Dice

SHARE: Final = 0.25  # of the seeds
CALM: Final = 0.4  # of those: nothing goes wrong
LOST: Final = 0.6  # of the others: the view is lost while slots are held
LIMITS: Final = {"vm": 1, "cam": 2}  # groups that no job names, as long as they are shut after a loss
DIES: Final = 0.3
LONGEST_S: Final = 15.0  # a lease; no longer than policy allows


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLease:
    """One: who wants it, from when on, for how long without an extension, and how long it is needed."""

    name: str
    user: str
    at_s: float
    group: str
    limit: int
    ttl_s: float
    wait_s: float
    stays_s: float
    dies_after_s: float | None = None  # from when it was asked for: nothing more is heard of its holder


def user_leases_of(
    dice: Dice, *, users: tuple[str, ...], projects: tuple[str, ...], until_s: float
) -> tuple[UserLease, ...]:
    """Those of a seed; most have none."""
    if not dice.chance("leases", SHARE):
        return ()
    count = dice.whole("leases", 6, 14)
    return tuple(_lease(dice, number, users, projects, until_s) for number in range(1, count + 1))


def hold_calmly(dice: Dice, leases: tuple[UserLease, ...]) -> bool:
    return bool(leases) and dice.chance("leases calm", CALM)


def losses_among(dice: Dice, leases: tuple[UserLease, ...]) -> tuple[float, ...]:
    """When the view is lost: as one of them has been held for a moment."""
    if not leases or not dice.chance("leases lost", LOST):
        return ()
    return (dice.one_of("leases lost", leases).at_s + dice.between("leases lost", 0.3, 6.0),)


def _lease(dice: Dice, number: int, users: tuple[str, ...], projects: tuple[str, ...], until_s: float) -> UserLease:
    name = dice.one_of("lease", ("vm", "vm", "cam"))
    return UserLease(
        name=f"lease-{number:02}",
        user=dice.one_of("lease", users),
        at_s=dice.between("lease", 1.0, until_s),
        group=f"group:{dice.one_of('lease', projects[:1] * 3 + projects)}:{name}",
        limit=LIMITS[name],
        ttl_s=dice.between("lease", 3.0, LONGEST_S),
        wait_s=dice.one_of("lease", (0.0, 10.0, 25.0, 25.0)),
        stays_s=dice.between("lease", 1.0, 20.0),
        dies_after_s=dice.between("lease", 0.0, 14.0) if dice.chance("lease", DIES) else None,
    )

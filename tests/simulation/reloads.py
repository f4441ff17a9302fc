"""Another policy while everything runs: in a share of the seeds operators reload it, and every limit is the log's then.

At each process: who folds the log counts by it from its record on; the others look for it once a second.
"""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any, Final, cast

from libs.foundation.policing import PolicyFollower, follow_policy
from libs.policy import Policy, PolicyInForce
from libs.runtime.lifecycle import Health, Service
from services.admission.acts import Acts
from services.admission.reloading import Reloading
from tests.simulation.dice import Dice
from tests.simulation.plan import NUMBERS, POLICY, PROVIDER, Act
from tests.simulation.world import Machine, World

SHARE: Final = 0.1  # of the seeds
CALM: Final = 0.5  # of those: nothing goes wrong in them, so it has to be heard at once
UNTIL_S: Final = 38.0
SHORTER: Final = "a shorter queue"
BOOSTS: Final = "boosts"  # stand in rows: the view is made anew
CHANGED: Final[dict[str, dict[str, Any]]] = {
    "lower limits": {
        "tiers": {
            "bootstrapper": {"jobs_per_user": 1, "jobs_per_project": 1},
            "partner": {"jobs_per_user": 1, "jobs_per_project": 1},
            "cto_scale": {"jobs_per_user": 2, "jobs_per_project": 2},
        },
    },
    "higher limits": {
        "tiers": {tier: {"jobs_per_user": 12, "jobs_per_project": 6} for tier in ("bootstrapper", "partner")},
        "providers": {"limits": {PROVIDER: 2}},
        "concurrency": {"default_limit": 2},
    },
    SHORTER: {"queue": {"cap": 4, "user_share": 3}, "order": {"max_passed": 1}},
    "shorter days": {"tiers": {"bootstrapper": {"jobs_per_day": 2}, "partner": {"jobs_per_day": 3}}},
    BOOSTS: {"tiers": {"bootstrapper": {"boost": 3}, "partner": {"boost": 0}}},
    "what it was": {},
}


def reloads_of(dice: Dice) -> tuple[Act, ...]:
    """Those of a seed; most have none."""
    if not dice.chance("reloads", SHARE):
        return ()
    names = (*CHANGED, SHORTER, SHORTER)
    return tuple(
        Act(kind="reload", at_s=dice.between("reloads", 2.0, UNTIL_S), what=dice.one_of("reloads", names))
        for _ in range(dice.whole("reloads", 1, 3))
    )


def fills_queue(reloads: tuple[Act, ...]) -> bool:
    """Whether more should wait than a reload lets: then each worker has one slot."""
    return any(act.what == SHORTER for act in reloads)


def reload_calmly(dice: Dice, reloads: tuple[Act, ...]) -> bool:
    return bool(reloads) and dice.chance("calm reloads", CALM)


def document(name: str) -> dict[str, Any]:
    """The file that an operator sends."""
    return _merged(deepcopy(NUMBERS), CHANGED[name])


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    for key, value in above.items():
        is_table = isinstance(value, dict) and isinstance(below.get(key), dict)
        below[key] = _merged(below[key], value) if is_table else value
    return below


# ── at a process ──────────────────────────────────────────────────────────────


async def following(world: World, service: Service, machine: Machine, log: Any) -> tuple[Policy, PolicyFollower | None]:
    """The policy of a process that does not fold the log; null: it is what all were started with, and stays."""
    if not world.is_reloaded:
        return POLICY, None
    policy = PolicyInForce.of(POLICY)
    ground = SimpleNamespace(log=log, policy=policy, clock=machine.clock, health=Health())
    return policy, await follow_policy(service, cast("Any", ground))


def reloading(policy: Policy, follower: PolicyFollower | None, acts: Acts) -> Reloading | None:
    """What an operator asks."""
    if follower is None:
        return None
    return Reloading(acts, cast("PolicyInForce", policy), follower, {}, acts.clock)

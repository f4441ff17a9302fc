"""How many slots a group has at most, and whether all of them are taken. Which jobs of a user, a project or a pool may
start is decided by this; where leases and claims want slots too, by the same rule in `lua/shared/limits.lua`.

The numbers are the policy's (`defaults_of` in `libs/capacity/projection.py`), an operator's, or in the group's name.
"""

import re
from collections.abc import Mapping

from libs.capacity.memory.state import GATE, State, active, is_quarantined, shut_until, slots_of

_OWN_LIMIT = re.compile(r"stage:.*:([0-9]{1,9})", re.DOTALL)


def limit_of(state: State, group: str, *, tier: str | None, now_ms: int) -> int:
    """The group's limit for a row of this tier; for a reader without a row the highest there is."""
    kind, _, name = group.partition(":")
    if kind == "pool":
        return slots_of(state, name, now_ms)
    if group in state.limits:
        return state.limits[group]
    if kind in ("user", "project"):
        found = _limit_by_tier(state.defaults, kind, state.tiers.get(name) if kind == "user" else tier)
    else:
        found = named_default(state.defaults, group)
    if found is None:
        found = _own_limit(group)
    return state.defaults.get("group", 0) if found is None else found


def is_full(state: State, group: str, *, tier: str | None, now_ms: int, picked: int = 0) -> bool:
    if group.startswith(GATE):
        return shut_until(state, group.removeprefix(GATE), now_ms) is not None
    if shut_until(state, group, now_ms) or is_quarantined(state, group, now_ms):
        return True
    return active(state, group, now_ms) + picked >= limit_of(state, group, tier=tier, now_ms=now_ms)


def named_default(defaults: Mapping[str, int], group: str) -> int | None:
    """What policy says of this group by name, or of every project's group of its last name."""
    if group in defaults or not group.startswith("group:"):
        return defaults.get(group)
    return defaults.get(f"group/{group.rpartition(':')[2]}")


def _own_limit(group: str) -> int | None:
    """A stage's own group ends with its limit."""
    named = _OWN_LIMIT.fullmatch(group)
    return named and int(named[1])


def _limit_by_tier(defaults: Mapping[str, int], kind: str, tier: str | None) -> int | None:
    if tier is not None:
        return defaults.get(f"{kind}/{tier}")
    return max((limit for name, limit in defaults.items() if name.startswith(f"{kind}/")), default=None)

"""A policy that is changed while everything runs: which part of it can be, and what a process reads it from.

    policy.toml of each service ── at its start ──┐
                                                  ├─► PolicyInForce
    policy_reloaded in the log ── from there on ──┘

What the log has said stands above the file, for the sections of `RELOADED` but for what `AT_START` names. The others
are what a process is built with, its leases, streams and workers: they are read from the file at its start alone.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from pydantic import PrivateAttr

from libs.policy.errors import PolicyError, Problem
from libs.policy.loading import policy_from
from libs.policy.model import Policy
from libs.policy.sections import Section, keys, toml_text

RELOADED: Final = (
    "tiers",
    "submissions",
    "queue",
    "order",
    "concurrency",
    "projects",
    "providers",
    "confirmation",
    "forecast",
    "tracing",
)

# Leases that were granted before run for the time of before. Where the view is lost, groups are shut for today's.
AT_START: Final = frozenset({"concurrency.default_lease_duration_secs"})

Sections = Mapping[str, Any]
VERSION: Final = 16  # hexadecimal digits


def can_be_reloaded(path: str) -> bool:
    """Whether a reload may change the number at this key."""
    return path.partition(".")[0] in RELOADED and path not in AT_START


class PolicyInForce(Policy):
    """The one of a running process. Its holders read what is in force now; every other policy stays as it is."""

    _file: Policy = PrivateAttr(default_factory=Policy)

    @classmethod
    def of(cls, policy: Policy) -> Self:
        made = cls.model_construct(**{name: getattr(policy, name) for name in Policy.model_fields})
        made._file = policy.file if isinstance(policy, PolicyInForce) else policy  # noqa: SLF001 - our own
        return made

    @property
    def file(self) -> Policy:
        """What the process was started with."""
        return self._file

    def take(self, sections: Sections) -> None:
        """What the log says holds from here on. Raises PolicyError, and changes nothing, where it cannot."""
        policy = reloaded(self._file, sections)
        for name in RELOADED:
            object.__setattr__(self, name, getattr(policy, name))  # frozen for everybody else


@dataclass(frozen=True, slots=True)
class Difference:
    """One number that is another one. `at_start`: only a service that starts can take it."""

    key: str
    before: Any
    after: Any
    at_start: bool

    def __str__(self) -> str:
        return f"{self.key} = {toml_text(self.after)} (before {toml_text(self.before)})"


def differences(before: Policy, after: Policy) -> Iterator[Difference]:
    """Number by number, in the order of the reference."""
    for old, new in zip(keys(before), keys(after), strict=True):
        if old.value != new.value:
            yield Difference(old.path, old.value, new.value, not can_be_reloaded(old.path))


def sections_of(policy: Policy) -> dict[str, Any]:
    """What an act in the log carries: every number of the sections that can be reloaded."""
    return policy.model_dump(mode="json", include=set(RELOADED))


def version_of(policy: Policy) -> str:
    """The same for the same numbers, of those that a reload may change: replicas that were started with others of the
    rest tell the same one."""
    said = sections_of(policy)
    for section, _, name in (path.partition(".") for path in AT_START):
        del said[section][name]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:VERSION]


def reloaded(policy: Policy, sections: Sections) -> Policy:
    """The policy with what an act or a snapshot says over its own. Another release may have written that: a key that
    there is no more is left out, one that is not named there stays. Raises PolicyError."""
    return policy_from(_laid_over(policy, sections), environ={})


def _laid_over(section: Section, said: Sections, prefix: str = "") -> dict[str, Any]:
    own = section.model_dump(exclude_unset=True)  # without what is derived: it is derived again
    for name in type(section).model_fields:
        path = f"{prefix}{name}"
        if name not in said or not can_be_reloaded(path):
            continue
        below, value = getattr(section, name), said[name]
        are_tables = isinstance(below, Section) and isinstance(value, Mapping)
        own[name] = _laid_over(below, cast("Sections", value), f"{path}.") if are_tables else value
    return own


def refused_here(seq: int, error: PolicyError) -> str:
    """A line for probes that ask how a service is: what it decides by is not what the log says."""
    reasons = "; ".join(f"{each.key}: {each.wrong}" for each in error.problems)
    return f"policy: that of record {seq} cannot be in force here, the one before holds ({reasons})"


def as_toml(policy: Policy) -> str:
    """Every number, as a file that says the same."""
    return "\n".join(f"{key.path} = {toml_text(key.value)}" for key in keys(policy))


def require_reloadable(before: Policy, after: Policy) -> tuple[Difference, ...]:
    """What a reload would change. Raises PolicyError where that is something that only a start can."""
    found = tuple(differences(before, after))
    if only_at_start := [each for each in found if each.at_start]:
        raise PolicyError([_only_at_start(each) for each in only_at_start])
    return found


def _only_at_start(each: Difference) -> Problem:
    wrong = f"{toml_text(each.after)} is not {toml_text(each.before)}, which the services were started with"
    instead = f"write {toml_text(each.before)}, or start the services with this file first"
    return Problem(each.key, wrong, instead)

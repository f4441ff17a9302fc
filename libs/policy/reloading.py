"""A policy that is changed while everything runs: which part of it can be, and what a process reads it from.

    policy.toml of each service ── at its start ──┐
                                                  ├─► PolicyInForce
    policy_reloaded in the log ── from there on ──┘

What the log has said stands above the file, for the sections of `RELOADED`. The others are what a process is built
with, its leases, streams and workers: they are read from the file at its start alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from libs.policy.errors import PolicyError, Problem
from libs.policy.loading import policy_from
from libs.policy.model import Policy
from libs.policy.sections import keys, toml_text

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

Sections = Mapping[str, Any]


class PolicyInForce(Policy):
    """The one of a running process. Whoever holds it reads what is in force now; every other policy stays as it is."""

    @classmethod
    def of(cls, policy: Policy) -> Self:
        return cls.model_construct(**{name: getattr(policy, name) for name in Policy.model_fields})

    def take(self, sections: Sections) -> None:
        """What the log says holds from here on. Raises PolicyError, and changes nothing, where it cannot."""
        policy = reloaded(self, sections)
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
            yield Difference(old.path, old.value, new.value, old.path.partition(".")[0] not in RELOADED)


def sections_of(policy: Policy) -> dict[str, Any]:
    """What an act in the log carries: every number of the sections that can be reloaded."""
    return policy.model_dump(mode="json", include=set(RELOADED))


def reloaded(policy: Policy, sections: Sections) -> Policy:
    """The policy with these sections in place of its own. Raises PolicyError."""
    named = {name: sections[name] for name in RELOADED if name in sections}
    return policy_from({**policy.model_dump(), **named}, environ={})


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

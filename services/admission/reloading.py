"""How another policy comes into force while everything runs: an act in the log that carries all of it, checked.

A file that cannot be, or that changes what only a start can, changes nothing. What is in force is said with who did it.
The log forgets by age, so an act that is half as old as it may become is written again, by the replica that notices.
Each names the reload that it follows, so that of two at once the second one sees the first.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from headgate_contracts.envelope import utc
from headgate_contracts.events import PolicyReloaded
from headgate_contracts.shown import ShownPolicy
from libs.eventlog import LogMissing, LogUnavailable, OutcomeUnknown
from libs.eventlog.errors import LogFull
from libs.foundation.policing import PolicyFollower
from libs.policy import PolicyError, PolicyInForce
from libs.policy.errors import Problem
from libs.policy.loading import policy_from
from libs.policy.reloading import require_reloadable, sections_of, version_of
from libs.runtime.clock import Clock
from libs.runtime.etags import names_strongly
from services.admission.acts import Acts

LOOK_EVERY_MS: Final = 3_600_000
REASON_MAX: Final = 500  # characters of an act's
AGAIN: Final = "written again before the log forgets it)"


@dataclass(frozen=True, slots=True)
class AnotherPolicy:
    """Another one is in force than the operator had seen."""

    now: ShownPolicy


@dataclass(frozen=True, slots=True)
class Reloading:
    """The use cases, with what they need. `environ` overrides numbers of a file, as at a start."""

    acts: Acts
    policy: PolicyInForce
    follower: PolicyFollower
    environ: Mapping[str, str]
    clock: Clock

    async def reload(
        self, document: Mapping[str, Any], *, by: str, reason: str, expected: frozenset[str] | None = None
    ) -> ShownPolicy | AnotherPolicy:
        """Raises PolicyError, with every reason why not. A policy that changes nothing is not written.

        `expected`: the tags of which the one in force has to have one (`If-Match`); null: whatever is in force.
        """
        wanted = policy_from(dict(document), environ=self.environ)
        while True:
            await self.follower.look()
            if expected is not None and not self._is_in_force(expected):
                return AnotherPolicy(self.in_force())
            found, seen = require_reloadable(self.policy, wanted), self.follower.seen
            keys = tuple(each.key for each in found)
            act = PolicyReloaded(by=by, reason=reason, sections=sections_of(wanted), changed=keys)
            if not found or await self.acts.reload(act, after=seen):
                await self.follower.catch_up()
                return self.in_force().model_copy(update={"changed": tuple(map(str, found))})
            await self._require_newer(seen)

    def _is_in_force(self, tags: frozenset[str]) -> bool:
        """An operator who compares has to be shown the newest one. Raises PolicyError where this replica cannot."""
        if not self.follower.is_current:
            wrong = f"record {self.follower.seen} of the log reloads another policy, which cannot be in force here"
            raise PolicyError([Problem("If-Match", wrong, "/readyz says why; a reload without If-Match replaces it")])
        return names_strongly(tags, policy_etag(self.in_force()))

    async def _require_newer(self, seen: int) -> None:
        """The log has refused to write after this record: another one stands behind it, or the log was restored."""
        await self.follower.look()
        if self.follower.seen == seen:
            raise LogUnavailable(reason="its last reload of the policy is older than one that was seen here")

    def in_force(self) -> ShownPolicy:
        """As this replica counts by it."""
        policy, version = self.policy.model_dump(mode="json"), version_of(self.policy)
        if self.follower.last is None:
            return ShownPolicy(policy=policy, version=version)
        record, act = self.follower.last
        return ShownPolicy(policy=policy, version=version, since=record.at, by=act.by, reason=act.reason)

    async def run(self, stopping: asyncio.Event) -> None:
        """See to it that the log never forgets what is in force."""
        while not stopping.is_set():
            with suppress(LogUnavailable, LogMissing, OutcomeUnknown, LogFull):
                await self.carry_on()
            await self.clock.sleep_ms(LOOK_EVERY_MS)

    async def carry_on(self) -> None:
        """Write it again where it is old and still the newest: after a newer one it would undo that."""
        await self.follower.look()
        if self.follower.newest is None:
            return
        record, act = self.follower.newest
        if utc(self.clock.now_ms()) - record.at > timedelta(days=self.policy.retention.events_days / 2):
            again = act.model_copy(update={"reason": _again(act.reason, record.at), "changed": ()})
            await self.acts.reload(again, after=record.seq)
            await self.follower.look()


def policy_etag(shown: ShownPolicy) -> str:
    """Every number that a reload may change makes it: the same policy under another record, or in another replica, has
    the same."""
    return f'"{shown.version}"'


def _again(reason: str, since: datetime) -> str:
    """Why it was reloaded and when: the record of its own is forgotten first."""
    if reason.endswith(AGAIN):
        return reason
    tail = f"(in force since {since:%Y-%m-%d %H:%M} UTC, {AGAIN}"
    return f"{reason[: REASON_MAX - len(tail) - 1]} {tail}".strip()

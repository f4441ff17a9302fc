"""What operators do, written down: an act is one event of the log, and expects nothing of what is there.

A reload of the policy replaces all of it, so it alone names the reload that it follows.
"""

from dataclasses import dataclass
from datetime import datetime

from headgate_contracts import Event, Writer
from headgate_contracts.envelope import utc
from headgate_contracts.events import Act, PolicyReloaded, TokenRevoked
from libs.eventlog import Appended, Conflicted, Entry
from libs.eventlog.ports import EventLog
from libs.policy import Policy
from libs.policy.model import DAY_S
from libs.runtime.clock import Clock
from libs.runtime.revocations import Revocations
from libs.runtime.telemetry import traceparent
from services.admission.ports import Ids


@dataclass(frozen=True, slots=True)
class Acts:
    """The writing, with what it needs."""

    log: EventLog
    clock: Clock
    ids: Ids

    async def write(self, act: Act) -> int:
        """Its sequence, once the log has it."""
        seq = await self._append(act, after=None)
        if seq is None:
            raise AssertionError("an act expects nothing of the log, so nothing can conflict with it")
        return seq

    async def reload(self, act: PolicyReloaded, *, after: int) -> bool:
        """False where another reload came after that one first."""
        return await self._append(act, after=after) is not None

    async def _append(self, act: Act, *, after: int | None) -> int | None:
        event = Event(self.ids.event_id(), Writer.ADMISSION, utc(self.clock.now_ms()), act)
        match await self.log.append_batch([Entry(event, after, traceparent())]):
            case Appended(records):
                return records[-1].seq
            case Conflicted():
                return None


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The token lets nobody in. `again`: it did not before either, and nothing was written."""

    until: datetime
    again: bool


@dataclass(frozen=True, slots=True)
class Revoking:
    """How a token is taken back: by an act, which every replica follows. The log holds it for longer than any token is
    good (policy), so a replica that starts later reads it there."""

    acts: Acts
    revocations: Revocations
    policy: Policy
    clock: Clock

    async def revoke(self, token_id: str, *, by: str, reason: str) -> TakenBack:
        """Whether there is such a token nobody here knows: it may be one that was never shown."""
        known_ms = self.revocations.until_ms(token_id)
        if known_ms is not None:
            return TakenBack(utc(known_ms), again=True)
        until_ms = self.clock.now_ms() + self.policy.tokens.longest_days * DAY_S * 1000
        await self.acts.write(TokenRevoked(by=by, reason=reason, jti=token_id, until=utc(until_ms)))
        self.revocations.take_back(token_id, until_ms=until_ms)
        return TakenBack(utc(until_ms), again=False)

"""How a token is taken back: an act in the log, which every replica follows.

The log holds it for longer than any token is good (policy), so a replica that starts later reads it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headgate_contracts.envelope import utc
from headgate_contracts.events import TokenRevoked
from libs.policy import Policy
from libs.policy.model import DAY_S
from libs.runtime.clock import Clock
from libs.runtime.revocations import Revocations
from services.admission.acts import Acts


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The token lets nobody in. `again`: it did not before either, and nothing was written."""

    until: datetime
    again: bool


@dataclass(frozen=True, slots=True)
class Revoking:
    """The use case, with what it needs."""

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

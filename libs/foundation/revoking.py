"""Which tokens were taken back, read from the log.

    token_revoked ── 17 ────── 801 ─────────────── 4020
                      └──────────┴── scanned ────────┘    before the service is ready
                                                      ▲
                 each second: is there a newer one?   └── the log's leader says

One question a second finds each of them on every replica, whatever happens to a connection meanwhile, and costs the
service nothing that it serves. Only the last of the subject is asked for; where it is a new one, those in between are
read. A replica that cannot reach the log goes on with what it knows.

An act says until when the policy of its day let any token be good. Tokens may be good for longer since, so each replica
also counts from the act by the policy that it checks tokens by: the later of the two holds.
"""

import asyncio
from contextlib import aclosing, suppress
from typing import Final

from headgate_contracts import Event, OpsSubject
from headgate_contracts.events import TokenRevoked
from headgate_contracts.vocabulary import ActName
from libs.capacity.projection import epoch_ms
from libs.eventlog import LogMissing, LogUnavailable, Record
from libs.eventlog.history import Scans
from libs.eventlog.ports import EventLog
from libs.runtime.clock import Clock
from libs.runtime.revocations import Revocations

REVOKED: Final = str(OpsSubject(ActName.TOKEN_REVOKED))
LOOK_EVERY_MS: Final = 1000
AWAY: Final = (LogUnavailable, LogMissing)


class RevocationFollower:
    """Brings what this replica knows up to the log."""

    def __init__(
        self, log: EventLog, scans: Scans, revocations: Revocations, *, longest_s: float, clock: Clock
    ) -> None:
        self._log = log
        self._scans = scans
        self._revocations = revocations
        self._longest_ms = int(longest_s * 1000)
        self._clock = clock
        self._seen = 0

    async def catch_up(self) -> None:
        """All that the log's leader has. Raises LogUnavailable where a copy that is scanned has not come as far."""
        last = await self._log.last(REVOKED)
        if last is None or last.seq <= self._seen:
            return
        async with aclosing(self._scans.pages([REVOKED], after=self._seen)) as pages:
            async for page in pages:
                for record in page:
                    self._take(record)
        if self._seen < last.seq:
            raise LogUnavailable(reason=f"no copy of the log has come as far as its leader, {last.seq}")

    async def run(self, stopping: asyncio.Event) -> None:
        """Look each second whether there is a newer one."""
        while not stopping.is_set():
            await self._clock.sleep_ms(LOOK_EVERY_MS)
            with suppress(*AWAY):
                await self.catch_up()

    def _take(self, record: Record) -> None:
        self._seen = max(self._seen, record.seq)
        match record.event:
            case Event(data=TokenRevoked() as act):
                until_ms = max(epoch_ms(act.until), epoch_ms(record.at) + self._longest_ms)
                self._revocations.take_back(act.jti, until_ms=until_ms)
            case _:  # of a newer writer, in a shape that nobody here knows
                pass

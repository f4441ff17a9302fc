"""The lead: one replica decides, the others are ready to within seconds.

    hold ──► led by us ──► hold, each second … the store silent or another's name: we do not lead
                                               not fit, or at the end: resign, another leads at once

Fit is who keeps up with the log: one that cannot read it decides nothing, and must not keep the lead from one that can.

While the store is silent no other replica can lead but the one that does: the one that led last goes on with what it
can decide without the view, until the store answers or the log shows a link of another. Where it was cut off alone, and
another leads by the store, the chain lets one of the two write at a time, and the other's first link ends it.

It is for liveness. A leader that was stopped in mid-decision goes on with what it was about to write: the chain in
the log refuses that, and then it looks here. Owns the store's time too, which every answer tells: decisions are dated
by it, so a wrong clock of this machine has no effect.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from headgate_contracts.envelope import utc
from libs.capacity.errors import ViewUnavailable
from libs.foundation.ground import VIEW
from libs.policy import Policy
from services.scheduler.outages import Outages
from services.scheduler.ports import Adapters

logger = logging.getLogger(__name__)

FIT_SOON_MS = 25  # at a start: until the log was read


class Leader:
    """One replica's end of the lead. It sets `begun` when that begins."""

    def __init__(
        self,
        adapters: Adapters,
        *,
        name: str,
        policy: Policy,
        outages: Outages,
        fit: Callable[[], bool],
        begun: asyncio.Event,
    ) -> None:
        self.name = name
        self._fit = fit
        self._begun = begun
        self._lead = adapters.lead
        self._clock = adapters.clock
        self._health = adapters.health
        self._ttl_ms = round(policy.leases.leader_s * 1000)
        self._every_ms = round(policy.leases.leader_heartbeat_s * 1000)
        self._outages = outages
        self._led_last = self._is_unheard = False  # of the store: it did not answer the last question
        self._until_ms: int | None = None  # by our own clock that only grows; null: another leads
        self._store_ahead_ms: int | None = None  # of that clock

    @property
    def leads(self) -> bool:
        return self._until_ms is not None and self._clock.monotonic_ms() < self._until_ms

    @property
    def goes_on(self) -> bool:
        """Whether this replica led when the store was heard last, which is silent, and no other replica has followed
        it."""
        return self._led_last and self._is_unheard

    def followed(self) -> None:
        """Another's link is in the log."""
        self._led_last = False

    @property
    def now(self) -> datetime:
        """By the store's clock, which every answer about the lead tells."""
        if self._store_ahead_ms is None:
            return utc(self._clock.now_ms())
        return utc(self._clock.monotonic_ms() + self._store_ahead_ms)

    async def renew(self) -> bool:
        """Ask once; whether this replica leads. It counts from before the question, as the store does at the latest."""
        asked_ms, led_before = self._clock.monotonic_ms(), self.leads
        try:
            if not self._fit():
                await self._stand_back(led_before=led_before)
                return False
            led = await self._lead.hold(self.name, ttl_ms=self._ttl_ms)
        except ViewUnavailable:
            self._is_unheard = True
            raise
        self._is_unheard, self._led_last = False, led.by == self.name
        self._outages.reached("store")
        self._health.is_there(VIEW)
        self._store_ahead_ms = led.now_ms - self._clock.monotonic_ms()
        self._until_ms = asked_ms + self._ttl_ms if led.by == self.name else None
        self._outages.leading(leads=self.leads)
        if self.leads is not led_before:
            logger.info("%s leads, this replica %s", led.by, "decides" if self.leads else "stands by")
            if self.leads:
                self._begun.set()
        return self.leads

    async def _stand_back(self, *, led_before: bool) -> None:
        if led_before:
            logger.error("this replica does not keep up with the log: it lets another lead")
        await self.resign()
        self._outages.reached("store")
        self._health.is_there(VIEW)
        self._outages.leading(leads=False)

    async def resign(self) -> None:
        """Let another lead at once. A store that is silent may not know of it: this replica led last, until it does."""
        self._until_ms = None
        await self._lead.drop(self.name)
        self._is_unheard = self._led_last = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Ask again and again; with a store that does not answer no replica leads after one lease."""
        while not stopping.is_set():
            is_fit = self._fit()  # before the question: one that was not asks again soon, though it may be by then
            try:
                await self.renew()
            except ViewUnavailable as fault:
                self._health.is_missing(VIEW, str(fault))
            await self._clock.sleep_ms(self._every_ms if is_fit else min(self._every_ms, FIT_SOON_MS))

"""How full the log is, as metrics: a full one takes no new work. From where on it is too full an alert says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from libs.eventlog.errors import LogError
from libs.eventlog.ports import EventLog
from libs.eventlog.values import Fill
from services.scheduler.ports import Leads

UNKNOWN: Final = Fill(0, None)


class Fullness:
    """One replica's. The leader's is shown, as there is one log."""

    def __init__(self, meter: Meter, *, log: EventLog, leader: Leads) -> None:
        self._log = log
        self._leader = leader
        self._fill = UNKNOWN
        for name, observe, description in (
            ("headgate_log_bytes", self._held, "what the log holds"),
            ("headgate_log_limit_bytes", self._limit, "what it takes"),
        ):
            meter.create_observable_gauge(name, [observe], unit="By", description=description)

    async def look(self) -> None:
        try:
            self._fill = await self._log.fill() if self._leader.leads else UNKNOWN
        except LogError:
            self._fill = UNKNOWN

    def _held(self, _: CallbackOptions) -> Iterable[Observation]:
        return () if self._fill.limit is None else (Observation(self._fill.held),)

    def _limit(self, _: CallbackOptions) -> Iterable[Observation]:
        return () if self._fill.limit is None else (Observation(self._fill.limit),)

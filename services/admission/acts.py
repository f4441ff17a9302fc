"""What operators do, written down: an act is one event of the log, and expects nothing of what is there."""

from __future__ import annotations

from dataclasses import dataclass

from headgate_contracts import Event, Writer
from headgate_contracts.envelope import utc
from headgate_contracts.events import Act
from libs.eventlog import Appended, Conflicted, Entry
from libs.eventlog.ports import EventLog
from libs.runtime.clock import Clock
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
        event = Event(self.ids.event_id(), Writer.ADMISSION, utc(self.clock.now_ms()), act)
        match await self.log.append_batch([Entry(event, None, traceparent())]):
            case Appended(records):
                return records[-1].seq
            case Conflicted():
                raise AssertionError("an act expects nothing of the log, so nothing can conflict with it")

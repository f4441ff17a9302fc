"""What operators do, written down: an act is one event of the log, and expects nothing of what is there.

A reload of the policy replaces all of it, so it alone names the reload that it follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate_contracts import Event, Writer
from headgate_contracts.envelope import utc
from headgate_contracts.events import Act, PolicyReloaded
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

"""What the scheduler needs from outside; log and view are as their libraries say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headgate_contracts.commands import LeaseReply
from libs.capacity.lead import Lead
from libs.capacity.ports import View
from libs.eventlog.ports import EventLog, Snapshots
from libs.runtime.clock import Clock
from libs.runtime.lifecycle import Health
from libs.runtime.telemetry import Telemetry


class Commands(Protocol):
    """The connection that heartbeats and lease requests come by."""

    async def answers(self) -> bool:
        """Whether a worker could be heard now."""
        ...

    async def send(self, address: str, reply: LeaseReply) -> None:
        """Send what a waiter has waited for. It may be lost: the waiter asks again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """What reaches out of the process."""

    log: EventLog
    view: View
    lead: Lead
    commands: Commands
    snapshots: Snapshots
    telemetry: Telemetry
    health: Health
    clock: Clock
    new_id: Callable[[], str]

"""The worst moments for a change of mind: a job is cancelled just when somebody else writes about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import JobQueued, JobStage
from libs.eventlog.values import Record
from tests.simulation.clients import Client
from tests.simulation.stages import PLAYED_AS
from tests.simulation.system import System

LAST_MOMENT_S: Final = (-0.02, 0.02)  # a request takes some 10 ms until it is in the log


def last_moments(system: System, by_job: dict[str, Client]) -> Callable[[Record], None]:
    """Hears of each record. Where it is the one that the client waits for, it cancels as the next one is written."""

    def heard(record: Record) -> None:
        data = record.event.data if isinstance(record.event, Event) else None
        if not isinstance(data, JobQueued | JobStage) or (client := by_job.get(data.job_id)) is None:
            return
        played = PLAYED_AS.get(data.stage, data.stage) if isinstance(data, JobStage) else data.status.value
        if played == client.order.cancel_on:
            lasts_s = client.order.stages[played]["s"] if isinstance(data, JobStage) else 0.0
            after_s = lasts_s + system.dice.between(f"{client.order.name} last moment", *LAST_MOMENT_S)
            system.loop.create_task(client.cancel(data.job_id, after_s=max(0.0, after_s)))

    return heard

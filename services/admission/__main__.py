"""Admission, composed: settings, clients, adapters, routes. Run with `python -m services.admission`."""

from __future__ import annotations

import asyncio
import secrets
import sys
from dataclasses import dataclass

from libs.eventlog.buckets import JetStreamInputs, JetStreamObjects
from libs.eventlog.streams import RESULTS
from libs.foundation import Ground, lay
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Service
from libs.runtime.settings import read_settings
from services.admission.api import Edge, reading, writing
from services.admission.handlers import Admission
from services.admission.settings import AdmissionSettings


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids of events sort by time; those of jobs tell nothing."""

    ground: Ground[AdmissionSettings]

    def event_id(self) -> str:
        return self.ground.new_id()

    def job_id(self) -> str:
        return f"j{secrets.token_hex(12)}"


async def compose(service: Service) -> None:
    """Everything that runs in this process, in the order in which it starts."""
    ground = await lay(service, read_settings(AdmissionSettings))
    view = await ground.view(service)
    ids = Ids(ground)
    admission = Admission(view, ground.log, JetStreamInputs(ground.nc), ground.policy, ground.clock, ids)
    results = JetStreamObjects(ground.nc, RESULTS)
    edge = Edge(admission, results, ground.policy, ground.clock, ground.telemetry, ids.job_id)
    for router in (writing(edge), reading(edge)):
        ground.app.include_router(router)
    await service.start(ground.gate)


def main() -> int:
    try:
        return asyncio.run(Service("admission").run(compose))
    except SettingsWrong as wrong:
        sys.stderr.write(f"admission: {wrong}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())

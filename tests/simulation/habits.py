"""What the leading scheduler does now and then, in some seeds: it forecasts, and deletes what jobs leave behind.

As `__main__` composes it; only what a day is there is seconds here, so that something comes to its end.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, cast

from libs.runtime.lifecycle import Loop
from libs.twins.virtual import Process
from services.scheduler.forecasting import Forecaster
from services.scheduler.janitor import Janitor, Remains, kept_inputs, kept_workspaces
from services.scheduler.ports import Adapters
from services.scheduler.replica import Replica
from tests.simulation.plan import POLICY
from tests.simulation.world import World

KEPT: Final = timedelta(seconds=20)
STRANGE_FOR: Final = timedelta(seconds=60)  # longer than any submission takes
LOOK_EVERY_MS: Final = 7000


def habits(world: World, process: Process, replica: Replica, adapters: Adapters) -> tuple[Loop, ...]:
    ledger, leader, clock = replica.ledger, replica.leader, adapters.clock
    kept = POLICY.retention
    remains = (
        kept_workspaces(cast("Any", world.bucket(process, world.workspaces)), kept),
        kept_inputs(cast("Any", world.bucket(process, world.inputs)), kept),
    )
    history = cast("Any", adapters.log)
    janitors = [Janitor(_soon(each), history, ledger=ledger, leader=leader, clock=clock) for each in remains]
    meter = adapters.telemetry.meter
    return (
        Loop("forecast", Forecaster(ledger, adapters.view, clock=clock, leader=leader, meter=meter).run),
        *(Loop(each.what, janitor.run) for each, janitor in zip(remains, janitors, strict=True)),
    )


def _soon(remains: Remains) -> Remains:
    strange_for = STRANGE_FOR if remains.strange_for else remains.strange_for
    return replace(remains, kept=KEPT, strange_for=strange_for, look_every_ms=LOOK_EVERY_MS)

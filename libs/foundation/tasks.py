"""How many tasks run on the process's loop: what is begun and never ended shows here first."""

from __future__ import annotations

import asyncio

from opentelemetry.metrics import Meter, Observation


def show_tasks(meter: Meter) -> None:
    """From now on, of the loop that this is called on; metrics are read on other threads too."""
    loop = asyncio.get_running_loop()
    meter.create_observable_gauge(
        "headgate_tasks",
        [lambda _: [Observation(len(asyncio.all_tasks(loop)))]],
        description="tasks on the loop of this process",
    )

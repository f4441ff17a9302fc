"""A whole system in virtual time: the world, and in it the processes, composed as `__main__` does it.

Each process is a real `Service` with its real loops; only what leads outside is an edge of the simulation. One that
ends by a fault of its own is started again after a second, as its supervisor would.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from libs.runtime.lifecycle import Service
from libs.twins.virtual import Process
from tests.simulation import admissions, notifiers, schedulers, workers
from tests.simulation.deeds import Stop
from tests.simulation.world import Machine, World

AGAIN_AFTER_S: Final = 1.0
Compose = Callable[[World, Service, Machine, Process], Awaitable[None]]
COMPOSE: Final[dict[str, Compose]] = {
    "admission": admissions.compose,
    "scheduler": schedulers.compose,
    "worker": workers.compose,
    "notifier": notifiers.compose,
}


class System(World):
    """One simulation's."""

    def start_all(self) -> None:
        for machine in self.machines.values():
            self.start(machine)

    def start(self, machine: Machine) -> None:
        """A new process of it."""
        if machine.down or (machine.process and machine.process.alive):
            return
        machine.told_to_stop_s = None
        process = machine.process = Process(machine.name, self.loop)
        machine.service = Service(machine.name)
        process.start(self._live(machine, process, COMPOSE[machine.name.rpartition("-")[0]]))

    def stop(self, machine: Machine) -> None:
        """As a supervisor does: SIGTERM."""
        if machine.service is not None and machine.told_to_stop_s is None:
            machine.told_to_stop_s = self.loop.time()
            machine.service.stop()

    def crash(self, machine: Machine, for_s: float) -> None:
        process, machine.use_cases, machine.streams = machine.process, None, None
        if process is not None and process.alive:
            process.crash()
        machine.down += 1

        def again() -> None:
            machine.down -= 1
            self.start(machine)

        self.network.later(for_s, again)

    async def _live(self, machine: Machine, process: Process, compose: Compose) -> None:
        service, began_s = machine.service, self.loop.time()
        assert service is not None
        code = await service.run(lambda service: compose(self, service, machine, process))  # type: ignore[arg-type,return-value]
        if process.alive:
            self.say(f"{machine.name} ended with {code}")
            if machine.told_to_stop_s is not None and code == 0:
                instance = f"{machine.name}-{round(began_s * 1000)}"
                self.deeds.stops.append(Stop(instance, machine.told_to_stop_s, self.loop.time()))
            self.crash(machine, AGAIN_AFTER_S)

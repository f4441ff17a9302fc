"""What goes wrong in a system: one method a kind, which begins it and says when it is over."""

from __future__ import annotations

import copy

from libs.capacity.lead import MemoryLead
from tests.simulation.network import Trouble
from tests.simulation.plan import SCHEDULERS, Fault
from tests.simulation.system import System


class Faults:
    """Lets things go wrong in one system."""

    def __init__(self, system: System) -> None:
        self._system = system

    def begin(self, fault: Fault) -> None:
        self._system.say(str(fault))
        getattr(self, f"_{fault.kind}")(fault)

    def _crash(self, fault: Fault) -> None:
        self._system.crash(self._system.machines[fault.who], fault.for_s)

    def _stop(self, fault: Fault) -> None:
        """As a supervisor does: SIGTERM."""
        service = self._system.machines[fault.who].service
        if service is not None:
            service.stop()

    def _roll(self, fault: Fault) -> None:
        """Every process in turn."""
        for number, name in enumerate(self._system.machines):
            self._system.network.later(2.0 * number, lambda name=name: self._stop(Fault(kind="stop", at_s=0, who=name)))

    def _pause(self, fault: Fault) -> None:
        process = self._system.machines[fault.who].process
        if process is not None and process.alive:
            process.pause()
            self._system.network.later(fault.for_s, process.resume)

    def _cut(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, cut=True))

    def _lossy(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, lossy=fault.share))

    def _mute(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, mute=True))

    def _slow(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, slow_s=fault.share))

    def _trouble(self, fault: Fault, trouble: Trouble) -> None:
        self._system.network.troubles.append(trouble)
        self._system.network.later(fault.for_s, lambda: self._system.network.troubles.remove(trouble))

    def _flush(self, fault: Fault) -> None:
        self._system.view_was_lost = True
        self._system.store.lose()
        self._system.lead.lose()

    def _older(self, fault: Fault) -> None:
        """A store that was restarted with what it had kept a while ago."""
        self._system.view_was_lost = True
        older = copy.deepcopy(self._system.store.state)

        def put_back() -> None:
            self._system.say("the view is as old as that again")
            self._system.store.state = older

        self._system.network.later(fault.for_s, put_back)

    def _split(self, fault: Fault) -> None:
        """Each replica is told that it leads."""
        self._system.leads = {name: MemoryLead(self._system.clock.now_ms) for name in SCHEDULERS}

        def one_again() -> None:
            self._system.leads = None

        self._system.network.later(fault.for_s, one_again)

    def _full(self, fault: Fault) -> None:
        if fault.server == "log":
            self._system.server._max_bytes = self._system.server._bytes()
        else:
            self._system.buckets_full = True

        def room() -> None:
            self._system.server._max_bytes, self._system.buckets_full = None, False

        self._system.network.later(fault.for_s, room)

    def _clock(self, fault: Fault) -> None:
        self._system.machines[fault.who].clock.ahead_ms += round(fault.share * 1000)

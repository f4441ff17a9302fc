"""What goes wrong in a system: one method a kind, which begins it and says when it is over."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable

from libs.capacity.lead import MemoryLead
from tests.simulation.indexes import damage, index_path, put_back
from tests.simulation.network import Trouble
from tests.simulation.plan import DRAINED_S, SCHEDULERS, WAITS_S, WORKERS, Fault
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
        self._system.stop(self._system.machines[fault.who])

    def _roll(self, fault: Fault) -> None:
        """Every process in turn."""
        self._stop_all(self._system.machines, each_s=2.0)

    def _drain(self, fault: Fault) -> None:
        """Every worker in turn, and no two at once."""
        self._stop_all(WORKERS, each_s=DRAINED_S)

    def _stop_all(self, names: Iterable[str], *, each_s: float) -> None:
        for number, name in enumerate(names):
            machine = self._system.machines[name]
            self._system.network.later(each_s * number, lambda machine=machine: self._system.stop(machine))

    def _pause(self, fault: Fault) -> None:
        process = self._system.machines[fault.who].process
        if process is not None and process.alive:
            process.pause()
            self._system.network.later(fault.for_s, process.resume)

    def _halt(self, fault: Fault) -> None:
        """Paused in the very moment in which it is about to do this."""
        self._lie_in_wait(fault, lambda: self._pause(fault))

    def _fall(self, fault: Fault) -> None:
        """Killed in that moment."""
        self._lie_in_wait(fault, lambda: self._crash(fault))

    def _lie_in_wait(self, fault: Fault, ambush: Callable[[], None]) -> None:
        key, ambushes = (fault.who, fault.server), self._system.network.ambushes

        def falls() -> None:
            self._system.say(f"{fault.kind} at {fault.server} of {fault.who}")
            ambush()

        def gone() -> None:
            if ambushes.get(key) is falls:
                del ambushes[key]

        ambushes[key] = falls
        self._system.network.later(WAITS_S, gone)

    def _cut(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, cut=True))

    def _lossy(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, lossy=fault.share))

    def _late(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, late=fault.share))

    def _mute(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, mute=True))

    def _deaf(self, fault: Fault) -> None:
        """The log, from something on that is about to be written."""
        self._lie_in_wait(fault, lambda: self._trouble(fault, Trouble(fault.who, "log", deaf=True)))

    def _held(self, fault: Fault) -> None:
        """From something on that is about to be written: all of it arrives together, a while after."""

        def begin() -> None:
            until_s = self._system.loop.time() + fault.for_s + fault.share
            self._trouble(fault, Trouble(fault.who, "log", holds_until_s=until_s))

        self._lie_in_wait(fault, begin)

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
            self._system.deeds.given_up.clear()  # it knows nothing of those

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

    def _file(self, fault: Fault) -> None:
        """Of the index: gone under its process, torn as the machine stops, or put back as it was a while ago."""
        path = index_path(self._system)
        if fault.server == "torn":
            self._system.crash(self._system.machines[fault.who], fault.for_s)
        copy = damage(path, fault.server)
        if copy is not None:
            self._system.network.later(fault.for_s, put_back, path, copy)

    def _clock(self, fault: Fault) -> None:
        self._system.machines[fault.who].clock.ahead_ms += round(fault.share * 1000)

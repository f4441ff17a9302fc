"""The workers that a plan counts on: those that were heard, until they are silent for too long.

Owns the engine's side of it, over the state that it plans by; the view has its own.
"""

from collections.abc import Callable, Iterable

from libs.capacity.answers import Heartbeat, WorkerStatus
from libs.capacity.memory.state import State, Worker


class Staff:
    """The workers of all pools, as one replica knows them. `clock`: milliseconds."""

    def __init__(self, state: State, clock: Callable[[], int]) -> None:
        self._workers, self._expiries = state.workers, state.expiries
        self._clock = clock

    def take(self, workers: Iterable[WorkerStatus]) -> None:
        """Those that the view knows, for a replica that begins to plan. Of two words about one the later counts."""
        for each in workers:
            known = self._workers.get(each.worker)
            if known is None or known.heard_ms <= each.heard_ms:  # the same word again may end later by now
                worker = Worker(each.pool, each.slots, each.draining, each.heard_ms, holders=())
                self._place(each.worker, worker, until_ms=each.until_ms)
        self.forget_silent()

    def beat(self, heartbeat: Heartbeat) -> None:
        """A worker's own word. It is its last one, though the clock may have gone back since the one before."""
        now_ms = self._clock()
        worker = Worker(heartbeat.pool, heartbeat.slots, heartbeat.draining, heard_ms=now_ms, holders=())
        self._place(heartbeat.worker, worker, until_ms=now_ms + heartbeat.ttl_ms)

    def forget_silent(self) -> None:
        """Workers that were not heard for so long that their slots are not counted."""
        for name in self._expiries.up_to(self._clock()):
            self._expiries.discard(name)
            del self._workers[name]

    def last_beats(self) -> dict[str, int]:
        """When a worker that takes work was heard last, of each pool."""
        said = sorted((each.heard_ms, each.pool) for each in self._workers.values() if not each.draining)
        return {pool: at_ms for at_ms, pool in said}

    def _place(self, name: str, worker: Worker, *, until_ms: int) -> None:
        self._workers[name] = worker
        self._expiries.add(name, until_ms)

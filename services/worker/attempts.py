"""All attempts that this worker has, from their message to their end, and how they end when it is told to stop.

    SIGTERM
       │  intake takes nothing more, and hands back what was on its way
       ▼
    stop ──► the heartbeat says that we drain: nothing is planned for us
       │     first half of the grace:   attempts go on, many end
       │     second half:               who comes to the end of a stage hands over there
       │     at its end:                who still runs is broken off and hands over what was finished
       ▼
    no attempt is left (or NATS is away, and their leases decide)

Owns the table that heartbeat, watchdog and grants look into. One attempt that goes wrong in a way that was not foreseen
takes down no other: it is ended, said in the log, and left to its lease.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

from headgate_contracts import Holder
from libs.eventlog.ports import Dispatch
from libs.runtime.clock import Clock
from services.worker.attempt.run import Attempt
from services.worker.attempt.tools import Claimed, Tools
from services.worker.claiming import take
from services.worker.domain import Interruption, hands_over

logger = logging.getLogger(__name__)

LAST_WORDS_S: Final = 2.0  # after the grace, to write that they were handed over
BRIEF: Final = 10  # of the pause between two heartbeats, a tenth: an attempt that ends sooner is in none


class Attempts:
    """The attempts of one worker."""

    name = "attempts"

    def __init__(self, tools: Tools, *, drain_grace_s: float, beat_soon: Callable[[], None]) -> None:
        self._tools = tools
        self._clock: Clock = tools.clock
        self._grace_ms = round(drain_grace_s * 1000)
        self._beat_soon = beat_soon
        self._running: dict[str, Attempt] = {}
        self._some = asyncio.Event()  # are running
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining_since_ms: int | None = None
        self._over = False  # the grace
        self.stopped: dict[str, None] = {}  # ended as an operator wants their slots; said until they were given back

    def __iter__(self) -> Iterator[Attempt]:
        return iter(tuple(self._running.values()))

    @property
    def is_idle(self) -> bool:
        return not self._running

    async def until_some(self) -> None:
        """Until there is an attempt."""
        await self._some.wait()

    def find(self, holder: str) -> Attempt | None:
        return self._running.get(holder)

    def of_job(self, job_id: str) -> list[Attempt]:
        return [attempt for attempt in self if Holder.parse(attempt.holder).job == job_id]

    @property
    def draining(self) -> bool:
        return self._draining_since_ms is not None

    def serve(self, dispatch: Dispatch) -> asyncio.Task[None]:
        """Claim what was dispatched and run it, in a task that lives as long as that takes."""
        task = asyncio.create_task(self._serve(dispatch), name=f"dispatch {dispatch.record.seq}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def start(self) -> None:
        """Nothing runs before the first dispatch."""

    async def stop(self) -> None:
        """Until no attempt is left; the longest it may take is the grace and a few last words."""
        if self._draining_since_ms is None:
            self._draining_since_ms = self._clock.monotonic_ms()
            self._beat_soon()
        await self._all_within(self._grace_ms / 1000)
        self._over = True
        for attempt in self:
            attempt.interrupt(Interruption.DRAINED)
        await self._all_within(self._tools.limits.end_grace_s + LAST_WORDS_S)
        for task in tuple(self._tasks):
            task.cancel()
        await self._all_within(None)

    async def _all_within(self, within_s: float | None) -> None:
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=within_s)

    async def _serve(self, dispatch: Dispatch) -> None:
        try:
            claimed = await take(dispatch, self._tools, wanted=lambda: not self.draining)
            if claimed is not None:
                try:
                    await self._run(claimed)
                finally:
                    claimed.content.cancel()
        except Exception:
            logger.exception("an attempt was left to its lease")

    async def _run(self, claimed: Claimed) -> None:
        attempt = Attempt(claimed, self._tools, hands_over=self._hands_over, beat_soon=self._beat_soon)
        self._running[attempt.holder] = attempt
        self._some.set()
        if self._over:  # its claim was on its way into the log
            attempt.interrupt(Interruption.DRAINED)
        brief_s = self._tools.policy.leases.heartbeat_s / BRIEF
        beating = asyncio.get_running_loop().call_later(brief_s, self._beat_soon)  # its lease counts from the dispatch
        try:
            with self._tools.signals.attempt(claimed.job, cause=claimed.cause) as running:
                ended = await attempt.run()
                running.outcome = ended or running.outcome
            if ended is None and attempt.was_forced:
                self.stopped[attempt.holder] = None
                self._beat_soon()
        finally:
            beating.cancel()
            del self._running[attempt.holder]
            if not self._running:
                self._some.clear()

    def _hands_over(self) -> bool:
        since_ms = self._draining_since_ms
        return since_ms is not None and hands_over(
            draining_ms=self._clock.monotonic_ms() - since_ms, grace_ms=self._grace_ms
        )

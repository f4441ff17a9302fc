"""The slots that one attempt's stages ask for: the process says which, the schedulers say when.

    process ──acquire──► here ──────────► scheduler
                          │  waiting          │ a slot comes free
                          ◄──────granted──────┘   (or learned by asking again, as a grant may be lost)
    process ◄──granted────┘

Owns what slots are called outside: an attempt can only name providers and groups of its own project, and its leases
bear its own name. Nothing is held while it waits. What is held is named in every heartbeat, which extends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from headgate_contracts import Job
from headgate_contracts.commands import AcquireLease, LeaseReply, NamedLease
from libs.runtime.clock import Clock
from services.worker.messages import MAX_WAIT_MS, Acquire, LeaseTold
from services.worker.ports import Scheduler, Unheard

AGAIN_AFTER_MS: Final = 500  # where nobody answered
MAX_ASKS: Final = 64  # of one attempt at once; what comes beyond is no pipeline's need, and is not answered

Tell = Callable[[LeaseTold], Awaitable[None]]


@dataclass(slots=True)
class _Ask:
    """One request of the process, until it is given up."""

    wanted: Acquire
    groups: tuple[str, ...]
    granted: asyncio.Event
    task: asyncio.Task[None] | None = None
    held: bool = False


class StageSlots:
    """Those of one attempt."""

    def __init__(self, job: Job, *, scheduler: Scheduler, clock: Clock, again_ms: int, tell: Tell) -> None:
        self._job = job
        self._holder = f"{job.id}:{job.attempt}"
        self._scheduler = scheduler
        self._clock = clock
        self._again_ms = again_ms  # a grant that was lost is found by asking again
        self._tell = tell
        self._asks: dict[str, _Ask] = {}
        self._telling: set[asyncio.Task[None]] = set()

    @property
    def named(self) -> tuple[NamedLease, ...]:
        """What is held, for the next heartbeat."""
        held = ((lease, ask) for lease, ask in self._asks.items() if ask.held)
        return tuple(NamedLease(lease=lease, holder=self._holder, groups=ask.groups) for lease, ask in held)

    def ask(self, wanted: Acquire) -> None:
        """Ask for slots. The process is told when it is decided."""
        lease = self._lease(wanted.lease)
        if lease not in self._asks and len(self._asks) < MAX_ASKS:
            ask = self._asks[lease] = _Ask(wanted, self._groups(wanted), asyncio.Event())
            ask.task = asyncio.create_task(self._settle(lease, ask), name=f"lease {lease}")

    def give_up(self, number: int) -> None:
        """The process needs them no more. Nobody waits until that was heard."""
        lease = self._lease(number)
        ask = self._asks.pop(lease, None)
        if ask is not None:
            _cancel(ask)
            telling = asyncio.create_task(self._scheduler.give_up(lease), name=f"give up {lease}")
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    def granted(self, lease: str) -> bool:
        """A waiter's turn has come; false where it is not ours."""
        ask = self._asks.get(lease)
        if ask is not None:
            ask.granted.set()
        return ask is not None

    async def lost(self, lease: str) -> None:
        """The slots were taken away."""
        ask = self._asks.pop(lease, None)
        if ask is not None:
            _cancel(ask)
            await self._tell(LeaseTold(lease=ask.wanted.lease, state="lost"))

    def close(self) -> None:
        """The attempt is over. What it held or waited for goes with it in the view, by the log."""
        for ask in self._asks.values():
            _cancel(ask)
        self._asks.clear()

    async def _settle(self, lease: str, ask: _Ask) -> None:
        """Ask until there is an answer that counts, or until the time to wait is over."""
        wait_ms = MAX_WAIT_MS if ask.wanted.wait_ms is None else ask.wanted.wait_ms
        give_up_at_ms = self._clock.monotonic_ms() + wait_ms
        while True:
            left_ms = give_up_at_ms - self._clock.monotonic_ms()
            answer = await self._scheduler.acquire(self._command(lease, ask, wait_ms=max(0, left_ms)))
            match answer:
                case LeaseReply(state="granted"):
                    ask.held = True
                    await self._tell(LeaseTold(lease=ask.wanted.lease, state="granted"))
                    return
                case LeaseReply(state="full"):
                    pause_ms = 0
                case LeaseReply(state="waiting"):
                    pause_ms = min(self._again_ms, left_ms)
                case LeaseReply() | Unheard():  # the view is lost, or the attempt is over: a heartbeat will say so
                    pause_ms = min(AGAIN_AFTER_MS, left_ms)
            if pause_ms <= 0:
                await self._refuse(lease, ask)
                return
            await self._turn_or(pause_ms, ask.granted)

    async def _refuse(self, lease: str, ask: _Ask) -> None:
        del self._asks[lease]
        await self._scheduler.give_up(lease)  # it may wait there, or have been granted in this very moment
        await self._tell(LeaseTold(lease=ask.wanted.lease, state="full"))

    async def _turn_or(self, pause_ms: int, granted: asyncio.Event) -> None:
        """Until the turn has come, or for this long."""
        turn = asyncio.create_task(granted.wait())
        pause = asyncio.create_task(self._clock.sleep_ms(pause_ms))
        try:
            await asyncio.wait([turn, pause], return_when=asyncio.FIRST_COMPLETED)
        finally:
            turn.cancel()
            pause.cancel()

    def _command(self, lease: str, ask: _Ask, *, wait_ms: int) -> AcquireLease:
        return AcquireLease(
            lease=lease, groups=ask.groups, holder=self._holder, ttl_ms=ask.wanted.ttl_ms, wait_ms=wait_ms
        )

    def _lease(self, number: int) -> str:
        return f"{self._job.id}-{self._job.attempt}-{number}"

    def _groups(self, wanted: Acquire) -> tuple[str, ...]:
        providers = tuple(f"llm:{name}" for name in wanted.providers)
        total = ("llm:global",) if providers else ()
        named = tuple(f"group:{self._job.project_id}:{name}" for name in wanted.groups)
        return tuple(dict.fromkeys((*providers, *total, *named)))


def _cancel(ask: _Ask) -> None:
    if ask.task is not None and not ask.task.done():
        ask.task.cancel()

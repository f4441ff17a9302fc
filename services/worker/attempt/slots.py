"""The slots that one attempt's stages ask for: the process says which, the schedulers say when.

    process ──acquire──► here ──────────► scheduler
                          │  waiting          │ a slot comes free
                          ◄──────granted──────┘   (or learned by asking again, as a grant may be lost)
    process ◄──granted────┘

Owns what slots are called outside: an attempt can only name providers, groups of its own project and the stage that
runs, and its leases bear its own name. Nothing is held while it waits. What is held is named in every heartbeat, which
extends it.

    process ──shut──► here ──ShutProvider──► scheduler        a provider had enough: no stage is let through meanwhile
                       └─ slot given up, and a stage that asks again waits; where that takes long, its attempt is told
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from headgate_contracts import Holder, Job
from headgate_contracts.commands import AcquireLease, LeaseReply, NamedLease, ShutProvider
from libs.policy import Policy
from libs.runtime.clock import Clock, sleep_or
from libs.runtime.spans import Attributes, step
from services.worker.child.messages import MAX_WAIT_MS, Acquire, LeaseNotice, Shut
from services.worker.ports import Scheduler, Unheard

AGAIN_AFTER_MS: Final = 500  # where no scheduler answered
SHORTEST_PAUSE_MS: Final = 500  # a provider that says "again at once" to each call is not to be asked without end
JITTER: Final = 0.1  # of a pause, so that not all come back in one moment
MAX_ASKS: Final = 64  # of one attempt at once; what comes beyond is no pipeline's need, and is not answered

OTHER: Final = "other"

TellLease = Callable[[LeaseNotice], Awaitable[None]]


@dataclass(slots=True)
class _Ask:
    """One request of the process, until it is given up."""

    wanted: Acquire
    groups: tuple[str, ...]
    granted: asyncio.Event
    task: asyncio.Task[None] | None = None
    held: bool = False
    waited: bool = False  # and was told so


class StageSlots:
    """The slots that the stages of one attempt hold or wait for."""

    def __init__(
        self,
        job: Job,
        *,
        scheduler: Scheduler,
        clock: Clock,
        tell: TellLease,
        policy: Policy,
        pauses: Callable[[str], None],
    ) -> None:
        self._job = job
        self._providers = policy.providers
        self._pauses = pauses  # a provider for longer than a job is to wait with all that it holds
        self._holder = Holder(job.id, job.attempt)
        self._scheduler = scheduler
        self._clock = clock
        self._again_ms = round(policy.leases.heartbeat_s * 1000)  # a grant that was lost is found by asking again
        self._tell = tell
        self._asks: dict[str, _Ask] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._shutting: set[asyncio.Task[None]] = set()
        self._held_until_told: set[str] = set()  # by what is being shut

    @property
    def named(self) -> tuple[NamedLease, ...]:
        """What is held, for the next heartbeat."""
        held = ((lease, ask) for lease, ask in self._asks.items() if ask.held)
        return tuple(NamedLease(lease=lease, holder=str(self._holder), groups=ask.groups) for lease, ask in held)

    def ask(self, wanted: Acquire, stage: str) -> None:
        """Ask for slots. The process is told when it is decided."""
        lease = self._lease(wanted.lease)
        if lease not in self._asks and len(self._asks) < MAX_ASKS:
            ask = self._asks[lease] = _Ask(wanted, self._groups(wanted, stage), asyncio.Event())
            ask.task = asyncio.create_task(self._settle(lease, ask), name=f"lease {lease}")

    def give_up(self, number: int) -> None:
        """The process needs them no more. It is not waited for that this was heard."""
        lease = self._lease(number)
        ask = self._asks.pop(lease, None)
        if ask is not None:
            _cancel(ask)
            _begin(self._scheduler.give_up(lease), f"give up {lease}", self._telling)

    def shut(self, told: Shut) -> None:
        """A provider, whose slot is held by this lease, had enough. The lease goes only when all have been told, so
        that no other stage steps into the gap; whatever is asked for next waits for that too."""
        lease = self._lease(told.lease)
        ask = self._asks.pop(lease, None)
        if ask is not None and ask.held and told.provider in ask.wanted.providers:
            self._held_until_told.add(lease)
            pause_ms = self._providers.pause_s * 1000 if told.for_ms is None else told.for_ms
            for_ms = round(max(pause_ms, SHORTEST_PAUSE_MS) * random.uniform(1, 1 + JITTER))
            _begin(self._shut(lease, told.provider, for_ms), f"shut {told.provider}", self._shutting)

    def granted(self, lease: str) -> bool:
        """A waiter's turn has come; false where it is not ours. One that nobody wants any more is given up: a scheduler
        that was stopped for long hears old requests when it goes on, and then their waiters stand in line."""
        ask = self._asks.get(lease)
        if ask is not None:
            ask.granted.set()
        elif lease.startswith(f"{self._holder.token}-") and lease not in self._held_until_told:
            _begin(self._scheduler.give_up(lease), f"give up {lease}", self._telling)
        return ask is not None

    async def lost(self, lease: str) -> None:
        """The slots were taken away."""
        ask = self._asks.pop(lease, None)
        if ask is not None:
            _cancel(ask)
            await self._tell(LeaseNotice(lease=ask.wanted.lease, state="lost"))

    def close(self) -> None:
        """The attempt is over. What it held or waited for goes with it in the view, by the log."""
        for ask in self._asks.values():
            _cancel(ask)
        self._asks.clear()
        for shutting in self._shutting:
            shutting.cancel()

    async def _shut(self, lease: str, provider: str, for_ms: int) -> None:
        pause = ShutProvider(provider=provider, for_ms=for_ms)
        while isinstance(await self._scheduler.shut(pause), Unheard):
            await self._clock.sleep_ms(AGAIN_AFTER_MS)
        self._held_until_told.discard(lease)
        await self._scheduler.give_up(lease)
        self._paused(provider, for_ms)

    def _paused(self, provider: str, for_ms: int) -> None:
        if for_ms > self._providers.give_back_after_s * 1000:
            self._pauses(provider)

    async def _settle(self, lease: str, ask: _Ask) -> None:
        """Ask until there is an answer that counts, or until the time to wait is over."""
        with step("wait for slots", self._shown(ask.wanted)) as span:
            await self._ask_on(lease, ask)
            span.set_attribute("headgate.outcome", "granted" if ask.held else "full")

    def _shown(self, wanted: Acquire) -> Attributes:
        """What it asks for, by names of policy alone: those of groups are a tenant's."""
        known = self._providers.limits
        providers = sorted({name if name in known else OTHER for name in wanted.providers})
        return {"headgate.providers": providers, "headgate.groups": len(wanted.groups)}

    async def _ask_on(self, lease: str, ask: _Ask) -> None:
        if self._shutting:
            await asyncio.wait(tuple(self._shutting))
        wait_ms = MAX_WAIT_MS if ask.wanted.wait_ms is None else ask.wanted.wait_ms
        give_up_at_ms = self._clock.monotonic_ms() + wait_ms
        while True:
            left_ms = give_up_at_ms - self._clock.monotonic_ms()
            ask.granted.clear()  # a turn that comes from here on is seen after the answer
            answer = await self._scheduler.acquire(self._command(lease, ask, wait_ms=max(0, left_ms)))
            self._look_at_pause(ask, answer)
            match answer:
                case LeaseReply(state="granted"):
                    ask.held = True
                    await self._tell(LeaseNotice(lease=ask.wanted.lease, state="granted"))
                    return
                case LeaseReply(state="full" | "refused"):
                    pause_ms = 0
                case LeaseReply(state="waiting"):
                    ask.waited = True
                    pause_ms = min(self._again_ms, left_ms)
                case LeaseReply() | Unheard():  # the view is lost, or the attempt is over: a heartbeat will say so
                    pause_ms = min(AGAIN_AFTER_MS, left_ms)
            if pause_ms <= 0:
                await self._refuse(lease, ask)
                return
            await sleep_or(ask.granted, pause_ms, clock=self._clock)

    def _look_at_pause(self, ask: _Ask, answer: LeaseReply | Unheard) -> None:
        """Somebody else may have shut the provider. Who will not wait anyway learns it from the answer."""
        if isinstance(answer, LeaseReply) and answer.shut_ms and answer.group and ask.wanted.wait_ms != 0:
            kind, _, provider = answer.group.partition(":")
            if kind == "llm":
                self._paused(provider, answer.shut_ms)

    async def _refuse(self, lease: str, ask: _Ask) -> None:
        del self._asks[lease]
        await self._scheduler.give_up(lease)  # it may wait there, or have been granted in this very moment
        await self._tell(LeaseNotice(lease=ask.wanted.lease, state="full"))

    def _command(self, lease: str, ask: _Ask, *, wait_ms: int) -> AcquireLease:
        return AcquireLease(
            lease=lease,
            groups=ask.groups,
            holder=str(self._holder),
            ttl_ms=ask.wanted.ttl_ms,
            wait_ms=wait_ms,
            waited=ask.waited,
        )

    def _lease(self, number: int) -> str:
        return self._holder.stage_lease(number)

    def _groups(self, wanted: Acquire, stage: str) -> tuple[str, ...]:
        """`stage:<pipeline>:<stage>:<n>` has n slots by its name: there is no number to keep, none to forget, and one
        that its author has changed counts at once."""
        limit, pipeline = wanted.stage_limit, self._job.submission.pipeline
        room = () if limit is None else (f"stage:{pipeline}:{stage}:{limit}",)
        providers = tuple(f"llm:{name}" for name in wanted.providers)
        total = ("llm:global",) if providers else ()
        named = tuple(f"group:{self._job.project_scope}:{name}" for name in wanted.groups)
        return tuple(dict.fromkeys((*room, *providers, *total, *named)))


def _begin(work: Coroutine[Any, Any, None], name: str, kept: set[asyncio.Task[None]]) -> None:
    """A task whose end is not waited for."""
    task = asyncio.create_task(work, name=name)
    kept.add(task)
    task.add_done_callback(kept.discard)


def _cancel(ask: _Ask) -> None:
    if ask.task is not None and not ask.task.done():
        ask.task.cancel()

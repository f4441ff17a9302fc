"""Slots that applications hold, outside any job: taken, waited for, extended, given back.

A scheduler answers who holds what; here is who waits at this replica, and what the log has to know first.

    take ─► the log names the group, the view has folded that ─► a slot is free: held
                                                              └► full: in line, until its turn, the time is over, or
                                                                 its asker has gone

A turn is told on the lease's own subject and found by asking again where that was lost. It is granted for a moment only
(HANDING_OVER_MS): the request that waits here takes it over for as long as was wanted, and a slot for somebody who is
gone, or whose replica was killed, is free again after that moment.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from headgate_contracts.commands import AcquireLease, GiveUpLease, LeaseReply
from headgate_contracts.events import GroupLeased
from libs.capacity.answers import GroupStatus
from libs.capacity.errors import ViewLost
from libs.capacity.ports import ViewReadings
from libs.runtime.clock import Clock, sleep_or
from services.admission.acts import Acts
from services.admission.changing import ChangeRate
from services.admission.keeping_up import has_folded
from services.admission.ports import Schedulers

HANDING_OVER_MS: Final = 10_000
ASK_AGAIN_MS: Final = 2_000  # a turn that was not heard is found by then
AWAY_AGAIN_MS: Final = 500
SAY_AGAIN_MS: Final = 12 * 3_600_000  # the fold forgets a group after a day
LIMIT_AGAIN_MS: Final = 60_000  # of two who want other limits none writes more often than that
MOST_GROUPS: Final = 10_000
NAMED_COST_MS: Final = 2_000  # thirty groups a minute, of one user


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseWanted:
    """A slot, for whom and for how long. `held_until_ms`: it is to be extended; what its holder was told last, or 0."""

    lease: str
    group: str
    user: str
    ttl_ms: int
    limit: int | None = None
    wait_ms: int = 0
    held_until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """It is held until then."""

    expires_ms: int


@dataclass(frozen=True, slots=True)
class NoneFree:
    """Every slot is taken, still."""

    status: GroupStatus


@dataclass(frozen=True, slots=True)
class NotTheirs:
    """There is no such lease, or it is another's or another group's."""


@dataclass(frozen=True, slots=True)
class TooManyGroups:
    """The user has named too many that are new."""

    retry_ms: int


@dataclass(frozen=True, slots=True)
class TooManyLeases:
    """The user holds or waits for so many, as many as one user may."""

    held: int


LeaseRefused = NotTheirs | TooManyGroups | TooManyLeases


@dataclass(slots=True)
class WaitingHere:
    """Who waits at this replica. Two may wait for one lease: its asker has sent it again."""

    _waiting: dict[str, set[asyncio.Event]] = field(default_factory=dict[str, set[asyncio.Event]])

    @contextmanager
    def of(self, lease: str) -> Iterator[asyncio.Event]:
        turn = asyncio.Event()
        self._waiting.setdefault(lease, set()).add(turn)
        try:
            yield turn
        finally:
            self._waiting[lease].discard(turn)
            if not self._waiting[lease]:
                del self._waiting[lease]

    def come(self, lease: str) -> None:
        for turn in self._waiting.get(lease, ()):
            turn.set()


@dataclass(slots=True)
class NamedGroups:
    """What this replica has said in the log. A new view opens with all of these shut, so it is said before the first
    lease, and the view has folded it by then."""

    view: ViewReadings
    acts: Acts
    clock: Clock
    rate: ChangeRate = field(default_factory=ChangeRate)
    _said: dict[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])

    async def name(self, group: str, limit: int | None, *, by: str) -> TooManyGroups | None:
        now_ms = self.clock.monotonic_ms()
        if self._is_known(group, limit, now_ms):
            return None
        retry_ms = self.rate.spend(by, NAMED_COST_MS, now_ms=now_ms)
        if retry_ms:
            return TooManyGroups(retry_ms)
        seq = await self.acts.write(GroupLeased(by=by, group=group, limit=limit))
        if not await has_folded(self.view, seq, clock=self.clock):
            raise ViewLost("the view has not folded yet that slots of this group are held outside jobs")
        while len(self._said) >= MOST_GROUPS:
            del self._said[next(iter(self._said))]
        self._said[group] = (now_ms, limit)
        return None

    def _is_known(self, group: str, limit: int | None, now_ms: int) -> bool:
        said_ms, said_limit = self._said.get(group, (-SAY_AGAIN_MS, None))
        kept_ms = SAY_AGAIN_MS if limit in (None, said_limit) else LIMIT_AGAIN_MS
        return now_ms - said_ms < kept_ms


@dataclass(frozen=True, slots=True)
class Leasing:
    """The use cases, with what they need. `leaving`: this replica stops, and nobody is to wait here any more."""

    view: ViewReadings
    schedulers: Schedulers
    groups: NamedGroups
    turns: WaitingHere
    clock: Clock
    leaving: asyncio.Event

    async def take(self, wanted: LeaseWanted) -> Held | NoneFree | LeaseRefused:
        """At once, or when its turn comes within the time to wait."""
        refused = await self.groups.name(wanted.group, wanted.limit, by=wanted.user)
        if refused is not None:
            return refused
        reply = await self._ask(wanted, ttl_ms=wanted.ttl_ms)
        if reply.held is None and reply.state in ("full", "waiting", "view_lost") and wanted.wait_ms:
            reply = await self._wait(wanted)
        return await self._outcome(wanted, reply)

    async def extend(self, wanted: LeaseWanted) -> Held | LeaseRefused:
        """What is held goes on; what is not is never taken anew."""
        refused = await self.groups.name(wanted.group, wanted.limit, by=wanted.user)
        if refused is not None:
            return refused
        outcome = await self._outcome(wanted, await self._ask(wanted, ttl_ms=wanted.ttl_ms))
        return NotTheirs() if isinstance(outcome, NoneFree) else outcome

    async def give_back(self, lease: str, *, user: str) -> None:
        """The next in line gets it now. What is not there, or is another's, is left as it is."""
        reply = await self.schedulers.give_up(GiveUpLease(lease=lease, user=user))
        if reply is None or reply.state == "view_lost":
            raise ViewLost("nobody could be told that the lease is given back")

    async def _wait(self, wanted: LeaseWanted) -> LeaseReply:
        until_ms = self.clock.monotonic_ms() + wanted.wait_ms
        with self.turns.of(wanted.lease) as turn:
            try:
                while True:
                    turn.clear()
                    left_ms = 0 if self.leaving.is_set() else max(0, until_ms - self.clock.monotonic_ms())
                    reply = await self._ask(wanted, ttl_ms=HANDING_OVER_MS, wait_ms=left_ms)
                    if reply.state == "granted":
                        return await self._ask(wanted, ttl_ms=wanted.ttl_ms)
                    if left_ms == 0 or reply.state not in ("waiting", "view_lost"):
                        return reply
                    again_ms = ASK_AGAIN_MS if reply.state == "waiting" else AWAY_AGAIN_MS
                    await sleep_or(turn, min(left_ms, again_ms), clock=self.clock)
            finally:
                await self._stop_waiting(wanted)

    async def _stop_waiting(self, wanted: LeaseWanted) -> None:
        """The wait alone: the lease may be held by now, through another replica too. Also where we are cancelled."""
        over = GiveUpLease(lease=wanted.lease, user=wanted.user, wait_only=True)
        await asyncio.shield(asyncio.ensure_future(self.schedulers.give_up(over)))

    async def _ask(self, wanted: LeaseWanted, *, ttl_ms: int, wait_ms: int = 0) -> LeaseReply:
        command = AcquireLease(
            lease=wanted.lease,
            groups=(wanted.group,),
            user=wanted.user,
            ttl_ms=min(ttl_ms, wanted.ttl_ms),
            wait_ms=wait_ms,
            held_until_ms=wanted.held_until_ms,
        )
        reply = await self.schedulers.acquire(command)
        return LeaseReply(lease=wanted.lease, state="view_lost") if reply is None else reply

    async def _outcome(self, wanted: LeaseWanted, reply: LeaseReply) -> Held | NoneFree | LeaseRefused:
        if reply.state == "granted" and reply.expires_ms is not None:
            return Held(reply.expires_ms)
        if reply.state == "not_yours":
            return NotTheirs()
        if reply.held is not None:
            return TooManyLeases(reply.held)
        if reply.state in ("full", "waiting"):
            return NoneFree(await self.view.group(wanted.group))
        raise ViewLost("no scheduler could say who holds the slots")

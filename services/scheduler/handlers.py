"""What workers ask for: to be heard, slots for a stage, slots no longer needed, a pause of a provider that has had
enough; and what the notifier asks for a page that opens a stream. Every replica answers, from the view; and of what
one of them answers all keep what they plan by.

The view is folded by the leader alone, a moment after an event, and it can be lost. So where it does not know an
attempt, a worker is told to stop only by the second opinion of `opinions`.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from headgate_contracts import Holder
from headgate_contracts.commands import (
    AcquireLease,
    Beat,
    BeatReply,
    GiveUpLease,
    LeaseReply,
    NamedLease,
    ProviderShut,
    RedeemTicket,
    ShutProvider,
    TicketRedeemed,
    granted_subject,
)
from headgate_contracts.envelope import utc
from libs.capacity import answers
from libs.capacity.answers import (
    Full,
    Granted,
    Heartbeat,
    HeldLease,
    LeaseRequest,
    LeasesFull,
    NotYours,
    WaitsInLine,
)
from libs.capacity.engine import Engine
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ledger import Ledger
from libs.capacity.ports import View
from libs.capacity.projection import epoch_ms, is_inner
from libs.eventlog.ports import EventLog
from libs.policy import Policy
from services.scheduler.domain import shut_until_ms
from services.scheduler.labels import LLM
from services.scheduler.opinions import Opinion, opinion_of, opinions_of
from services.scheduler.ports import Commands
from services.scheduler.signals import Signals

logger = logging.getLogger(__name__)

AWAY: Final = (ViewLost, ViewUnavailable, TimeoutError)
ANSWER_WITHIN_S: Final = 1.0  # a store that is silent must not make us silent too


@dataclass(frozen=True, slots=True)
class Granting:
    """How a waiter hears of its turn. The address that the view keeps for it says also since when it waits for what."""

    commands: Commands
    signals: Signals
    shard: str

    def address(self, command: AcquireLease, *, now: datetime) -> str:
        subject = granted_subject(self.shard, command.lease)
        return f"{subject} {round(now.timestamp() * 1000)} {','.join(command.groups)}"

    async def send(self, grants: Sequence[answers.Grant], *, now: datetime) -> None:
        for grant in grants:
            subject, since_ms, groups = grant.reply.split(" ")
            reply = LeaseReply(lease=grant.lease, state="granted", expires_ms=grant.expires_ms)
            await self.commands.send(subject, reply)
            self.signals.acquired(groups.split(","), waited_s=(now - utc(int(since_ms))).total_seconds())

    async def stop(self, holders: Iterable[str]) -> None:
        """An operator wants slots of these attempts: their workers end them, and say so."""
        for holder in holders:
            reply = LeaseReply(lease=Holder.parse(holder).token, state="not_yours")
            await self.commands.send(granted_subject(self.shard, reply.lease), reply)


@dataclass(frozen=True, slots=True)
class Handlers:
    """What one replica answers. `stopped`: attempts that their workers have ended, as somebody wanted the slots."""

    view: View
    ledger: Ledger
    log: EventLog
    granting: Granting
    engine: Engine
    stopped: set[str]
    now: Callable[[], datetime]

    def note_heartbeat(self, command: Beat) -> None:
        """What this replica keeps of a heartbeat, whichever replica answers it."""
        self.engine.staff.beat(_heartbeat(command, (), self.ledger.policy))
        self.stopped.update(command.stopped)
        over = [holder for holder in self.stopped if opinion_of(self.ledger, holder) in (None, Opinion.OVER)]
        self.stopped.difference_update(over)

    def note_pause(self, command: ShutProvider) -> None:
        """The same of a provider's pause."""
        self.engine.pause(f"{LLM}{command.provider}", shut_until_ms(command.for_ms, now=self.now()))

    async def heartbeat(self, command: Beat) -> BeatReply:
        """The worker lives: its leases are extended, and it hears what became of each of its attempts."""
        leases = tuple(each for each in command.leases if all(map(is_inner, each.groups)))
        said = await self._beat(_heartbeat(command, leases, self.ledger.policy))
        opinions = await opinions_of(self.ledger, said.not_yours, log=self.log)
        ended = await opinions_of(self.ledger, command.stopped, log=self.log)
        return BeatReply(
            kept=(*said.kept, *_those(opinions, Opinion.RUNS)),
            cancel=(*said.cancel, *_those(opinions, Opinion.ENDS)),
            not_yours=(*_those(opinions, Opinion.OVER), *_those(ended, Opinion.OVER)),
            lost_leases=(*said.lost_leases, *(each.lease for each in command.leases if each not in leases)),
            lease_s=self.ledger.policy.leases.job_s,
        )

    async def acquire(self, command: AcquireLease) -> LeaseReply:
        """Slots of all the groups at once, or none of them and, where it is wanted, a place among those who wait.
        Refused where a slot is a whole job's: who may start is planned by the log, which does not tell of leases."""
        of_jobs = next((group for group in command.groups if not is_inner(group)), None)
        if of_jobs is not None:
            return LeaseReply(lease=command.lease, state="refused", group=of_jobs)
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                answer = await self.view.acquire(self._request(command))
        except AWAY:
            return LeaseReply(lease=command.lease, state="view_lost")
        self.granting.signals.asked(command, answer)
        return await self._told(answer, command.lease)

    async def give_up(self, command: GiveUpLease) -> LeaseReply:
        """The lease, or the wait for it, is over: the waiter behind it goes on."""
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                grants = await self.view.give_up(command.lease, user=command.user, wait_only=command.wait_only)
        except AWAY:
            return LeaseReply(lease=command.lease, state="view_lost")
        self.engine.unlearn()  # a job may wait for that slot
        await self.granting.send(grants, now=self.now())
        return LeaseReply(lease=command.lease, state="given_up")

    async def redeem(self, command: RedeemTicket) -> TicketRedeemed:
        """Whose ticket it is, once. Where that cannot be said now it has no owner: the page asks for another."""
        digest = hashlib.sha256(command.ticket.encode()).hexdigest()
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                text = await self.view.take_ticket(digest)
        except AWAY:
            return TicketRedeemed()
        return TicketRedeemed() if text is None else TicketRedeemed.model_validate_json(text)

    async def shut(self, command: ShutProvider) -> ProviderShut:
        """No stage gets a slot of the provider until then, here and in every other worker."""
        until_ms = shut_until_ms(command.for_ms, now=self.now())
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                grants = await self.view.shut(f"{LLM}{command.provider}", until_ms)
        except AWAY:
            return ProviderShut(provider=command.provider)
        await self.granting.send(grants, now=self.now())
        return ProviderShut(provider=command.provider, until=utc(until_ms))

    async def _beat(self, heartbeat: Heartbeat) -> answers.HeartbeatAnswer:
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                said = await self.view.beat(heartbeat)
        except AWAY as away:
            logger.debug("heartbeat of %s answered without the view: %s", heartbeat.worker, away)
            return answers.HeartbeatAnswer((), (), heartbeat.holders)
        self.engine.unlearn()  # it may hold less
        await self.granting.send(said.grants, now=self.now())
        return said

    def _request(self, command: AcquireLease) -> LeaseRequest:
        return LeaseRequest(
            lease=command.lease,
            groups=command.groups,
            owner=command.holder,
            ttl_ms=command.ttl_ms or _ttl_ms(command, self.ledger.policy),
            wait_ms=command.wait_ms,
            reply=self.granting.address(command, now=self.now()),
            user=command.user,
            held_until_ms=command.held_until_ms,
            most=self.ledger.policy.concurrency.leases_per_user if command.holder is None else None,
        )

    async def _told(self, answer: answers.LeaseAnswer, lease: str) -> LeaseReply:
        match answer:
            case Granted(expires_ms=expires_ms):
                return LeaseReply(lease=lease, state="granted", expires_ms=expires_ms)
            case WaitsInLine(group=group, behind=behind):
                shut_ms = _still_shut_ms(answer, self.now())
                return LeaseReply(lease=lease, state="waiting", group=group, behind=behind, shut_ms=shut_ms)
            case Full(group):
                return LeaseReply(lease=lease, state="full", group=group, shut_ms=_still_shut_ms(answer, self.now()))
            case LeasesFull(held):
                return LeaseReply(lease=lease, state="full", held=held)
            case NotYours(owner):
                if owner is None:
                    return LeaseReply(lease=lease, state="not_yours")
                opinions = await opinions_of(self.ledger, (owner,), log=self.log)
                over = opinions[owner] is Opinion.OVER
                return LeaseReply(lease=lease, state="not_yours" if over else "view_lost")


def _still_shut_ms(answer: WaitsInLine | Full, now: datetime) -> int | None:
    return None if answer.until_ms is None else max(0, answer.until_ms - epoch_ms(now))


def _heartbeat(command: Beat, leases: Sequence[NamedLease], policy: Policy) -> Heartbeat:
    return Heartbeat(
        worker=command.worker,
        pool=command.pool,
        slots=command.slots,
        draining=command.draining,
        holders=command.holders,
        leases=tuple(HeldLease(each.lease, each.holder, each.groups) for each in leases),
        ttl_ms=round(policy.leases.job_s * 1000),
    )


def _ttl_ms(command: AcquireLease, policy: Policy) -> int:
    inside, outside = policy.leases.job_s, policy.concurrency.default_lease_duration_secs
    return round((outside if command.holder is None else inside) * 1000)


def _those(opinions: dict[str, Opinion], wanted: Opinion) -> tuple[str, ...]:
    return tuple(holder for holder, opinion in opinions.items() if opinion is wanted)

"""The NATS edge of the scheduler: commands come in, are parsed, answered by a handler, and timed.

One connection for all of it, apart from the log's, so that a commit that is being settled never delays a heartbeat. All
replicas are one queue group: each command is answered by one of them. Heartbeats and pauses of providers are heard by
all of them beside that, as any may have to plan by them, also where the view is away; and so is who is watched.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from faststream.nats import NatsBroker

from headgate_contracts.commands import (
    AcquireLease,
    AskPosition,
    Beat,
    BeatReply,
    Command,
    GiveUpLease,
    LeaseReply,
    PositionChanged,
    ProviderShut,
    RedeemTicket,
    ShutProvider,
    TicketRedeemed,
    Watching,
    command_subject,
    position_subject,
    watching_subject,
)
from libs.eventlog.api import state_of
from libs.eventlog.errors import LogUnavailable
from libs.eventlog.streams import JOBS
from libs.foundation.live import AWAY
from services.scheduler.ports import Adapters
from services.scheduler.positions import Announcer, TellPosition, position_of
from services.scheduler.replica import Replica

logger = logging.getLogger(__name__)

GROUP: Final = "scheduler"
AT_ONCE: Final = 64  # one that waits for the view must not hold up the others
TEMPLATE: Final = "headgate.cmd.v1.{shard}"


class NatsCommands:
    """What the scheduler says by itself over that connection."""

    def __init__(self, broker: NatsBroker, *, shard: str) -> None:
        self._broker = broker
        self._shard = shard

    async def answers(self) -> bool:
        """Whether the server answers on it: then workers' commands arrive too. A question and no ping: the reader of
        nats-py's connection ends for good where the answer to a ping comes after its asker gave up."""
        try:
            await state_of(self._broker.connection, JOBS)
        except (LogUnavailable, *AWAY):  # not connected yet, as it starts
            return False
        return True

    async def send(self, address: str, reply: LeaseReply) -> None:
        try:
            await self._broker.publish(reply, address)
        except AWAY as fault:
            logger.warning("lease %s is granted, and its waiter was not told: %s", reply.lease, fault)

    async def show(self, user: str, moved: PositionChanged) -> None:
        """Tell the notifiers that listen; a lost one is not missed for long."""
        with suppress(*AWAY):
            await self._broker.publish(moved, position_subject(self._shard, user, moved.job_id))


def subscribe(broker: NatsBroker, replica: Replica, adapters: Adapters, *, show: TellPosition, shard: str) -> Announcer:
    """Commands are taken from when the broker starts. GIVES who tells positions by `show`; its loop is the caller's."""
    ledger, view, clock = replica.ledger, adapters.view, adapters.clock
    announcer = Announcer(ledger, view, ledger.policy, clock, replica.leader, show)
    Subscribers(broker, replica, adapters, shard=shard, positions=announcer).subscribe()
    return announcer


class Subscribers:
    """Commands to handlers, and who is watched to `positions`, which is stirred where a command may have changed how
    jobs stand."""

    def __init__(
        self, broker: NatsBroker, replica: Replica, adapters: Adapters, *, shard: str, positions: Announcer
    ) -> None:
        self._broker = broker
        self._positions = positions
        self._clock = adapters.clock
        self._replica = replica
        self._view = adapters.view
        self._shard = shard
        self._telemetry = adapters.telemetry
        self._times = adapters.telemetry.meter.create_histogram(
            "headgate_scheduler_command_seconds", description="from a command to its answer, by command"
        )

    def subscribe(self) -> None:
        self._on("beat", self._beat)
        self._on("acquire", self._acquire)
        self._on("give_up", self._give_up)
        self._on("position", self._position)
        self._on("shut", self._shut)
        self._on("redeem", self._redeem)
        self._all_on(command_subject(self._shard, "beat"), self._note_heartbeat)
        self._all_on(command_subject(self._shard, "shut"), self._note_pause)
        self._all_on(watching_subject(self._shard), self._watched)

    def _on(self, command: Command, answer: Callable[..., object]) -> None:
        subject = command_subject(self._shard, command)
        self._broker.subscriber(subject, GROUP, max_workers=AT_ONCE)(answer)

    def _all_on(self, subject: str, hear: Callable[..., object]) -> None:
        self._broker.subscriber(subject, no_reply=True)(hear)

    async def _note_heartbeat(self, command: Beat) -> None:
        self._replica.handlers.note_heartbeat(command)
        self._replica.woken.set()  # a worker may have come, or have more slots

    async def _note_pause(self, command: ShutProvider) -> None:
        self._replica.handlers.note_pause(command)

    async def _watched(self, said: Watching) -> None:
        self._positions.watch(said)

    async def _beat(self, command: Beat) -> BeatReply:
        async with self._timed("beat"):
            reply = await self._replica.handlers.heartbeat(command)
        self._replica.woken.set()  # it may hold less
        self._positions.stir()
        return reply

    async def _acquire(self, command: AcquireLease) -> LeaseReply:
        async with self._timed("acquire"):
            return await self._replica.handlers.acquire(command)

    async def _give_up(self, command: GiveUpLease) -> LeaseReply:
        async with self._timed("give_up"):
            reply = await self._replica.handlers.give_up(command)
        self._replica.woken.set()  # a job may wait for that slot
        self._positions.stir()
        return reply

    async def _shut(self, command: ShutProvider) -> ProviderShut:
        async with self._timed("shut"):
            reply = await self._replica.handlers.shut(command)
        self._positions.stir()
        return reply

    async def _redeem(self, command: RedeemTicket) -> TicketRedeemed:
        async with self._timed("redeem"):
            return await self._replica.handlers.redeem(command)

    async def _position(self, command: AskPosition) -> PositionChanged:
        async with self._timed("position"):
            job = self._replica.ledger.jobs.get(command.job_id)
            if job is None:
                return PositionChanged(job_id=command.job_id, queue=None)
            return await position_of(job, view=self._view, policy=self._replica.ledger.policy, clock=self._clock)

    @asynccontextmanager
    async def _timed(self, command: Command) -> AsyncIterator[None]:
        began_s = time.perf_counter()
        with self._telemetry.message_span("process", f"{TEMPLATE}.{command}"):
            try:
                yield
            finally:
                self._times.record(time.perf_counter() - began_s, {"command": command})

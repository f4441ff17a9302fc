"""The NATS edge of a worker: what it is told without having asked, and over the same connection what it asks
schedulers and where lines go.

The log of jobs has another connection, so that an append that takes long delays no heartbeat. Nothing is sent late:
while there is no connection a question is answered at once with "nobody".

Handlers are short, so they are FastStream's. A grant that is lost is learned by asking again, a wish for the end of a
job comes with the next heartbeat too, and that an operator wants an attempt's slots is told each second until it was
given back. There is no answer: an append waits for the answer of the log, and FastStream would send it one of its own.
"""

import logging
from typing import Final, Literal, TypeVar

from faststream.nats import NatsBroker, NatsMessage
from nats.errors import NoRespondersError
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from headgate_contracts import ContractError, Event, EventName, Holder, consumer_filter, parse_event
from headgate_contracts.commands import (
    AcquireLease,
    Beat,
    BeatReply,
    GiveUpLease,
    LeaseReply,
    LogLine,
    ProviderShut,
    ShutProvider,
    command_subject,
    granted_subject,
    logs_subject,
)
from headgate_contracts.events import JobCancelRequested
from libs.foundation.live import AWAY
from libs.runtime.eventually import cancellable
from services.worker.attempt.run import Attempt
from services.worker.attempts import Attempts
from services.worker.domain import Interruption
from services.worker.ports import Unheard

logger = logging.getLogger(__name__)

KEPT_WITHIN_S: Final = 2.0

Answer = TypeVar("Answer", bound=BaseModel)


class NatsScheduler:
    """The schedulers over a NATS connection; any replica answers."""

    def __init__(self, broker: NatsBroker, *, shard: str, within_s: float) -> None:
        self._broker = broker
        self._shard = shard
        self._within_s = within_s

    async def beat(self, beat: Beat) -> BeatReply | Unheard:
        return await self._ask("beat", beat, BeatReply)

    async def acquire(self, wanted: AcquireLease) -> LeaseReply | Unheard:
        return await self._ask("acquire", wanted, LeaseReply)

    async def give_up(self, lease: str) -> None:
        """Unheard, it ends by itself: no heartbeat names it any more."""
        await self._ask("give_up", GiveUpLease(lease=lease), LeaseReply)

    async def shut(self, pause: ShutProvider) -> ProviderShut | Unheard:
        return await self._ask("shut", pause, ProviderShut)

    async def _ask(
        self, command: Literal["beat", "acquire", "give_up", "shut"], message: BaseModel, answer: type[Answer]
    ) -> Answer | Unheard:
        subject = command_subject(self._shard, command)
        if not self._broker.connection.is_connected:
            return Unheard.NOBODY
        try:
            with cancellable():
                reply = await self._broker.request(message, subject, timeout=self._within_s)
            return answer.model_validate_json(reply.body)
        except NoRespondersError:
            return Unheard.NOBODY
        except (*AWAY, ValidationError):
            return Unheard.SILENT if self._broker.connection.is_connected else Unheard.NOBODY


class NatsLines:
    """The stream of logs: a line is kept when the server says so."""

    def __init__(self, broker: NatsBroker) -> None:
        self._broker = broker

    async def put(self, line: LogLine, *, line_id: str) -> bool:
        if not self._broker.connection.is_connected:
            return False
        try:
            with cancellable():
                reply = await self._broker.request(
                    line, logs_subject(line.job_id), headers={"Nats-Msg-Id": line_id}, timeout=KEPT_WITHIN_S
                )
        except AWAY:
            return False
        return "error" not in from_json(reply.body)


def subscribe(broker: NatsBroker, attempts: Attempts, *, shard: str) -> None:
    """Grants go to the attempt that waits, wishes to the attempts of their job; others' are passed over."""

    @broker.subscriber(granted_subject(shard, "x").removesuffix("x") + "*", no_reply=True)
    async def granted(reply: LeaseReply) -> None:
        for attempt in attempts:
            _hear(attempt, reply)

    @broker.subscriber(consumer_filter(event=EventName.CANCEL_REQUESTED), no_reply=True)
    async def cancel_requested(message: NatsMessage) -> None:
        """On its way into the log, or refused there: hence a look into the log and no more."""
        try:
            event = parse_event(message.body)
        except ContractError:
            return
        if isinstance(event, Event) and isinstance(event.data, JobCancelRequested):
            for attempt in attempts.of_job(event.data.job_id):
                attempt.look_soon()


def _hear(attempt: Attempt, reply: LeaseReply) -> None:
    if reply.state != "not_yours":
        attempt.slots.granted(reply.lease)
    elif Holder.parse(attempt.holder).token == reply.lease:
        attempt.interrupt(Interruption.FORCED)

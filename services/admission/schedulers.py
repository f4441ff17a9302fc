"""What admission asks schedulers over NATS: slots outside jobs. Whichever replica answers.

Nothing is sent late: without a connection nobody is asked.
"""

from typing import Final

from faststream.nats import NatsBroker
from pydantic import BaseModel, ValidationError

from headgate_contracts.commands import (
    AcquireLease,
    Command,
    GiveUpLease,
    LeaseReply,
    command_subject,
    granted_subject,
)
from libs.foundation.live import AWAY
from libs.runtime.eventually import cancellable
from services.admission.leasing import WaitingHere

WITHIN_S: Final = 3.0


class NatsSchedulers:
    """The schedulers over a NATS connection. Null: none has answered."""

    def __init__(self, broker: NatsBroker, *, shard: str) -> None:
        self._broker = broker
        self._shard = shard

    async def acquire(self, wanted: AcquireLease) -> LeaseReply | None:
        return await self._ask("acquire", wanted)

    async def give_up(self, lease: GiveUpLease) -> LeaseReply | None:
        return await self._ask("give_up", lease)

    async def _ask(self, command: Command, message: BaseModel) -> LeaseReply | None:
        if not self._broker.connection.is_connected:
            return None
        try:
            with cancellable():
                reply = await self._broker.request(message, command_subject(self._shard, command), timeout=WITHIN_S)
            return LeaseReply.model_validate_json(reply.body)
        except (*AWAY, ValidationError):
            return None


def subscribe_to_turns(broker: NatsBroker, turns: WaitingHere, *, shard: str) -> None:
    """Every grant is told to all replicas: one of them has its waiter."""
    subject = f"{granted_subject(shard, 'any').rpartition('.')[0]}.*"

    @broker.subscriber(subject, no_reply=True)
    async def come(reply: LeaseReply) -> None:
        turns.come(reply.lease)

"""What a worker asks and tells over its own connection for that: commands to schedulers, lines to the logs.

The log of jobs has another connection, so that an append that takes long delays no heartbeat. Nothing is sent late:
while there is no connection a question is answered at once with "nobody".
"""

import logging
from typing import Final, Literal, TypeVar

from faststream.nats import NatsBroker
from nats.errors import NoRespondersError
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

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
    logs_subject,
)
from libs.foundation.live import AWAY
from libs.runtime.eventually import cancellable
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

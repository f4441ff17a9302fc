"""The NATS edge of the notifier: what is told to everybody, and the one question it asks. Handlers are short, so they
are FastStream's; the log itself is followed by `libs/eventlog`."""

from __future__ import annotations

from typing import Final

from faststream.nats import NatsBroker
from pydantic import ValidationError

from headgate_contracts.commands import (
    LIVE_PREFIX,
    LOGS_PREFIX,
    AskPosition,
    LogLine,
    PositionChanged,
    command_subject,
)
from libs.foundation.live import AWAY
from services.notifier.fanout import Fanout

ASK_WITHIN_S: Final = 1.0  # a snapshot without a position is better than a client that waits


def subscribe(broker: NatsBroker, fanout: Fanout, *, shard: str) -> None:
    """Lines and positions go to whoever listens to their job."""

    @broker.subscriber(f"{LOGS_PREFIX}.*", no_reply=True)  # who sends a line waits for its stream's answer
    async def line(said: LogLine) -> None:
        fanout.spread(said.job_id, said)

    @broker.subscriber(f"{LIVE_PREFIX}.{shard}.position.*.*", no_reply=True)
    async def position(moved: PositionChanged) -> None:
        fanout.spread(moved.job_id, moved)


class AskedPositions:
    """Positions, from any replica of the scheduler."""

    def __init__(self, broker: NatsBroker, *, shard: str) -> None:
        self._broker = broker
        self._subject = command_subject(shard, "position")

    async def ask(self, job_id: str) -> PositionChanged | None:
        try:
            reply = await self._broker.request(AskPosition(job_id=job_id), self._subject, timeout=ASK_WITHIN_S)
            return PositionChanged.model_validate(await reply.decode())
        except (*AWAY, ValidationError):
            return None

"""The NATS edge of the notifier: what is told to everybody, and the one question it asks. Handlers are short, so they
are FastStream's; the log and the lines of jobs are followed by `libs/eventlog`."""

import asyncio
from contextlib import aclosing, suppress
from typing import Any, Final, TypeVar

from faststream.nats import NatsBroker, NatsMessage
from pydantic import BaseModel, ValidationError

from headgate_contracts.commands import (
    LIVE_PREFIX,
    AskPosition,
    PositionChanged,
    RedeemTicket,
    TicketRedeemed,
    Watching,
    command_subject,
    job_said_on,
    watching_subject,
)
from libs.eventlog.ports import EventLog, Lines
from libs.eventlog.progress import PROGRESS_SUBJECTS, progress_in
from libs.foundation.live import AWAY
from libs.runtime.eventually import cancellable
from services.notifier.fanout import Fanout, OfJob
from services.notifier.rendering import (
    concerned,
    interests_in,
    interests_of,
    item_of,
    line_item,
    position_item,
    progress_item,
)

ASK_WITHIN_S: Final = 1.0  # a snapshot without a position is better than a client that waits
Answer = TypeVar("Answer", bound=BaseModel)


def subscribe(broker: NatsBroker, fanout: Fanout, *, shard: str) -> None:
    """Positions go to the listeners of their job, or of its user, as the subject tells: what has no listener is not
    even read."""

    @broker.subscriber(f"{LIVE_PREFIX}.{shard}.position.*.*", no_reply=True)
    async def position(moved: Any, message: NatsMessage) -> None:
        user_id, job_id = message.raw_message.subject.split(".")[-2:]
        fanout.spread(concerned(job_id, user_id), lambda: position_item(PositionChanged.model_validate(moved)))

    @broker.subscriber(PROGRESS_SUBJECTS, no_reply=True)
    async def progress(_: Any, message: NatsMessage) -> None:
        said = progress_in(message.raw_message.data)
        if said is not None and message.raw_message.subject.endswith(f".{said.job_id}"):
            fanout.spread(concerned(said.job_id, said.user_id), lambda: progress_item(said))


async def spread_log(log: EventLog, fanout: Fanout, *, after: int, epoch: str) -> None:
    """Each record goes to the listeners of its job or its user, for ever; what has no listener is not even read."""

    def is_wanted(subject: str) -> bool:
        return fanout.is_wanted(interests_of(subject))

    async with aclosing(log.follow(after=after, wanted=is_wanted)) as pages:
        async for page in pages:
            for record in page.records:
                fanout.spread(interests_in(record), lambda record=record: item_of(record, epoch=epoch))
            await asyncio.sleep(0)  # pages may be there one after the other: let their readers take this one first


async def spread_lines(lines: Lines, fanout: Fanout, *, after: int) -> None:
    """Each goes to the listeners of its job, for ever; what has no listener is not even read."""

    def is_wanted(subject: str) -> bool:
        return fanout.is_wanted([OfJob(job_said_on(subject))])

    async with aclosing(lines.follow(after=after, wanted=is_wanted)) as pages:
        async for page in pages:
            for line in page.lines:
                fanout.spread([OfJob(line.line.job_id)], lambda line=line: line_item(line))
            await asyncio.sleep(0)  # a job that says much must not keep the others' readers waiting


class AskedPositions:
    """Positions, from any replica of the scheduler."""

    def __init__(self, broker: NatsBroker, *, shard: str) -> None:
        self._broker = broker
        self._subject = command_subject(shard, "position")

    async def ask(self, job_id: str) -> PositionChanged | None:
        return await _answer(self._broker, AskPosition(job_id=job_id), subject=self._subject, kind=PositionChanged)


class WatchingPublisher:
    """Who is watched, to all replicas of the scheduler."""

    def __init__(self, broker: NatsBroker, *, shard: str) -> None:
        self._broker = broker
        self._subject = watching_subject(shard)

    async def tell(self, said: Watching) -> None:
        with suppress(*AWAY):  # it is said again soon
            await self._broker.publish(said, self._subject)


class RedeemedTickets:
    """Tickets, taken by any replica of the scheduler: the notifier has no rights in the store itself."""

    def __init__(self, broker: NatsBroker, *, shard: str) -> None:
        self._broker = broker
        self._subject = command_subject(shard, "redeem")

    async def redeem(self, ticket: str) -> TicketRedeemed | None:
        """What the ticket stood for, once; null where no scheduler can say at the moment."""
        return await _answer(self._broker, RedeemTicket(ticket=ticket), subject=self._subject, kind=TicketRedeemed)


async def _answer(broker: NatsBroker, question: BaseModel, *, subject: str, kind: type[Answer]) -> Answer | None:
    """Null where nobody answers, or not in words that are known here."""
    try:
        with cancellable():
            reply = await broker.request(question, subject, timeout=ASK_WITHIN_S)
        return kind.model_validate(await reply.decode())
    except (*AWAY, ValidationError):
        return None

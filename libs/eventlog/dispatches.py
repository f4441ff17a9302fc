"""What one of many has to do, each once: one end of a durable consumer that all replicas share.

    JOBS ──► worker-<pool> ──one message for one open request──► a free slot ──► ack, or back to the others
    JOBS ──► webhooks ───────one message for one open request──► a sender ─────► ack, or again later

Owns that no message is stranded. A request that is waited for no more may
still be answered: what arrives for it is handed back at once (`nak`), so that another slot has it within milliseconds
and not only when the time for its ack is over. That is why nats-py's `fetch` is not used: cancelled, it keeps what
comes after.

Refuses to know what a dispatch is worth. The log may have moved on from it; the worker that takes it asks the log.
"""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from pydantic_core import to_json

from headgate_contracts import EventName, consumer_filter
from headgate_contracts.tokens import check_token
from libs.eventlog.api import ask, listen
from libs.eventlog.decoding import DELIVERED, delivered, delivery_of
from libs.eventlog.edge import CLIENT_ERRORS, translated
from libs.eventlog.errors import LogMissing, LogUnavailable
from libs.eventlog.pools import SHARED, pool_consumer
from libs.eventlog.streams import JOBS, SECOND_NS
from libs.eventlog.values import Record
from libs.runtime.clock import Clock

ASK_FOR_S = 2.0  # how long one request stays open at the server
SILENT_AFTER_S = 2.5  # then it is asked again
LOOK_EVERY_S = 0.25
ACKED_WITHIN_S = 2.0
CLOSED_WITHIN_S = 1.0
AGAIN_AFTER_MS = 100
_REQUEST = to_json({"batch": 1, "expires": round(ASK_FOR_S * SECOND_NS)})


@dataclass(frozen=True, slots=True)
class JetStreamDispatch:
    """One message of the pool. Until it is acked it comes again, to any of those who pull."""

    record: Record
    tries: int  # with this one
    _nc: Client
    _reply: str

    async def ack(self, *, sure: bool = True) -> None:
        """Come back when the server knows, or at once where the log says what is done. `LogUnavailable`: it may come
        again."""
        with translated(JOBS):
            if sure:
                await self._nc.request(self._reply, b"+ACK", timeout=ACKED_WITHIN_S)
            else:
                await self._nc.publish(self._reply, b"+ACK")

    async def nak(self, *, after_s: float = 0) -> None:
        """Not for us, or not now: another may have it, at once or after that time."""
        delay = b" " + to_json({"delay": round(after_s * SECOND_NS)}) if after_s else b""
        with translated(JOBS):
            await self._nc.publish(self._reply, b"-NAK" + delay)


class SharedDispatches(ABC):
    """Gives messages to those that wait in `next`, one to each."""

    def __init__(self, nc: Client, consumer: str, *, clock: Clock) -> None:
        self.consumer = consumer
        self._nc = nc
        self._clock = clock
        self._lanes: list[_Lane] = []
        self._idle: list[_Lane] = []

    @abstractmethod
    async def start(self) -> None:
        """Until the consumer is there, before anybody is told that somebody waits here."""

    async def stop(self) -> None:
        """Whatever is still on its way to us goes to another."""
        lanes, self._lanes, self._idle = self._lanes, [], []
        if self._nc.is_connected:  # else nothing is on its way
            await asyncio.gather(*(lane.close() for lane in lanes))

    async def next(self) -> JetStreamDispatch:
        """The next dispatch, however long that takes. May be cancelled at any time."""
        while True:
            try:
                dispatch = await self._asked()
                if dispatch is not None:
                    return dispatch
            except LogUnavailable:
                await self._clock.sleep_ms(AGAIN_AFTER_MS)
                with suppress(LogUnavailable, LogMissing):  # a server that has just started may not see its streams yet
                    await self.start()  # where the consumer is there this changes nothing

    async def _asked(self) -> JetStreamDispatch | None:
        """One request; null where its time is over."""
        lane = self._idle.pop() if self._idle else await self._opened()
        try:
            return await lane.ask(self.consumer)
        finally:
            self._idle.append(lane)

    async def _opened(self) -> _Lane:
        lane = _Lane(self._nc)
        await lane.open()
        self._lanes.append(lane)
        return lane


class PoolDispatches(SharedDispatches):
    """The dispatches of one pool, for the free slots of its workers. `migrate` makes the consumer, no worker may."""

    def __init__(self, nc: Client, *, pool: str, clock: Clock) -> None:
        super().__init__(nc, pool_consumer(pool), clock=clock)

    async def start(self) -> None:
        await ask(self._nc, "CONSUMER.INFO", stream=f"{JOBS}.{self.consumer}", question={})


class EventDispatches(SharedDispatches):
    """Events of some names, for a reader that does something about each of them once: `max_tries`, then it is let
    go."""

    def __init__(
        self, nc: Client, *, name: str, events: Sequence[EventName], within_s: float, max_tries: int, clock: Clock
    ) -> None:
        super().__init__(nc, check_token("name", name), clock=clock)
        self._config = {
            "durable_name": name,
            **SHARED,
            "filter_subjects": [consumer_filter(event=event) for event in events],
            "ack_wait": round(within_s * SECOND_NS),
            "max_deliver": max_tries,
        }

    async def start(self) -> None:
        """Make it where there is none: the events and the time that it takes are the service's own."""
        place = f"{JOBS}.{self.consumer}"  # the stream and the consumer are one address there
        await ask(self._nc, "CONSUMER.CREATE", stream=place, question={"stream_name": JOBS, "config": self._config})


class _Lane:
    """Where answers to one slot's requests arrive: a dispatch bears its own subject, and only its inbox tells for whom
    it is."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._inbox = nc.new_inbox()
        self._numbers = itertools.count(1)
        self._token = ""
        self._waiting: asyncio.Future[JetStreamDispatch | None] | None = None
        self._subscription: Subscription | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._subscription = await listen(self._nc, f"{self._inbox}.*", hear=self._arrived)

    async def close(self) -> None:
        """What the server has sent already is handed back first. What takes longer is waited for no more and not
        cancelled: a connection's reader ends for good where the answer to a ping comes after its asker gave up."""
        self._closing = asyncio.create_task(self._drain(), name=f"close {self._inbox}")
        await asyncio.wait([self._closing], timeout=CLOSED_WITHIN_S)

    async def _drain(self) -> None:
        if self._subscription is not None:
            with suppress(*CLIENT_ERRORS):
                await self._subscription.drain()

    async def ask(self, consumer: str) -> JetStreamDispatch | None:
        """One request; null where its time is over."""
        answer = self._waiting = asyncio.get_running_loop().create_future()
        self._token, taken = f"{self._inbox}.{next(self._numbers)}", False
        try:
            with translated(JOBS):
                await self._nc.publish(f"$JS.API.CONSUMER.MSG.NEXT.{JOBS}.{consumer}", _REQUEST, reply=self._token)
            await self._silence_or(answer)
            taken = answer.done()
            return answer.result() if taken else None
        finally:
            self._waiting = None
            if not taken:
                await _hand_back(answer)

    async def _silence_or(self, answer: asyncio.Future[JetStreamDispatch | None]) -> None:
        """Until it is answered, or can be answered no more: a server that was restarted knows no open requests."""
        reconnects = self._nc.stats["reconnects"]
        for _ in range(round(SILENT_AFTER_S / LOOK_EVERY_S)):
            await asyncio.wait([answer], timeout=LOOK_EVERY_S)
            if answer.done() or self._nc.stats["reconnects"] != reconnects:
                return

    async def _arrived(self, message: Msg) -> None:
        waiting = self._waiting
        wanted = waiting is not None and not waiting.done()
        if message.reply.startswith(DELIVERED):
            dispatch = self._dispatch_in(message)
            if waiting is not None and wanted:
                waiting.set_result(dispatch)
            else:
                await _return(dispatch)
        elif waiting is not None and wanted and message.subject == self._token:  # not for an earlier request
            _hear(waiting, message.headers or {})

    def _dispatch_in(self, message: Msg) -> JetStreamDispatch:
        delivery = delivery_of(message.reply)
        record = delivered(message.subject, message.data, delivery=delivery, headers=message.headers)
        return JetStreamDispatch(record, delivery.tries, self._nc, message.reply)


def _hear(waiting: asyncio.Future[JetStreamDispatch | None], headers: dict[str, str]) -> None:
    match headers.get("Status"):
        case "404" | "408":
            waiting.set_result(None)
        case status:
            waiting.set_exception(LogUnavailable(reason=f"the consumer: {status} {headers.get('Description', '')}"))


async def _hand_back(answer: asyncio.Future[JetStreamDispatch | None]) -> None:
    """It may have been answered in the very moment in which its asker gave up."""
    if answer.done() and not answer.cancelled() and answer.exception() is None:
        dispatch = answer.result()
        if dispatch is not None:
            await _return(dispatch)


async def _return(dispatch: JetStreamDispatch) -> None:
    with suppress(LogUnavailable):  # without a connection it goes to another when the time for its ack is over
        await dispatch.nak()

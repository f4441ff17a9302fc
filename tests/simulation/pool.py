"""A durable consumer that many share, at the server and at one of them: a message a request, again until acked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from headgate_contracts import Event
from headgate_contracts.events import JobData, JobDispatched
from libs.eventlog.dispatches import ACKED_WITHIN_S, ASK_FOR_S, SILENT_AFTER_S
from libs.eventlog.errors import LogUnavailable
from libs.eventlog.pools import ACK_WITHIN_S
from libs.eventlog.values import Record
from tests.simulation.network import Link, Network, Silent, Unconnected, Way

AGAIN_AFTER_S = 0.1
PUT_OFF = -1  # in the place of a delivery


@dataclass(slots=True)
class _Message:
    record: Record
    tries: int = 0
    acked: bool = False
    out: int = 0  # which delivery is under way; 0: none


@dataclass(slots=True)
class _Request:
    link: Link
    answer: asyncio.Future[Handed | None]
    until_s: float


class Pool:
    """At the server. `wants`: which events; `most_tries`: then a message is let go, acked or not."""

    def __init__(
        self,
        network: Network,
        *,
        wants: Callable[[JobData], bool] = lambda data: isinstance(data, JobDispatched),
        acked_within_s: float = ACK_WITHIN_S,
        most_tries: int | None = None,
    ) -> None:
        self.acked: dict[int, float] = {}  # record → when
        self._network = network
        self._wants = wants
        self._acked_within_s = acked_within_s
        self._most_tries = most_tries
        self._open = 0
        self._ready: deque[_Message] = deque()
        self._requests: deque[_Request] = deque()

    def stored(self, record: Record) -> None:
        """The log has grown."""
        if (
            isinstance(record.event, Event)
            and isinstance(record.event.data, JobData)
            and self._wants(record.event.data)
        ):
            self._open += 1
            self._ready.append(_Message(record))
            self._hand_out()

    def ask(self, request: _Request) -> None:
        self._requests.append(request)
        self._hand_out()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there that may be handed out once more."""
        return self._open == 0

    def ack(self, message: _Message) -> None:
        if not message.acked:
            self.acked[message.record.seq] = self._network.loop.time()
            self._close(message)

    def put_off(self, message: _Message, delivery: int, *, after_s: float) -> None:
        """Not before that time, and whenever its ack would have been due."""
        if after_s and not message.acked and message.out == delivery:
            message.out = PUT_OFF
            self._network.later(after_s, lambda: self.again(message, PUT_OFF))
        else:
            self.again(message, delivery)

    def again(self, message: _Message, delivery: int) -> None:
        """Nobody has acked that delivery, or it was handed back."""
        if message.acked or message.out != delivery:
            return
        message.out = 0
        if self._most_tries is not None and message.tries >= self._most_tries:
            self._close(message)
        else:
            self._ready.append(message)
            self._hand_out()

    def _close(self, message: _Message) -> None:
        message.acked = True
        self._open -= 1

    def _hand_out(self) -> None:
        while self._ready and (request := self._open_request()):
            message = self._ready.popleft()
            message.tries += 1
            delivery = message.out = message.tries
            self._network.later(self._acked_within_s, lambda m=message, d=delivery: self.again(m, d))
            if request.link.fate() in (Way.ARRIVES, Way.UNHEARD):
                handed = Handed(self, request.link, message, delivery)
                self._network.later(request.link.delay_s(), lambda r=request, h=handed: _arrive(r, h))

    def _open_request(self) -> _Request | None:
        now_s = self._network.loop.time()
        while self._requests:
            request = self._requests.popleft()
            if request.until_s > now_s and request.link.process.alive and request.link.connected:
                return request
        return None


def _arrive(request: _Request, handed: Handed) -> None:
    process = request.link.process

    def hear() -> None:
        if not request.answer.done():
            request.answer.set_result(handed)
        else:
            handed.hand_back()  # nobody waits for it any more

    if process.alive and request.link.connected:
        process.call(hear)


class Handed:
    """One message in a worker's hand."""

    def __init__(self, pool: Pool, link: Link, message: _Message, delivery: int) -> None:
        self.record = message.record
        self._pool = pool
        self._link = link
        self._message = message
        self._delivery = delivery

    async def ack(self, *, sure: bool = True) -> None:
        if not sure:
            self._require_connection()
            return self._link.tell(lambda: self._pool.ack(self._message))
        try:
            await self._link.ask(lambda: self._pool.ack(self._message), within_s=ACKED_WITHIN_S)
        except (Silent, Unconnected) as away:
            raise LogUnavailable(reason=type(away).__name__) from None

    @property
    def tries(self) -> int:
        return self._delivery

    async def nak(self, *, after_s: float = 0.0) -> None:
        self._require_connection()
        self.hand_back(after_s=after_s)

    def _require_connection(self) -> None:
        self._link.process.require_life()
        if not self._link.connected:
            raise LogUnavailable(reason="not connected")

    def hand_back(self, *, after_s: float = 0.0) -> None:
        self._link.tell(lambda: self._pool.put_off(self._message, self._delivery, after_s=after_s))


class PoolEdge:
    """At a worker: what its intake waits at."""

    def __init__(self, pool: Pool, link: Link) -> None:
        self._pool = pool
        self._link = link

    async def next(self) -> Handed:
        loop = asyncio.get_running_loop()
        while True:
            self._link.process.require_life()
            answer: asyncio.Future[Handed | None] = loop.create_future()
            request = _Request(self._link, answer, loop.time() + ASK_FOR_S)
            self._link.tell(lambda request=request: self._pool.ask(request))
            try:
                await asyncio.wait([answer], timeout=SILENT_AFTER_S)
            finally:
                if not answer.done():
                    answer.cancel()
            if not answer.cancelled() and (handed := answer.result()) is not None:
                return handed
            await asyncio.sleep(AGAIN_AFTER_S)

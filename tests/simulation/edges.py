"""The three shapes in which services hold a way outside, each around a twin.

    LogWire   the far end of the log, below the one way of appending
    Port      anything with methods that answer: view, lead, buckets, snapshots
    Broker    subjects: who asks is answered by one of a group, who tells is heard by all

Owns what silence and a missing connection look like on each, as the real clients have it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, NoRespondersError
from nats.errors import TimeoutError as NatsTimeout
from pydantic import BaseModel

from libs.eventlog.errors import LogFull, LogUnavailable
from libs.eventlog.expectation import Message
from libs.eventlog.memory import MemoryServer
from libs.eventlog.values import Fill, Mark, Page, Record, Wanted
from libs.eventlog.wire import Unanswered, Unsent, WireAnswer
from tests.simulation.network import Link, Network, Silent, Unconnected, at_once

READ_WITHIN_S = 2.0
SCRIPT_WITHIN_S = 5.0
TRIES_AGAIN_AFTER_S = 0.25  # a reader that has lost its connection
_STATE = Msg(cast("Client", None), data=b'{"config": {}, "state": {"first_seq": 1, "last_seq": 0, "bytes": 0}}')


class LogWire:
    """One process's connection to the log."""

    def __init__(self, link: Link, server: MemoryServer, subscriptions: Subscriptions, *, reader: Link) -> None:
        self._link = link
        self._reader = reader  # what a consumer sends may stay away alone
        self._server = server
        self._subscriptions = subscriptions

    async def send(self, messages: Sequence[Message], *, within_s: float) -> WireAnswer:
        await self._link.reached("append")
        try:
            answer = await self._link.ask(lambda: self._arrive(messages), within_s=within_s)
        except Unconnected:
            return Unsent("not connected")
        except Silent:
            return Unanswered("no answer")
        await self._link.reached("appended")
        return answer

    async def next(self, subject_filter: str, *, after: int) -> Record | None:
        return await self._read(lambda: self._server.next(subject_filter, after=after))

    async def last(self, subject_filter: str) -> Record | None:
        return await self._read(lambda: self._server.last(subject_filter))

    async def mark(self) -> Mark:
        return await self._read(lambda: Mark(self._server.epoch, self._server.last_seq))

    async def fill(self) -> Fill:
        return await self._read(self._server.fill)

    async def follow(self, *, after: int, wanted: Wanted | None) -> AsyncGenerator[Page, None]:
        async with aclosing(self._server.pages(after=after, wanted=wanted)) as pages:
            async for page in pages:
                await asyncio.sleep(self._link.delay_s())
                while not (self._link.connected and self._reader.connected):  # noqa: ASYNC110 - it tries to connect
                    await asyncio.sleep(TRIES_AGAIN_AFTER_S)
                self._link.process.require_life()
                yield page

    def _arrive(self, messages: Sequence[Message]) -> WireAnswer:
        for message in messages:
            # A subscriber to the subject gets what is refused, too.
            self._subscriptions.publish(message.subject, message.payload)
        return self._server.receive(messages)

    async def _read(self, look: Callable[[], Any]) -> Any:
        try:
            return await self._link.ask(look, within_s=READ_WITHIN_S)
        except (Unconnected, Silent) as away:
            raise LogUnavailable(reason=type(away).__name__) from None


class Port:
    """A twin behind a link: each of its methods is a message there and an answer back.

    `away` is what its client raises where nobody answers; `full` tells whether nothing more may be put there.
    """

    def __init__(
        self, link: Link, twin: object, *, away: Callable[[], Exception], full: Callable[[], bool] = lambda: False
    ) -> None:
        self._link = link
        self._twin = twin
        self._away = away
        self._full = full

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._twin, name)

        def act(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            if name == "put" and self._full():
                raise LogFull(reason="no room")
            return at_once(method(*args, **named))

        async def call(*args: Any, **named: Any) -> Any:
            if self._link.is_watched:
                await self._link.reached(name)
            try:
                return await self._link.ask(partial(act, args, named), within_s=SCRIPT_WITHIN_S)
            except (Unconnected, Silent):
                raise self._away() from None

        self.__dict__[name] = call  # made once
        return call


@dataclass(frozen=True, slots=True)
class Heard:
    """A message as a subscriber gets it, and as who asked gets the answer."""

    body: bytes
    subject: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def raw_message(self) -> Heard:
        return self

    async def decode(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class _Subscriber:
    broker: Broker
    group: str
    hear: Callable[..., Awaitable[Any]]
    wants_message: bool

    @property
    def there(self) -> bool:
        return self.broker.is_there


@dataclass(slots=True)
class Subscriptions:
    """The server of all brokers: the subscribers of each subject."""

    network: Network
    subscribers: dict[str, list[_Subscriber]] = field(default_factory=dict[str, list[_Subscriber]])
    _found: dict[str, list[list[_Subscriber]]] = field(default_factory=dict[str, list[list[_Subscriber]]])

    def at(self, subject: str) -> list[_Subscriber]:
        found = self._found.get(subject)
        if found is None:
            found = self._found[subject] = [
                subscribers for each, subscribers in self.subscribers.items() if _matches(subject, each)
            ]
        return [subscriber for subscribers in found for subscriber in subscribers if subscriber.there]

    def subscribe(self, subject: str, subscriber: _Subscriber) -> None:
        if subject not in self.subscribers:
            self.subscribers[subject] = []
            self._found.clear()
        subscribers = self.subscribers[subject]
        subscribers[:] = [each for each in subscribers if each.broker.is_alive]
        subscribers.append(subscriber)

    def publish(self, subject: str, payload: bytes, model: type[BaseModel] | None = None) -> None:
        for subscriber in self.at(subject):
            subscriber.broker.deliver(subscriber, Heard(payload, subject), model=model)


class _Connection:
    """What services use of the client's own: whether it is there, and one question that JetStream answers on it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def is_connected(self) -> bool:
        return self._link.connected

    async def request(self, subject: str, payload: bytes, *, timeout: float) -> Msg:  # noqa: ASYNC109 - nats-py's
        return await _asked(self._link, lambda: _STATE, within_s=timeout)


class Broker:
    """One process's connection for what is said and not kept; what services use of FastStream's."""

    def __init__(self, link: Link, subscriptions: Subscriptions) -> None:
        self.connection = _Connection(link)
        self._link = link
        self._subscriptions = subscriptions

    @property
    def is_alive(self) -> bool:
        return self._link.process.alive

    @property
    def is_there(self) -> bool:
        return self._link.process.alive and self._link.connected

    def subscriber(self, subject: str, group: str = "", **_: Any) -> Callable[[Any], Any]:
        def subscribe(hear: Any) -> Any:
            wants_message = len(inspect.signature(hear).parameters) > 1
            self._subscriptions.subscribe(subject, _Subscriber(self, group, hear, wants_message))
            return hear

        return subscribe

    async def publish(self, message: BaseModel, subject: str) -> None:
        self._link.process.require_life()
        if not self._link.connected:
            raise ConnectionClosedError
        payload = message.model_dump_json().encode()
        self._link.tell(lambda: self._subscriptions.publish(subject, payload, type(message)))

    async def request(self, message: BaseModel, subject: str, *, timeout: float, headers: Any = None) -> Heard:  # noqa: ASYNC109 - FastStream's
        """One of the group that listens there answers, and may be silent; who is of no group only hears it."""
        payload = message.model_dump_json().encode()
        listening = await _asked(self._link, lambda: self._subscriptions.at(subject), within_s=timeout)
        answering = [subscriber for subscriber in listening if subscriber.group]
        if not answering:
            raise NoRespondersError
        subscriber = self._subscriptions.network.dice.one_of(f"{self._link.process.name} asks {subject}", answering)
        answer: asyncio.Future[Heard] = asyncio.get_running_loop().create_future()
        heard = Heard(payload, subject, headers or {})
        for hearer in listening:
            if not hearer.group:
                hearer.broker.deliver(hearer, heard, model=type(message))
        subscriber.broker.deliver(subscriber, heard, model=type(message), answer=answer, to=self._link)
        async with asyncio.timeout(timeout):
            return await answer

    def deliver(
        self,
        subscriber: _Subscriber,
        heard: Heard,
        *,
        model: type[BaseModel] | None = None,
        answer: asyncio.Future[Heard] | None = None,
        to: Link | None = None,
    ) -> None:
        """In the hearer's own process and time."""
        process = self._link.process
        if self._link.connected and process.alive:
            self._subscriptions.network.later(
                self._link.delay_s(),
                lambda: process.call(lambda: process.start(_hear(subscriber, heard, model, answer, to))),
            )


async def _asked(link: Link, act: Callable[[], Any], *, within_s: float) -> Any:
    try:
        return await link.ask(act, within_s=within_s)
    except Unconnected:
        raise ConnectionClosedError from None
    except Silent:
        raise NatsTimeout from None


async def _hear(
    subscriber: _Subscriber,
    heard: Heard,
    model: type[BaseModel] | None,
    answer: asyncio.Future[Heard] | None,
    to: Link | None,
) -> None:
    told: Any = heard if model is None else model.model_validate_json(heard.body)
    reply: BaseModel | None = await (
        subscriber.hear(told, heard) if subscriber.wants_message else subscriber.hear(told)
    )
    if answer is None or to is None or reply is None or not subscriber.there or not to.connected:
        return
    body = Heard(reply.model_dump_json().encode())
    subscriber.broker._subscriptions.network.later(to.delay_s(), lambda: answer.done() or answer.set_result(body))


@lru_cache(maxsize=10_000)
def _matches(subject: str, pattern: str) -> bool:
    have, want = subject.split("."), pattern.split(".")
    if want[-1] == ">":
        have, want = have[: len(want) - 1], want[:-1]
    return len(have) == len(want) and all(w in ("*", h) for h, w in zip(have, want, strict=True))

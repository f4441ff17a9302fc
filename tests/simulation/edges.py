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
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
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
from tests.simulation.network import Link, Network, Silent, Unconnected, Way, at_once

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
            self._subscriptions.publish(Heard(message.payload, message.subject))
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


class Heard:
    """A message as a subscriber gets it, and as who asked gets the answer. Read from its bytes once, for all."""

    __slots__ = ("_model", "_told", "body", "headers", "subject")

    def __init__(
        self,
        body: bytes,
        subject: str = "",
        headers: Mapping[str, str] | None = None,
        model: type[BaseModel] | None = None,
    ) -> None:
        self.body = body
        self.subject = subject
        self.headers: Mapping[str, str] = headers or {}
        self._model = model
        self._told: Any = None

    @property
    def told(self) -> Any:
        if self._model is None:
            return self
        if self._told is None:
            self._told = self._model.model_validate_json(self.body)
        return self._told

    @property
    def raw_message(self) -> Heard:
        return self

    async def decode(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class _Subscriber:
    broker: Broker
    group: str
    hear: Callable[..., Coroutine[Any, Any, Any]]
    wants_message: bool

    @property
    def there(self) -> bool:
        return self.broker.is_there

    def called(self, heard: Heard) -> Coroutine[Any, Any, Any]:
        return self.hear(heard.told, heard) if self.wants_message else self.hear(heard.told)


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

    def publish(self, heard: Heard) -> None:
        for subscriber in self.at(heard.subject):
            subscriber.broker.deliver(subscriber, heard)

    def ask(self, heard: Heard, asker: Link, answer: asyncio.Future[Heard], way: Way) -> None:
        """One of a group that listens there answers, and may be silent; who is of no group only hears it."""
        listening = self.at(heard.subject)
        answering = [subscriber for subscriber in listening if subscriber.group]
        for subscriber in listening:
            if not subscriber.group:
                subscriber.broker.deliver(subscriber, heard)
        if answering:
            subscriber = self.network.dice.one_of(f"{asker.process.name} asks {heard.subject}", answering)
            subscriber.broker.deliver(subscriber, heard, answer=answer if way is Way.ARRIVES else None, to=asker)
        elif way is Way.ARRIVES:
            self.network.later(asker.delay_s(), _nobody_answers, answer)


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
        link = self._link
        link.process.require_life()
        if not link.connected:
            raise ConnectionClosedError
        heard = Heard(message.model_dump_json().encode(), subject, model=type(message))
        link.carry(lambda _: self._subscriptions.publish(heard))

    async def request(self, message: BaseModel, subject: str, *, timeout: float, headers: Any = None) -> Heard:  # noqa: ASYNC109 - FastStream's
        link, loop = self._link, asyncio.get_running_loop()
        link.process.require_life()
        if not link.connected:
            await asyncio.sleep(0)
            raise ConnectionClosedError
        heard = Heard(message.model_dump_json().encode(), subject, headers, type(message))
        answer: asyncio.Future[Heard] = loop.create_future()
        link.carry(partial(self._subscriptions.ask, heard, link, answer))
        patience = loop.call_later(timeout, _give_up, answer)
        try:
            return await answer
        finally:
            patience.cancel()
            link.process.require_life()

    def deliver(
        self,
        subscriber: _Subscriber,
        heard: Heard,
        *,
        answer: asyncio.Future[Heard] | None = None,
        to: Link | None = None,
    ) -> None:
        """In the hearer's own process and time."""
        if self.is_there:
            self._subscriptions.network.later(self._link.delay_s(), self._begin, subscriber, heard, answer, to)

    def _begin(
        self, subscriber: _Subscriber, heard: Heard, answer: asyncio.Future[Heard] | None, to: Link | None
    ) -> None:
        process = self._link.process
        if subscriber.group:
            process.start(_hear(subscriber, heard, answer, to))
        elif process.alive:
            process.call(lambda: at_once(subscriber.called(heard)))


def _nobody_answers(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(NoRespondersError())


def _give_up(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(NatsTimeout())


async def _asked(link: Link, act: Callable[[], Any], *, within_s: float) -> Any:
    try:
        return await link.ask(act, within_s=within_s)
    except Unconnected:
        raise ConnectionClosedError from None
    except Silent:
        raise NatsTimeout from None


async def _hear(subscriber: _Subscriber, heard: Heard, answer: asyncio.Future[Heard] | None, to: Link | None) -> None:
    reply: BaseModel | None = await subscriber.called(heard)
    if answer is None or to is None or reply is None or not subscriber.there or not to.connected:
        return
    said = Heard(reply.model_dump_json().encode())
    subscriber.broker._subscriptions.network.later(to.delay_s(), _tell, answer, said)


def _tell(answer: asyncio.Future[Heard], said: Heard) -> None:
    if not answer.done():
        answer.set_result(said)


@lru_cache(maxsize=10_000)
def _matches(subject: str, pattern: str) -> bool:
    have, want = subject.split("."), pattern.split(".")
    if want[-1] == ">":
        have, want = have[: len(want) - 1], want[:-1]
    return len(have) == len(want) and all(w in ("*", h) for h, w in zip(have, want, strict=True))

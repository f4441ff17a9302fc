"""What is said and not kept, in memory: subjects, who listens there, and what services use of FastStream's broker.

Who asks is answered by the first of a group; who tells is heard by all. Each hearer has a task of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from pydantic import BaseModel

from libs.eventlog.memory import matches

STATE: Final = b'{"config": {}, "state": {"first_seq": 1, "last_seq": 0, "bytes": 0}}'  # of a stream, as JetStream says
Hear = Callable[..., Coroutine[Any, Any, BaseModel | None]]


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message as a subscriber gets it, and as who asked gets the answer."""

    body: bytes
    subject: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def data(self) -> bytes:
        return self.body

    @property
    def raw_message(self) -> SaidMessage:
        return self

    async def decode(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class _Listener:
    subject: str
    group: str
    hear: Hear
    wants_message: bool

    async def heard(self, said: SaidMessage, model: type[BaseModel] | None) -> BaseModel | None:
        told: Any = said if model is None else model.model_validate_json(said.body)
        return await (self.hear(told, said) if self.wants_message else self.hear(told))


class Switchboard:
    """The server of all brokers."""

    def __init__(self) -> None:
        self._listeners: list[_Listener] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    def listen(self, listener: _Listener) -> None:
        self._listeners.append(listener)

    def publish(self, subject: str, payload: bytes, model: type[BaseModel] | None = None) -> None:
        for listener in self.at(subject):
            self.start(listener.heard(SaidMessage(payload, subject), model))

    def at(self, subject: str) -> list[_Listener]:
        return [each for each in self._listeners if matches(subject, each.subject)]

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Connection:
    """What services use of the client's own."""

    is_connected = True

    async def request(self, subject: str, payload: bytes, *, timeout: float) -> Msg:  # noqa: ASYNC109 - nats-py's
        return Msg(None, data=STATE)  # type: ignore[arg-type] - nobody answers it


class MemoryBroker:
    """One service's connection."""

    def __init__(self, switchboard: Switchboard) -> None:
        self.connection = _Connection()
        self._switchboard = switchboard

    def subscriber(self, subject: str, group: str = "", **_: Any) -> Callable[[Hear], Hear]:
        def listen(hear: Hear) -> Hear:
            wants_message = len(inspect.signature(hear).parameters) > 1
            self._switchboard.listen(_Listener(subject, group, hear, wants_message))
            return hear

        return listen

    async def publish(self, message: BaseModel, subject: str) -> None:
        self._switchboard.publish(subject, message.model_dump_json().encode(), type(message))

    async def request(
        self,
        message: BaseModel,
        subject: str,
        *,
        timeout: float,  # noqa: ASYNC109 - FastStream's
        headers: Mapping[str, str] | None = None,
    ) -> SaidMessage:
        said, model = SaidMessage(message.model_dump_json().encode(), subject, headers or {}), type(message)
        listening = self._switchboard.at(subject)
        answering = next((each for each in listening if each.group), None)
        if answering is None:
            raise NoRespondersError
        for each in listening:
            if not each.group:
                self._switchboard.start(each.heard(said, model))
        async with asyncio.timeout(timeout):
            reply = await self._switchboard.start(answering.heard(said, model))
        if reply is None:
            raise NoRespondersError
        return SaidMessage(reply.model_dump_json().encode())

"""The log on JetStream: how messages are sent there, and how the leader is asked what stands where.

Owns the only publish to the log's subjects. What an answer means, and what to do without one, is `settling`.
"""

import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from nats.aio.client import Client

from libs.eventlog.api import message_in, require_same_log, state_of
from libs.eventlog.decoding import fetched
from libs.eventlog.edge import CLIENT_ERRORS, answer_for, answer_in
from libs.eventlog.expectation import Message
from libs.eventlog.following import Follower
from libs.eventlog.settling import SETTLE_WITHIN_S, SettlingLog
from libs.eventlog.streams import JOBS
from libs.eventlog.values import Fill, Mark, Page, Record, Wanted
from libs.eventlog.wire import Unsent, WireAnswer
from libs.runtime.clock import Clock, SystemClock
from libs.runtime.eventually import cancellable


class JetStreamWire:
    """The far end of the log: one stream, found through one connection."""

    def __init__(self, nc: Client, *, epoch: str, clock: Clock) -> None:
        self._nc = nc
        self._epoch = epoch
        self._follower = Follower(nc, epoch=epoch, clock=clock)

    async def send(self, messages: Sequence[Message], *, within_s: float) -> WireAnswer:
        if not self._nc.is_connected:
            return Unsent("not connected")
        try:
            with cancellable():
                reply = await self._send_all(messages, within_s)
        except CLIENT_ERRORS as error:
            return answer_for(error)
        return answer_in(reply)

    async def next(self, subject_filter: str, *, after: int) -> Record | None:
        return await self._fetch({"seq": after + 1, "next_by_subj": subject_filter})

    async def last(self, subject_filter: str) -> Record | None:
        return await self._fetch({"last_by_subj": subject_filter})

    async def mark(self) -> Mark:
        state = await state_of(self._nc, JOBS)
        require_same_log(state, Mark(self._epoch, 0))
        return Mark(self._epoch, state.last_seq)

    async def fill(self) -> Fill:
        state = await state_of(self._nc, JOBS)
        limit: int = state.config["max_bytes"]
        return Fill(state.held_bytes, limit if limit > 0 else None)

    def follow(self, *, after: int, wanted: Wanted | None) -> AsyncGenerator[Page, None]:
        return self._follower.pages(after=after, wanted=wanted)

    async def _send_all(self, messages: Sequence[Message], within_s: float) -> bytes:
        """Several are staged one by one; the last commits all, or none where anything is missing or refused."""
        if len(messages) == 1:
            return await self._send_one(messages[0], {}, within_s)
        batch = secrets.token_hex(16)  # a new one each time: what an earlier try left staged must not be joined
        *staged, last = messages
        for number, message in enumerate(staged, 1):
            await self._nc.publish(
                message.subject, message.payload, headers={**message.headers, **_seat(batch, number)}
            )
        return await self._send_one(last, {**_seat(batch, len(messages)), "Nats-Batch-Commit": "1"}, within_s)

    async def _send_one(self, message: Message, headers: Mapping[str, str], within_s: float) -> bytes:
        headers = {**message.headers, **headers}
        reply = await self._nc.request(message.subject, message.payload, timeout=within_s, headers=headers)
        return reply.data

    async def _fetch(self, question: Mapping[str, Any]) -> Record | None:
        message = await message_in(self._nc, JOBS, question)
        return None if message is None else fetched(message)


class JetStreamLog(SettlingLog):
    """The log that services use. `guard.open_log` makes it, after it has looked at what it stands on."""

    def __init__(
        self, nc: Client, *, epoch: str, clock: Clock | None = None, settle_within_s: float = SETTLE_WITHIN_S
    ) -> None:
        clock = clock or SystemClock()
        super().__init__(JetStreamWire(nc, epoch=epoch, clock=clock), clock=clock, settle_within_s=settle_within_s)
        self.epoch = epoch


def _seat(batch: str, number: int) -> dict[str, str]:
    return {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}

"""Reading once what a stream holds now of some subjects, oldest first, and no further.

Owns the difference to `following`: a scan has an end. It is where the consumer has nothing more pending, or
after as many messages as the reader wants. Refuses to wait for what is not there yet.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

from libs.eventlog.api import state_of
from libs.eventlog.decoding import delivered, delivery_of
from libs.eventlog.errors import LogUnavailable
from libs.eventlog.following import PAGE_SIZE, Pull, pulling
from libs.eventlog.streams import JOBS
from libs.eventlog.values import Record

PAGE_WITHIN_S = 5.0  # what was pending may have gone by age or by a purge meanwhile: then nothing comes


async def scan(
    nc: Client,
    stream: str,
    *,
    filters: Sequence[str],
    start: Mapping[str, Any],
    most: int | None = None,
    page_size: int = PAGE_SIZE,
) -> AsyncGenerator[list[Msg]]:
    """Pages of what these subjects hold, at most so many messages. Close it when leaving it early."""
    async with pulling(nc, stream, start={**start, "filter_subjects": list(filters)}) as pull:
        left = pull.pending if most is None else min(most, pull.pending)
        while left > 0:
            pull.page_size = min(left, page_size)  # past what is wanted the server would search on, to the stream's end
            messages = await _page(pull, stream)
            yield messages
            left = min(left - len(messages), delivery_of(messages[-1].reply).pending)


class JetStreamScans:
    """Scans of the log on JetStream."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc

    async def ends(self) -> tuple[int, int]:
        """The first and the last sequence, from the leader. Of a log that has never held anything, 1 and 0."""
        state = await state_of(self._nc, JOBS)
        return max(1, state.first_seq), state.last_seq

    async def count(self, filters: Sequence[str], *, after: int) -> int:
        """How many records these subjects hold from `after` + 1 on. The server knows without reading them."""
        start = {**from_after(after), "filter_subjects": list(filters)}
        async with pulling(self._nc, JOBS, start=start) as pull:
            return pull.pending

    async def pages(
        self, filters: Sequence[str], *, after: int = 0, since: datetime | None = None, most: int | None = None
    ) -> AsyncGenerator[list[Record]]:
        """Records of these subjects, oldest first, as far as the log goes now."""
        start = from_after(after)
        if since is not None:
            start = {"deliver_policy": "by_start_time", "opt_start_time": since.isoformat()}
        async with aclosing(scan(self._nc, JOBS, filters=filters, start=start, most=most)) as pages:
            async for messages in pages:
                yield [_record(message) for message in messages]


def from_after(after: int) -> dict[str, Any]:
    """Where a scan begins."""
    return {"deliver_policy": "by_start_sequence", "opt_start_seq": after + 1}


async def _page(pull: Pull, stream: str) -> list[Msg]:
    try:
        async with asyncio.timeout(PAGE_WITHIN_S):
            return await pull.messages()
    except TimeoutError as silence:
        raise LogUnavailable(reason=f"{stream} gave no page within {PAGE_WITHIN_S:g} s") from silence


def _record(message: Msg) -> Record:
    return delivered(message.subject, message.data, delivery=delivery_of(message.reply), headers=message.headers)

"""What jobs are called: content like their inputs, under the job's id, written before its first event and in no event.

    one     from the leader: what was written a moment ago is found
    many    in one question, a direct get, of a copy that may be a moment behind: for lists

A title decorates an answer and never holds it up: where the bucket cannot be asked, a job is shown without one.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic_core import to_json

from libs.eventlog.api import ANSWER_WITHIN_S, listen
from libs.eventlog.buckets import JetStreamKeys, MemoryBucket
from libs.eventlog.edge import translated
from libs.eventlog.errors import LogError
from libs.eventlog.streams import TITLES

MOST_AT_ONCE = 1000  # the server answers for 1,024 subjects
SUBJECT = "Nats-Subject"  # of a message, in a direct answer


class DirectKeys(JetStreamKeys):
    """A bucket of which many keys are asked for at once."""

    async def newest(self, ids: Sequence[str]) -> dict[str, bytes]:
        """What is there, by its name; what was erased is empty."""
        if len(ids) == 1:
            return {ids[0]: await self.get(ids[0]) or b""}
        found = dict[str, bytes]()
        for start in range(0, len(ids), MOST_AT_ONCE):
            found |= await self._newest(ids[start : start + MOST_AT_ONCE])
        return found

    async def _newest(self, ids: Sequence[str]) -> dict[str, bytes]:
        found, told, inbox = dict[str, bytes](), asyncio.Event(), self._nc.new_inbox()

        async def take(message: Msg) -> None:
            headers = message.headers or {}
            if SUBJECT in headers:
                found[headers[SUBJECT].rpartition(".")[2]] = message.data
            else:
                told.set()  # the end of the answer, or a refusal

        subscription = await listen(self._nc, inbox, hear=take)
        question = to_json({"multi_last": [self._subject(job_id) for job_id in ids]})
        try:
            with translated(self._bucket):
                await self._nc.publish(f"$JS.API.DIRECT.GET.{self._stream}", question, reply=inbox)
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    await told.wait()
        finally:
            with translated(self._bucket):
                await subscription.unsubscribe()
        return found


class JetStreamTitles(DirectKeys):
    """The bucket TITLES."""

    def __init__(self, nc: Client) -> None:
        super().__init__(nc, TITLES)

    async def write(self, job_id: str, title: str) -> None:
        """Durable when this returns."""
        await self.put(job_id, title.encode())

    async def of(self, ids: Sequence[str]) -> dict[str, str]:
        """Those that have one, by their ids; none where nobody can say."""
        with suppress(LogError):
            return await self.found(ids)
        return {}

    async def found(self, ids: Sequence[str]) -> dict[str, str]:
        """The same, for who must know."""
        return {job_id: title.decode() for job_id, title in (await self.newest(ids)).items() if title}


class MemoryTitles(MemoryBucket):
    """The twin of `JetStreamTitles`, in memory."""

    async def write(self, job_id: str, title: str) -> None:
        await self.put(job_id, title.encode())

    async def of(self, ids: Sequence[str]) -> dict[str, str]:
        return await self.found(ids)

    async def found(self, ids: Sequence[str]) -> dict[str, str]:
        found = {job_id: (await self.get(job_id) or b"").decode() for job_id in ids}
        return {job_id: title for job_id, title in found.items() if title}

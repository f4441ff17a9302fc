"""What jobs are made from and what they made: bytes under a name, beside the log and never in it.

    Inputs    one message a job, written before the job's first event, read by workers and for retries
    Objects   RESULTS, WORKSPACES and SNAPSHOTS: a small one stands in the word about it, one message; a large one in
              chunks, as they grow past what one message may hold, and then the word

Both are read from the leader: what was put a moment ago must be found. What is deleted leaves no byte behind, and
deleting it again changes nothing: a writer that was killed in the middle begins again.
"""

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from nats.aio.client import Client
from pydantic_core import from_json, to_json

from headgate_contracts.tokens import check_token
from libs.eventlog.api import ask, message_in, state_of, subjects_of
from libs.eventlog.edge import fault_in, translated
from libs.eventlog.errors import LogError, LogRefused
from libs.eventlog.streams import INPUTS

PUT_WITHIN_S = 5.0
SMALL_BYTES = 64 * 1024  # up to here in one message: one sync to put it, one question to get it
CHUNK_BYTES = 128 * 1024
IN_FLIGHT = 8  # chunks
DIGEST = "SHA-256="
ERASED = {"KV-Operation": "PURGE", "Nats-Rollup": "sub"}  # a marker without a word takes the place of what was there


@dataclass(frozen=True, slots=True)
class Found:
    """An object that is there. `digest` is its sha256 in hexadecimal digits, `note` what was said when it was put."""

    name: str
    size: int
    digest: str
    nuid: str = ""  # under which its chunks stand; of a small one there are none
    note: str = ""
    content: bytes | None = field(default=None, repr=False)  # of a small one, which stands in the word about it


class JetStreamKeys:
    """One bucket of keys. Put twice, the later content stands."""

    def __init__(self, nc: Client, bucket: str) -> None:
        self._nc = nc
        self._bucket = bucket
        self._stream = f"KV_{bucket}"

    async def put(self, name: str, content: bytes) -> None:
        """Durable when this returns."""
        await self._write(name, content)

    async def get(self, name: str) -> bytes | None:
        """Null where there is none, or none any more."""
        message = await message_in(self._nc, self._stream, {"last_by_subj": self._subject(name)})
        return None if message is None or not message.get("data") else base64.b64decode(message["data"])

    async def delete(self, name: str) -> None:
        """Gone when this returns, whether there was one or not."""
        await self._write(name, b"", headers=ERASED)

    async def names(self) -> list[str]:
        """Of all that is there, also of what was deleted and has left a marker."""
        words = f"$KV.{self._bucket}."
        return [subject.removeprefix(words) for subject in await subjects_of(self._nc, self._stream, f"{words}>")]

    async def revision(self) -> int:
        """Of what was put last, under any name; what is put later has a larger one."""
        return (await state_of(self._nc, self._stream)).last_seq

    async def purge(self, name: str, *, through: int | None = None) -> None:
        """Gone without a marker, and its marker too: for who may purge the bucket. What was put after the revision
        `through` stays."""
        question: dict[str, str | int] = {"filter": self._subject(name)}
        if through is not None:
            question["seq"] = through + 1  # the first that stays
        await ask(self._nc, "STREAM.PURGE", stream=self._stream, question=question)

    async def _write(self, name: str, content: bytes, *, headers: dict[str, str] | None = None) -> None:
        await published(self._nc, self._subject(name), content, headers=headers, about=self._bucket)

    def _subject(self, name: str) -> str:
        return f"$KV.{self._bucket}.{check_token('name', name)}"


class JetStreamInputs(JetStreamKeys):
    """The inputs of jobs: a job's input is the same each time that it is put."""

    def __init__(self, nc: Client) -> None:
        super().__init__(nc, INPUTS)


class JetStreamObjects:
    """One JetStream bucket of objects."""

    def __init__(self, nc: Client, bucket: str) -> None:
        self._nc = nc
        self._bucket = bucket
        self._stream = f"OBJ_{bucket}"

    async def put(self, name: str, content: bytes, *, note: str = "", before: Found | None = None) -> None:
        """Durable when this returns, in the place of what had that name before. Where a small one takes the place of a
        large one, its caller says so: nothing is looked for."""
        if len(content) > SMALL_BYTES:
            await self._put_in_chunks(name, content, note=note)
        else:
            await self._put_word(name, content, note, {"content": base64.b64encode(content).decode()})
            if before is not None:
                await self._forget_chunks(before)

    async def get(self, name: str) -> bytes | None:
        """Null where there is none, or where it is not whole."""
        found = await self.find(name)
        return None if found is None else await self.read(found)

    async def read(self, found: Found) -> bytes | None:
        """Its bytes and no later one's; null where it is not whole, or not any more."""
        content = b"".join([chunk async for chunk in self._chunks(found)])
        return content if hashlib.sha256(content).hexdigest() == found.digest else None

    async def find(self, name: str) -> Found | None:
        """What is known of it, or null where there is none."""
        message = await message_in(self._nc, self._stream, {"last_by_subj": self._word_about(name)})
        if message is None:
            return None
        word: dict[str, Any] = from_json(base64.b64decode(message["data"]))
        text, nuid = word.get("content"), word.get("nuid", "")
        if not nuid and text is None:
            return None
        digest = base64.urlsafe_b64decode(word["digest"].removeprefix(DIGEST)).hex()
        content = None if text is None else base64.b64decode(text)
        return Found(name, word["size"], digest, nuid, word.get("description") or "", content)

    async def stream(self, found: Found, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        """The bytes from `start` to before `end`, chunk by chunk. `LogRefused` where the object is not whole any more:
        a caller that has passed on the first chunks must not end as if that were all."""
        end, at = found.size if end is None else end, 0
        async for chunk in self._chunks(found):
            piece = chunk[max(0, start - at) : max(0, end - at)]
            at += len(chunk)
            if piece:
                yield piece
            if at >= end:
                return
        if at < end:
            raise LogRefused(reason=f"object {found.name} has {at} bytes left of {found.size}")

    async def names(self, prefix: str = "") -> list[str]:
        """Of all that is there now, sorted."""
        words = f"$O.{self._bucket}.M."
        subjects = await subjects_of(self._nc, self._stream, f"{words}>")
        names = (_name_in(subject.removeprefix(words)) for subject in subjects)
        return sorted(name for name in names if name is not None and name.startswith(prefix))

    async def delete(self, name: str) -> None:
        """Gone when this returns, whether there was one or not. The word about it goes last: as long as it stands, its
        chunks can be found and deleted by the next try."""
        found = await self.find(name)
        if found is not None:
            await self._forget_chunks(found)
        await self._purge(self._word_about(name))

    async def _put_in_chunks(self, name: str, content: bytes, *, note: str) -> None:
        """What had that name stands until the word about the new one does."""
        before, nuid = await self.find(name), secrets.token_hex(11)
        subject, parts = self._chunk(nuid), range(0, len(content), CHUNK_BYTES)
        try:
            for first in range(0, len(parts), IN_FLIGHT):
                sent = (self._send(subject, content[at : at + CHUNK_BYTES]) for at in parts[first : first + IN_FLIGHT])
                for outcome in await asyncio.gather(*sent, return_exceptions=True):
                    if outcome is not None:
                        raise outcome
            await self._put_word(name, content, note, {"nuid": nuid, "chunks": len(parts)})
        except LogError:
            with suppress(LogError):  # then they go with their time
                await self._purge(subject)
            raise
        if before is not None:
            await self._forget_chunks(before)

    async def _put_word(self, name: str, content: bytes, note: str, where: Mapping[str, str | int]) -> None:
        """The word about an object, as other tools read it. What they do not know is where a small one stands."""
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
        word = {
            "name": name,
            "description": note,
            "bucket": self._bucket,
            "size": len(content),
            "digest": f"{DIGEST}{digest}",
            **where,
        }
        await self._send(self._word_about(name), to_json(word), headers={"Nats-Rollup": "sub"})

    async def _send(self, subject: str, content: bytes, *, headers: dict[str, str] | None = None) -> None:
        await published(self._nc, subject, content, headers=headers, about=self._bucket)

    async def _forget_chunks(self, found: Found) -> None:
        if found.nuid:
            await self._purge(self._chunk(found.nuid))

    def _chunk(self, nuid: str) -> str:
        return f"$O.{self._bucket}.C.{nuid}"

    async def _chunks(self, found: Found) -> AsyncGenerator[bytes]:
        """One by one: nats-py's own `get` waits for ever when its consumer is lost."""
        if found.content is not None:
            yield found.content
            return
        seq, subject = 0, self._chunk(found.nuid)
        while chunk := await message_in(self._nc, self._stream, {"seq": seq + 1, "next_by_subj": subject}):
            yield base64.b64decode(chunk["data"])
            seq = chunk["seq"]

    async def _purge(self, subject: str) -> None:
        await ask(self._nc, "STREAM.PURGE", stream=self._stream, question={"filter": subject})

    def _word_about(self, name: str) -> str:
        encoded = base64.urlsafe_b64encode(check_token("name", name).encode()).decode()
        return f"$O.{self._bucket}.M.{encoded}"


class MemoryBucket:
    """The twin of both, for tests and simulations."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._revisions: dict[str, int] = {}
        self._puts = 0

    async def put(self, name: str, content: bytes) -> None:
        self._kept[check_token("name", name)] = content
        self._puts += 1
        self._revisions[name] = self._puts

    async def revision(self) -> int:
        return self._puts

    async def get(self, name: str) -> bytes | None:
        return self._kept.get(check_token("name", name))

    async def find(self, name: str) -> Found | None:
        content = await self.get(name)
        return None if content is None else Found(name, len(content), hashlib.sha256(content).hexdigest())

    async def stream(self, found: Found, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        content = self._kept.get(found.name, b"")
        if len(content) < (found.size if end is None else end):
            raise LogRefused(reason=f"object {found.name} has {len(content)} bytes left of {found.size}")
        yield content[start:end]

    async def names(self, prefix: str = "") -> list[str]:
        return sorted(name for name in self._kept if name.startswith(prefix))

    async def delete(self, name: str) -> None:
        self._kept.pop(check_token("name", name), None)
        self._revisions.pop(name, None)

    async def purge(self, name: str, *, through: int | None = None) -> None:
        if through is None or self._revisions.get(name, 0) <= through:
            await self.delete(name)


async def published(nc: Client, subject: str, content: bytes, *, headers: dict[str, str] | None, about: str) -> None:
    """One message, durable when this returns."""
    with translated(about):
        reply = await nc.request(subject, content, timeout=PUT_WITHIN_S, headers=headers)
    error = from_json(reply.data).get("error")
    if error is not None:
        raise fault_in(error, about=about)


def _name_in(encoded: str) -> str | None:
    """Null for what is no name that was put here: who may write may write anything, and it must not hide the others."""
    try:
        return check_token("name", base64.urlsafe_b64decode(encoded).decode())
    except ValueError:
        return None

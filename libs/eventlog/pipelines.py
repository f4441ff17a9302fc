"""Which pipelines there are: what each pool's workers have announced of theirs, under `<pool>.<name>` in a bucket.

It lasts: neither a lost view nor a pool without workers forgets one, an operator removes what is not to come back. What
is built in is known by its name before any worker has said so. Owns the record and its way into the bucket.
"""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Annotated, Any

from nats.aio.client import Client
from pydantic import Field, StringConstraints, ValidationError

from headgate_contracts.records import Record, StageTitle
from headgate_contracts.tokens import Token, check_token
from headgate_contracts.vocabulary import MOST_STAGES
from headgate_pipeline.rules import MAX_SCHEMA_BYTES
from libs.eventlog.api import message_in, state_of, subjects_of
from libs.eventlog.buckets import ERASED, published
from libs.eventlog.streams import PIPELINES


class AnnouncedPipeline(Record):
    """What the workers of a pool say of a pipeline. Without a schema its input is checked in the stage alone."""

    name: Token
    pool: Token
    version: Annotated[str, StringConstraints(max_length=64)] = ""
    titles: Annotated[tuple[StageTitle, ...], Field(max_length=MOST_STAGES)] = ()
    again_at: Token | None = None
    input_schema: dict[str, Any] | None = None

    @property
    def place(self) -> tuple[str, str]:
        return self.pool, self.name


def fitting(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The schema, if it is of a size that every submission can be checked by."""
    return dict(schema) if schema is not None and len(json.dumps(schema)) <= MAX_SCHEMA_BYTES else None


class JetStreamPipelines:
    """The bucket PIPELINES."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._stream = f"KV_{PIPELINES}"

    async def announce(self, pipeline: AnnouncedPipeline) -> bool:
        """Durable when this returns; false where the same is there already."""
        if await self._at(_subject(pipeline.pool, pipeline.name)) == pipeline:
            return False
        content = pipeline.model_dump_json(exclude_none=True).encode()
        await published(self._nc, _subject(*pipeline.place), content, headers=None, about=PIPELINES)
        return True

    async def all(self) -> tuple[AnnouncedPipeline, ...]:
        """In order of pool and name. What cannot be read is none."""
        subjects = await subjects_of(self._nc, self._stream, f"$KV.{PIPELINES}.>")
        found = await asyncio.gather(*map(self._at, sorted(subjects)))
        return tuple(each for each in found if each is not None)

    async def revision(self) -> int:
        """Grows with each word."""
        return (await state_of(self._nc, self._stream)).last_seq

    async def remove(self, pool: str, name: str) -> bool:
        """Gone when this returns; false where there was none."""
        if await self._at(_subject(pool, name)) is None:
            return False
        await published(self._nc, _subject(pool, name), b"", headers=ERASED, about=PIPELINES)
        return True

    async def _at(self, subject: str) -> AnnouncedPipeline | None:
        message = await message_in(self._nc, self._stream, {"last_by_subj": subject})
        return None if message is None or not message.get("data") else _read(base64.b64decode(message["data"]))


class MemoryPipelines:
    """The twin of `JetStreamPipelines`, in memory."""

    def __init__(self, *announced: AnnouncedPipeline) -> None:
        self._kept = {each.place: each for each in announced}
        self._words = len(announced)

    async def announce(self, pipeline: AnnouncedPipeline) -> bool:
        if self._kept.get(pipeline.place) == pipeline:
            return False
        self._kept[pipeline.place] = pipeline
        self._words += 1
        return True

    async def all(self) -> tuple[AnnouncedPipeline, ...]:
        return tuple(self._kept[place] for place in sorted(self._kept))

    async def revision(self) -> int:
        return self._words

    async def remove(self, pool: str, name: str) -> bool:
        found = self._kept.pop((check_token("pool", pool), check_token("pipeline", name)), None)
        self._words += found is not None
        return found is not None


def _subject(pool: str, name: str) -> str:
    return f"$KV.{PIPELINES}.{check_token('pool', pool)}.{check_token('pipeline', name)}"


def _read(content: bytes) -> AnnouncedPipeline | None:
    """What a later version may have written otherwise hides none of the others."""
    try:
        return AnnouncedPipeline.model_validate_json(content)
    except ValidationError:
        return None

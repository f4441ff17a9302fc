"""Makes the streams, the buckets and the pools' consumers, and brings those that are there in line. The one place that
changes them.

Owns the log's epoch: a ULID in the metadata of JOBS, given once, when the stream is made. Refuses to delete anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client

from libs.eventlog.api import EPOCH_KEY, ask, state_of
from libs.eventlog.errors import LogMissing, LogRefused
from libs.eventlog.guard import settings_differences, stream_differences
from libs.eventlog.pools import pool_consumer, pool_settings
from libs.eventlog.streams import JOBS, LogSettings, Stream, streams


@dataclass(frozen=True, slots=True)
class Migrated:
    """What was done: the streams and consumers that were made, and each setting that was changed."""

    made: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...] = ()


async def migrate(nc: Client, settings: LogSettings, *, new_epoch: str) -> Migrated:
    """Bring all in line. `new_epoch` becomes the log's, if there is none yet; run twice, it changes nothing."""
    made: list[str] = []
    changed: list[str] = []
    for stream in streams(settings):
        found = await _config_of(nc, stream)
        epoch = {EPOCH_KEY: new_epoch} if stream.name == JOBS else {}
        if found is None:
            found = await _make(nc, stream, metadata=epoch)
        if found is None:
            made.append(stream.name)
            continue
        differences = stream_differences(stream, found)
        metadata = epoch | _own(found.get("metadata", {}))
        if differences or metadata != _own(found.get("metadata", {})):
            await ask(
                nc, "STREAM.UPDATE", stream=stream.name, question=_request(stream, found=found, metadata=metadata)
            )
            changed += differences
    for pool in settings.pools:
        await _bring_in_line(nc, pool, made=made, changed=changed)
    return Migrated(tuple(made), tuple(changed))


async def _bring_in_line(nc: Client, pool: str, *, made: list[str], changed: list[str]) -> None:
    """The consumer of a pool. What it has delivered and what was acked stays."""
    name, wanted = pool_consumer(pool), pool_settings(pool)
    place = f"{JOBS}.{name}"
    try:
        found: Mapping[str, Any] = (await ask(nc, "CONSUMER.INFO", stream=place, question={}))["config"]
    except LogMissing:
        made.append(name)
    else:
        differences = settings_differences(name, wanted, found)
        if not differences:
            return
        changed += differences
    await ask(nc, "CONSUMER.CREATE", stream=place, question={"stream_name": JOBS, "config": wanted})


async def _make(nc: Client, stream: Stream, *, metadata: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Gives the settings that are there where somebody else made it first: the server takes one of two."""
    try:
        await ask(nc, "STREAM.CREATE", stream=stream.name, question=_request(stream, found={}, metadata=metadata))
    except LogRefused:
        if found := await _config_of(nc, stream):
            return found
        raise
    return None


async def _config_of(nc: Client, stream: Stream) -> Mapping[str, Any] | None:
    try:
        return (await state_of(nc, stream.name)).config
    except LogMissing:
        return None


def _request(stream: Stream, *, found: Mapping[str, Any], metadata: Mapping[str, str]) -> dict[str, Any]:
    """What is there, with our settings over it; what must not be set is left out."""
    wanted = {**found, "name": stream.name, **stream.settings, "metadata": metadata}
    return {key: value for key, value in wanted.items() if value is not None}


def _own(metadata: Mapping[str, str]) -> dict[str, str]:
    """Without what the server writes there about itself."""
    return {key: value for key, value in metadata.items() if not key.startswith("_nats.")}

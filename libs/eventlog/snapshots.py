"""Where folds of the log are kept: bytes under a mark. What they hold is their writer's business.

They are objects, not keys, because a fold grows past what one message may hold. There are two places; a snapshot takes
that of the older one, so the newest is whole while the next is written. A snapshot is a shortcut and never the truth:
one that cannot be read is passed over.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from dataclasses import dataclass

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ObjectInfo, ObjectMeta
from nats.js.errors import NotFoundError
from nats.js.object_store import ObjectStore

from libs.eventlog.api import message_in
from libs.eventlog.edge import translated
from libs.eventlog.streams import SNAPSHOTS
from libs.eventlog.values import Mark

PLACES = ("fold-a", "fold-b")
STREAM = f"OBJ_{SNAPSHOTS}"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Found:
    mark: Mark
    info: ObjectInfo


class JetStreamSnapshots:
    """Snapshots in the bucket SNAPSHOTS."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc

    async def put(self, data: bytes, *, mark: Mark) -> None:
        """In the place of the older one, or of one of another log."""
        found = {each.info.name: each.mark for each in await self._found()}
        place = min(PLACES, key=lambda name: age_of(found.get(name), mark))
        meta = ObjectMeta(name=place, description=f"{mark.epoch} {mark.seq}")
        with translated(STREAM):
            await (await self._store()).put(place, data, meta=meta)

    async def newest(self, epoch: str) -> tuple[Mark, bytes] | None:
        """The furthest one of this log whose bytes are all there."""
        ours = [found for found in await self._found() if found.mark.epoch == epoch]
        for found in sorted(ours, key=lambda found: -found.mark.seq):
            data = await self._data_of(found.info)
            if data is not None:
                return found.mark, data
            _log.warning("the snapshot at %s is damaged and passed over", found.mark)
        return None

    async def _found(self) -> list[_Found]:
        store, found = await self._store(), list[_Found]()
        for place in PLACES:
            with translated(STREAM):
                try:
                    info = await store.get_info(place)
                except NotFoundError:
                    continue
            epoch, _, seq = (info.description or "").partition(" ")
            found.append(_Found(Mark(epoch, int(seq)), info))
        return found

    async def _data_of(self, info: ObjectInfo) -> bytes | None:
        """Chunk by chunk from the leader: nats-py's own `get` waits for ever when its consumer is lost."""
        data, seq = bytearray(), 0
        while chunk := await message_in(
            self._nc, STREAM, {"seq": seq + 1, "next_by_subj": f"$O.{SNAPSHOTS}.C.{info.nuid}"}
        ):
            data += base64.b64decode(chunk["data"])
            seq = chunk["seq"]
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
        return bytes(data) if info.digest == f"SHA-256={digest}" else None

    async def _store(self) -> ObjectStore:
        with translated(STREAM):
            return await JetStreamContext(self._nc).object_store(SNAPSHOTS)


def age_of(found: Mark | None, mark: Mark) -> int:
    """The least is the first to go: nothing, then another log's, then the older one of this log."""
    if found is None:
        return -2
    return found.seq if found.epoch == mark.epoch else -1

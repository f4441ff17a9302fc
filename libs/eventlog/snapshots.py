"""Where folds of the log are kept: bytes under a mark. What they hold is their writer's business.

They are objects, not keys, because a fold grows past what one message may hold. There are two places; a snapshot takes
that of the older one, so the newest is whole while the next is written. A snapshot is a shortcut and never the truth:
one that cannot be read is passed over.
"""

import logging
from dataclasses import dataclass

from nats.aio.client import Client

from libs.eventlog.buckets import Found, JetStreamObjects
from libs.eventlog.streams import SNAPSHOTS
from libs.eventlog.values import Mark

PLACES = ("fold-a", "fold-b")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    mark: Mark
    kept: Found


class JetStreamSnapshots:
    """Snapshots in the bucket SNAPSHOTS. The note at each is its mark."""

    def __init__(self, nc: Client) -> None:
        self._objects = JetStreamObjects(nc, SNAPSHOTS)

    async def put(self, data: bytes, *, mark: Mark) -> None:
        """In the place of the older one, or of one of another log."""
        there = {each.kept.name: each for each in await self._there()}
        marks = {name: each.mark for name, each in there.items()}
        place = min(PLACES, key=lambda name: age_of(marks.get(name), mark))
        before = there[place].kept if place in there else None
        await self._objects.put(place, data, note=f"{mark.epoch} {mark.seq}", before=before)

    async def newest(self, epoch: str) -> tuple[Mark, bytes] | None:
        """The furthest one of this log whose bytes are all there."""
        ours = [each for each in await self._there() if each.mark.epoch == epoch]
        for each in sorted(ours, key=lambda each: -each.mark.seq):
            data = await self._objects.read(each.kept)
            if data is not None:
                return each.mark, data
            _log.warning("the snapshot at %s is damaged and passed over", each.mark)
        return None

    async def _there(self) -> list[_Snapshot]:
        found = [await self._objects.find(place) for place in PLACES]
        return [_Snapshot(_mark_in(each.note), each) for each in found if each is not None]


def _mark_in(note: str) -> Mark:
    epoch, _, seq = note.partition(" ")
    return Mark(epoch, int(seq))


def age_of(found: Mark | None, mark: Mark) -> int:
    """The least is the first to go: nothing, then another log's, then the older one of this log."""
    if found is None:
        return -2
    return found.seq if found.epoch == mark.epoch else -1

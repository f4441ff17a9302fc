"""A bucket of work that watches what is put there under which name."""

from __future__ import annotations

from libs.eventlog.buckets import MemoryBucket


class WatchedShelf(MemoryBucket):
    """Who stores twice under one name stores the same: a message may be repeated, and land late."""

    def __init__(self) -> None:
        super().__init__()
        self.put_once: dict[str, bytes] = {}
        self.overwritten: list[str] = []

    async def put(self, name: str, content: bytes) -> None:
        if self.put_once.setdefault(name, content) != content:
            self.overwritten.append(name)
        await super().put(name, content)

    def holds(self, name: str) -> bool:
        return name in self._kept

"""The log's server in a simulation: the twin, which tells of each record and decodes it once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from libs.eventlog.memory import MemoryServer
from libs.eventlog.values import Record


class _Decoded:
    """A stored message that has made its journey as bytes once: what is read of it is frozen."""

    def __init__(self, kept: Any) -> None:
        self.seq, self.at, self.message = kept.seq, kept.at, kept.message
        self._record: Record = kept.record()

    def record(self) -> Record:
        return self._record


class Server(MemoryServer):
    """The log, and who is to hear of each record."""

    heard: Callable[[Record], None]

    def _store(self, message: Any) -> None:
        super()._store(message)
        kept = self._kept[-1] = _Decoded(self._kept[-1])  # type: ignore[assignment,call-overload]
        self.heard(kept.record())

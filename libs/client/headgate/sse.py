"""Server-sent events off the bytes of one connection, as they come in. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.errors import NotHeadgate

MOST_BYTES: Final = 16 * 1024 * 1024  # of one event: the largest message of the log has one


@dataclass(frozen=True, slots=True)
class Frame:
    """One event as it was sent. `id` is null for those that cannot be resumed from."""

    name: str
    data: Any
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to wait before the next connection."""

    after_ms: int


@dataclass(slots=True)
class FrameReader:
    """Of one connection. An event that it was cut in is never given. `heard` says that somebody spoke: an event came,
    or a comment, which keeps a connection open that has nothing to tell."""

    heard: bool = False
    _rest: bytearray = field(default_factory=bytearray)
    _size: int = 0  # of the event that is under way
    _fields: dict[str, str] = field(default_factory=dict[str, str])

    def feed(self, piece: bytes) -> Iterator[Frame | Retry]:
        """What is complete with this piece."""
        self._rest += piece
        *lines, self._rest = self._rest.split(b"\n")
        for raw in lines:
            line = self._counted(raw).decode(errors="replace").removesuffix("\r")
            if line:
                self._take(line)
            else:
                self.heard = self.heard or "data" in self._fields
                yield from _complete(self._fields)
                self._fields, self._size = {}, 0
        self._counted(self._rest, is_whole=False)

    def _counted(self, part: bytearray, *, is_whole: bool = True) -> bytearray:
        """An event is not larger than any may be, and neither is a line whose end is still to come."""
        if self._size + len(part) > MOST_BYTES:
            raise NotHeadgate
        self._size += len(part) if is_whole else 0
        return part

    def _take(self, line: str) -> None:
        if line.startswith(":"):
            self.heard = True
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        again = name == "data" and name in self._fields
        self._fields[name] = f"{self._fields[name]}\n{value}" if again else value


def _complete(fields: dict[str, str]) -> Iterator[Frame | Retry]:
    try:
        if fields.get("retry", "").isdecimal():
            yield Retry(int(fields["retry"]))
        if "data" in fields:
            yield Frame(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id"))
    except (ValueError, RecursionError) as error:
        raise NotHeadgate from error

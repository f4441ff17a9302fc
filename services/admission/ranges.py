"""Which part of a content a client wants (RFC 9110, 14). Pure.

Owns the reading of `Range` and `If-Range`. Of what it cannot read, and of several ranges at once, it
takes no notice: then the whole content is the answer, as the RFC has it.
"""

import re
from dataclasses import dataclass
from typing import Final

ONE_RANGE: Final = re.compile(r"bytes=\s*(\d{0,15})-(\d{0,15})\s*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Whole:
    """All of the content was asked for."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """No byte of the content is in the range."""


def wanted_part(
    asked: str | None, *, size: int, etag: str, if_range: str | None = None
) -> Whole | ByteRange | OutOfRange:
    """What `Range` asks of a content of this size. With another version's `If-Range` it asks for all of it."""
    found = ONE_RANGE.fullmatch(asked or "")
    if found is None or found[0].strip().endswith("=-") or (if_range is not None and if_range.strip() != etag):
        return Whole()
    first, last = found[1], found[2]
    if first and last and int(last) < int(first):
        return Whole()
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    return ByteRange(start, end) if start < end else OutOfRange()

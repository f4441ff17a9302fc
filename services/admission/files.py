"""What a result holds, read from its archive in memory: no file of it is ever written here. Pure.

Owns which type a file is shown as. The list is short: text of every kind is text, also what a browser would run
(HTML, scripts), images are what they are called, all else is octets.
"""

import codecs
import io
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from headgate_contracts.shown import ShownFile
from libs.runtime.archives import Most, entries_of, refusing
from libs.runtime.errors import ArchiveRefused

MIB: Final = 1024 * 1024
PACKED_BYTES: Final = 32 * MIB  # held in memory while it is read
MOST: Final = Most(size_bytes=512 * MIB, entries=10_000, levels=128)  # some 3 s of a processor
FILE_BYTES: Final = 16 * MIB
LOOKED_AT: Final = 512  # bytes of a file that its name says nothing of

TEXT: Final = "text/plain; charset=utf-8"
MARKDOWN: Final = "text/markdown; charset=utf-8"
OCTETS: Final = "application/octet-stream"
TYPES: Final[Mapping[str, str]] = {
    ".md": MARKDOWN,
    ".json": "application/json",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
}


def listed(archive: bytes) -> tuple[ShownFile, ...]:
    """Each file, by path. Of two with one name the later one counts, as where they are unpacked."""
    found: dict[str, ShownFile] = {}
    with refusing():
        for entry in entries_of(io.BytesIO(archive), most=MOST):
            if not entry.is_folder:
                path = str(entry.path)
                found[path] = ShownFile(
                    path=path, size=entry.size, type=_type_of(path, entry.content().read(LOOKED_AT))
                )
    return tuple(found[path] for path in sorted(found))


def content_of(archive: bytes, path: str) -> tuple[bytes, str] | None:
    """One file and its type; null where there is none. The archive is read to its end, where its checksum is."""
    found: bytes | None = None
    with refusing():
        for entry in entries_of(io.BytesIO(archive), most=MOST):
            if not entry.is_folder and str(entry.path) == path:
                if entry.size > FILE_BYTES:
                    raise ArchiveRefused(f"the file has {entry.size} bytes, more than {FILE_BYTES}")
                found = entry.content().read()
    return None if found is None else (found, _type_of(path, found[:LOOKED_AT]))


def _type_of(path: str, begins: bytes) -> str:
    known = TYPES.get(PurePosixPath(path).suffix.lower())
    return known or (TEXT if _is_text(begins) else OCTETS)


def _is_text(begins: bytes) -> bool:
    """UTF-8 without a control that text has none of; its last character may be cut."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(begins)
    except UnicodeDecodeError:
        return False
    return all(each >= " " or each in "\t\n\r\f\x1b" for each in text)

"""Server-sent events as bytes. Pure: one function a kind of line, written by hand because there are only four."""

from pydantic_core import to_json


def frame(event: str, data: object, *, id: str | None = None) -> bytes:  # noqa: A002 the field's own name
    """One event. JSON has no line breaks, so its data is one line."""
    head = f"id: {id}\n" if id is not None else ""
    return f"{head}event: {event}\ndata: ".encode() + to_json(data, by_alias=True, exclude_none=False) + b"\n\n"


LAST_CHUNK = b"0\r\n\r\n"  # the whole is complete


def chunk(piece: bytes) -> bytes:
    """A piece as HTTP/1.1 sends it where nobody knows how long the whole will be."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def comment(text: str) -> bytes:
    """What keeps a silent connection open, and shows that it is."""
    return f": {text}\n\n".encode()


def retry(after_ms: int) -> bytes:
    """When the client should connect again after the stream has ended."""
    return f"retry: {after_ms}\n\n".encode()

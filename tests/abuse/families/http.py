"""HTTP at the socket: what is no request, or two at once, is refused; nothing is read as another request than was sent.

`gateway` is the public door, `admission` and `notifier` are the services' own ports: a cluster's network reaches them.
"""

from __future__ import annotations

from typing import Final

from tests.abuse.attempts import Attempt, Sends

HEAD: Final = b"Host: h\r\nAuthorization: Bearer <token>\r\nContent-Type: application/json\r\n"
HIDDEN: Final = b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"  # would be answered with 200 where it is read as a request
LAST: Final = b"GET /livez HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


def _post(lines: bytes, body: bytes = b"") -> bytes:
    return b"POST /v1/jobs HTTP/1.1\r\n" + HEAD + lines + b"\r\n" + body


def _get(line: bytes = b"GET /livez HTTP/1.1", lines: bytes = b"Host: h\r\n") -> bytes:
    return line + b"\r\n" + lines + b"\r\n"


FRAMES: Final[dict[str, bytes]] = {
    "two lengths that differ": _post(b"Content-Length: 2\r\nContent-Length: 40\r\n", b"{}" + HIDDEN),
    "two lengths in one line": _post(b"Content-Length: 2, 40\r\n", b"{}" + HIDDEN),
    "a length with a plus": _post(b"Content-Length: +2\r\n", b"{}" + HIDDEN),
    "a length below zero": _post(b"Content-Length: -1\r\n", HIDDEN),
    "a length in hexadecimal": _post(b"Content-Length: 0x2\r\n", b"{}" + HIDDEN),
    "a length with a space in it": _post(b"Content-Length: 2 0\r\n", b"{}" + HIDDEN),
    "a length of 30 digits": _post(b"Content-Length: " + b"9" * 30 + b"\r\n", HIDDEN),
    "a length in other digits": _post("Content-Length: ２\r\n".encode(), b"{}" + HIDDEN),
    "chunks that are none": _post(b"Transfer-Encoding: chunked\r\n", b"zz\r\n" + HIDDEN),
    "a chunk longer than it says": _post(b"Transfer-Encoding: chunked\r\n", b"1\r\n{}\r\n0\r\n\r\n" + HIDDEN),
    "a chunk of a negative size": _post(b"Transfer-Encoding: chunked\r\n", b"-1\r\n" + HIDDEN),
    "a chunk of 21 digits": _post(b"Transfer-Encoding: chunked\r\n", b"1" * 21 + b"\r\n" + HIDDEN),
    "a chunk with 0x": _post(b"Transfer-Encoding: chunked\r\n", b"0x2\r\n{}\r\n0\r\n\r\n" + HIDDEN),
}
LINES: Final[dict[str, bytes]] = {
    "a header with a space before its colon": _get(lines=b"Host: h\r\nA : b\r\n"),
    "a header without a colon": _get(lines=b"Host: h\r\nnonsense\r\n"),
    "a header without a name": _get(lines=b"Host: h\r\n: b\r\n"),
    "a header with a null character": _get(lines=b"Host: h\r\nA: b\0c\r\n"),
    "a header that is not ASCII in its name": _get(lines=b"Host: h\r\n\xc3\xa9: b\r\n"),
    "a line that goes on, at the first": _get(lines=b" Host: h\r\nHost: h\r\n"),
    "no Host": _get(lines=b""),
    "two Hosts": _get(lines=b"Host: h\r\nHost: g\r\n"),
    "no version": b"GET /livez\r\nHost: h\r\n\r\n",
    "HTTP/0.9": b"GET /livez\r\n\r\n",
    "a space too many": _get(b"GET  /livez HTTP/1.1"),
    "a method in other characters": _get(b"G\xe9T /livez HTTP/1.1"),
    "no path": _get(b"GET HTTP/1.1"),
    "a null character in the path": _get(b"GET /live\0z HTTP/1.1"),
    "a raw carriage return in a header": _get(lines=b"Host: h\r\nA: b\rX-Evil: yes\r\n"),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a word": b"hello\r\n\r\n",
}
BOTH: Final = _post(b"Transfer-Encoding: CHUNKED\r\nContent-Length: 6\r\n", b"0\r\n\r\n" + HIDDEN)


def _at(door: str, rows: dict[str, bytes], gets: tuple[int, ...] = (400,)) -> dict[str, Attempt]:
    return {name: Sends(raw, gets, door=door) for name, raw in rows.items()}


TABLE: Final[dict[str, dict[str, Attempt]]] = {
    "the gateway reads one body": {
        **_at("gateway", FRAMES),
        "an encoding that is none": Sends(_post(b"Transfer-Encoding: xchunked\r\n", HIDDEN), (501,)),
        "an encoding beside chunked": Sends(_post(b"Transfer-Encoding: gzip, chunked\r\n", HIDDEN), (501,)),
        "identity": Sends(_post(b"Transfer-Encoding: identity\r\n", HIDDEN), (501,)),
        "chunked twice": Sends(_post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", HIDDEN), (501,)),
        "chunked behind a vertical tab": Sends(_post(b"Transfer-Encoding:\x0bchunked\r\n", HIDDEN), (400,)),
        "a trailer that would be a header": Sends(
            _post(b"Transfer-Encoding: chunked\r\n", b"2\r\n{}\r\n0\r\nAuthorization Bearer x\r\n\r\n"), (400,)
        ),
    },
    "the gateway reads one head": {
        **_at("gateway", LINES),
        "a Host with a path": Sends(_get(lines=b"Host: h/../admin\r\n"), (400,)),
        "the preface of HTTP/2": Sends(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ()),
    },
    "a service reads one body": _at("admission", FRAMES),
    "a service reads one head": _at("admission", LINES),
    "two requests are two": {
        "a body, then what is behind it": Sends(_post(b"Content-Length: 2\r\n", b"{}" + LAST), (422,)),
        "a length of nothing, then a body": Sends(_get(lines=b"Host: h\r\nContent-Length: 0\r\n") + LAST, (200, 200)),
        "three at once, in their order": Sends(HIDDEN + _get(b"GET /nowhere HTTP/1.1") + LAST, (200, 404)),
        "a body where none belongs": Sends(
            _get(lines=b"Host: h\r\nContent-Length: 4\r\n") + b"GET " + LAST, (200, 200)
        ),
        "both lengths and chunks": Sends(BOTH, (422,)),
        "both, at a service": Sends(BOTH, (422,), door="admission"),
    },
    "a target is a path": {
        "absolute, of another host": Sends(_get(b"GET http://evil.example/v1/jobs HTTP/1.1"), (401,)),
        "CONNECT": Sends(b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\nConnection: close\r\n\r\n", (404,)),
        "an asterisk": Sends(_get(b"OPTIONS * HTTP/1.1", b"Host: h\r\nConnection: close\r\n"), (200,)),
        "TRACE": Sends(_get(b"TRACE /v1/jobs HTTP/1.1", b"Host: h\r\nConnection: close\r\n"), (405,)),
        "a scheme": Sends(_get(b"GET file:///etc/passwd HTTP/1.1", b"Host: h\r\nConnection: close\r\n"), (404,)),
        "escapes that are none": Sends(_get(b"GET /%zz HTTP/1.1"), (400,)),
    },
    "a head has a size": {
        "one header of 20,000 characters": Sends(_get(lines=b"Host: h\r\nA: " + b"a" * 20_000 + b"\r\n"), (431,)),
        "a path of 20,000 characters": Sends(_get(b"GET /" + b"a" * 20_000 + b" HTTP/1.1"), (431,)),
        "5,000 headers": Sends(_get(lines=b"Host: h\r\n" + b"a: b\r\n" * 5000), (431,)),
        "a name of 20,000 characters": Sends(_get(lines=b"Host: h\r\n" + b"a" * 20_000 + b": b\r\n"), (431,)),
        "at a service": Sends(_get(lines=b"Host: h\r\nA: " + b"a" * 200_000 + b"\r\n"), (400,), door="admission"),
        "5,000 headers at a service": Sends(
            _get(lines=b"Host: h\r\n" + b"a: b\r\n" * 50_000), (400,), door="admission"
        ),
    },
}

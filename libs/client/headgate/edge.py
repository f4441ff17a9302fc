"""Where httpx begins: its client's settings, and what its answers and faults are to a script."""

import os
import random
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpx

from headgate.errors import Invalid, NotConfigured, NotHeadgate
from headgate.exchange import KEY, Answer, NoAnswer, Patience, Request, Terms, unheard

URL, TOKEN = "HEADGATE_URL", "HEADGATE_TOKEN"
CONNECTED_WITHIN_S: Final = 10.0
WORD: Final = re.compile(r"[!-~]+")  # printable ASCII without a blank
ELSEWHERE: Final = frozenset({"", ".", ".."})  # parts of a path with which it leads to another route
LONGEST_TARGET: Final = 8192  # characters; of more than that and a token gateways and servers cut the connection
FAULTS: Final = (httpx.RequestError, httpx.StreamError)  # of the way to a server; what is left is a mistake of ours


@dataclass(frozen=True, slots=True)
class Target:
    """Where Headgate is, and as whom to ask."""

    url: str
    token: str = field(repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """For either of httpx's clients. What is on this machine is asked without a proxy."""
        return {
            "base_url": self.url,
            "headers": {"Authorization": f"Bearer {self.token}", "User-Agent": "headgate-client"},
            "trust_env": not _is_here(urlsplit(self.url).hostname or ""),
        }


def target_of(url: str | None, token: str | None, environ: Mapping[str, str] = os.environ) -> Target:
    """What was said, else what the environment says; without the end of a line that came with it. A token is never
    repeated in what is said against it."""
    found, by = (url or environ.get(URL) or "").strip(), (token or environ.get(TOKEN) or "").strip()
    if not found or not by:
        raise NotConfigured(f"set {URL} and {TOKEN}, or name url and token")
    if not WORD.fullmatch(by):
        raise NotConfigured("the token holds a blank or a character that no token has")
    return Target(_checked(found), by)


def _checked(url: str) -> str:
    """As httpx can ask it, and with nothing in it that would be asked for beside the API."""
    try:
        parts, said = httpx.URL(url), urlsplit(url)
        usable = url.isprintable() and " " not in url and said.hostname and said.port != 0
    except (httpx.InvalidURL, ValueError) as error:
        raise NotConfigured(f"{_shown(url)} is no URL") from error
    if parts.scheme not in {"http", "https"} or not usable:
        raise NotConfigured(f"{_shown(url)} is no URL that begins with http:// or https://")
    if parts.userinfo or parts.query or parts.fragment or url.endswith(("?", "#")):
        raise NotConfigured(f"{_shown(url)} names a user, a query or a fragment: it is to be the URL alone")
    return url.rstrip("/")


def _shown(url: str) -> str:
    """Without a password."""
    return repr(url.rpartition("@")[2])


def terms_of(
    patience: Patience,
    now_s: Callable[[], float] = time.monotonic,
    catching_up: Callable[[str], None] | None = None,
) -> Terms:
    return Terms(
        patience=patience,
        now_s=now_s,
        random=random.random,
        new_key=lambda: uuid.uuid4().hex,
        catching_up=catching_up or unheard,
    )


def call_of(request: Request) -> dict[str, Any]:
    """What httpx makes a request of."""
    for name, value in request.headers.items():
        if not (value.isascii() and value.isprintable()):
            raise _unsendable(name)
    if not ELSEWHERE.isdisjoint(request.path.partition("?")[0].split("/")[1:]):
        raise _invalid("path", "", "an id, or a part of a file's path, is empty, `.` or `..`")
    target = request.target
    if len(target) > LONGEST_TARGET:
        raise _invalid("path", "", f"with the query it has {len(target)} characters, at most {LONGEST_TARGET} are sent")
    try:
        unquote(target, errors="strict")
    except UnicodeDecodeError:
        raise _invalid("path", "", "a name or a word holds half of a surrogate pair, which is no character") from None
    timeout = httpx.Timeout(request.within_s, connect=min(request.within_s, CONNECTED_WITHIN_S))
    return {
        "method": request.method,
        "url": target,
        "content": _content_of(request),
        "headers": request.all_headers,
        "timeout": timeout,
    }


def _content_of(request: Request) -> bytes | None:
    try:
        return request.content
    except (ValueError, RecursionError) as error:  # what holds itself, a number of more digits than Python writes
        raise _invalid("body", "", f"it cannot be written as JSON ({error})") from error


def answer_of(response: httpx.Response, *, content: bytes = b"") -> Answer:
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, content)


def no_answer(fault: Exception) -> NoAnswer:
    """In words: the system's own where it has some. Those about a request that could not be written quote it, with the
    token."""
    if isinstance(fault, httpx.LocalProtocolError):
        return NoAnswer("the request could not be written")
    cause: BaseException | None = fault
    words = str(fault) or type(fault).__name__
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            words = cause.strerror
        cause = cause.__cause__ or cause.__context__
    return NoAnswer(words)


def _unsendable(name: str) -> Invalid | NotHeadgate:
    """The key is the caller's word; any other was a server's."""
    if name != KEY:
        return NotHeadgate()
    return _invalid("header", KEY, "only printable ASCII can be sent")


def _invalid(place: str, field: str, message: str) -> Invalid:
    """As the server would say it."""
    wrong = {"in": place, "field": field, "message": message}
    return Invalid(422, {"type": "/problems/invalid", "detail": f"{field or place}: {message}", "errors": [wrong]})


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

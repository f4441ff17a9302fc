"""Where httpx begins: its client's settings, and what its answers and faults are to a script."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from headgate.errors import NotConfigured
from headgate.exchange import Answer, NoAnswer, Patience, Request, Terms

URL, TOKEN = "HEADGATE_URL", "HEADGATE_TOKEN"
CONNECTED_WITHIN_S: Final = 10.0
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
    """What was said, else what the environment says."""
    found, by = url or environ.get(URL), token or environ.get(TOKEN)
    if not found or not by:
        raise NotConfigured(f"set {URL} and {TOKEN}, or name url and token")
    parts = urlsplit(found)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise NotConfigured(f"{found!r} is no URL that begins with http:// or https://")
    return Target(found.rstrip("/"), by)


def terms_of(patience: Patience) -> Terms:
    return Terms(patience=patience, now_s=time.monotonic, random=random.random, new_key=lambda: uuid.uuid4().hex)


def call_of(request: Request) -> dict[str, Any]:
    """What httpx makes a request of."""
    timeout = httpx.Timeout(request.within_s, connect=min(request.within_s, CONNECTED_WITHIN_S))
    return {
        "method": request.method,
        "url": request.target,
        "content": request.content,
        "headers": request.all_headers,
        "timeout": timeout,
    }


def answer_of(response: httpx.Response, *, content: bytes = b"") -> Answer:
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, content)


def no_answer(fault: Exception) -> NoAnswer:
    """In words: the system's own where it has some."""
    cause: BaseException | None = fault
    words = str(fault) or type(fault).__name__
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            words = cause.strerror
        cause = cause.__cause__ or cause.__context__
    return NoAnswer(words)


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

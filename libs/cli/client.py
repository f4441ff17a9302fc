"""Headgate's HTTP API from the command line's side, on the standard library alone.

Owns requests, their repetition and what an answer means. A request that changes something carries an idempotency key,
so that it may be sent again after silence; whatever else the answer says is an error with its exit code.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from libs.cli.errors import NobodyAnswers, fault_of
from libs.cli.target import Target

ANSWER_WITHIN_S: Final = 15.0
TRIES: Final = 8  # a service that was killed is back within seconds
PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
NEXT: Final = re.compile(r'<([^>]+)>; rel="next"')


class Api:
    """One Headgate, asked by one user."""

    def __init__(self, target: Target, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.target = target
        self.sleep = sleep
        parts = urlsplit(target.url)
        self._secure = parts.scheme == "https"
        self._host, self._port, self._base = parts.hostname or "", parts.port, parts.path.rstrip("/")

    def get(self, path: str) -> Any:
        """What the answer's JSON says."""
        return json.loads(self.fetch("GET", path))

    def post(self, path: str, body: Mapping[str, object], *, key: str | None = None) -> Any:
        headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
        return json.loads(self.fetch("POST", path, body=json.dumps(body).encode(), headers=headers))

    def pages(self, path: str) -> Generator[list[Any]]:
        """A list page by page, as long as each names the next one."""
        following: str | None = path
        while following:
            response, content = self._answered("GET", following)
            yield json.loads(content)
            named = NEXT.search(response.headers.get("Link", ""))
            following = named[1] if named else None

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        within_s: float = ANSWER_WITHIN_S,
    ) -> Any:
        """What the answer's JSON says; sent once, as it may not be meant twice."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        answer = self.fetch(method, path, body=content, headers=headers, within_s=within_s)
        return json.loads(answer) if answer else None

    def fetch(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        within_s: float = ANSWER_WITHIN_S,
    ) -> bytes:
        """The answer's bytes. Where a service is away for a moment it is asked again."""
        return self._answered(method, path, body=body, headers=headers, within_s=within_s)[1]

    def _answered(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        within_s: float = ANSWER_WITHIN_S,
    ) -> tuple[HTTPResponse, bytes]:
        repeatable = method == "GET" or "Idempotency-Key" in (headers or {})
        for tries_left in reversed(range(TRIES if repeatable else 1)):
            try:
                with self.ask(method, path, body=body, headers=headers, within_s=within_s) as response:
                    content = response.read()
            except NobodyAnswers:
                if not tries_left:
                    raise
                self.sleep(PAUSE_S)
                continue
            if response.status < 300:
                return response, content
            if not (tries_left and _away_for_a_moment(response, content)):
                raise fault_of(response.status, _problem(content))
            self.sleep(min(float(response.headers["Retry-After"]), LONGEST_PAUSE_S))
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        within_s: float = ANSWER_WITHIN_S,
    ) -> Generator[HTTPResponse]:
        """One request, and its answer while the connection is open. `within_s` is for each piece of it."""
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=within_s)
        told = {"Authorization": f"Bearer {self.target.token}", "Accept": "*/*", **(headers or {})}
        try:
            connection.request(method, f"{self._base}{path}", body=body, headers=told)
            yield connection.getresponse()
        except (OSError, HTTPException) as error:
            raise NobodyAnswers(url=self.target.url, reason=str(error) or type(error).__name__) from error
        finally:
            connection.close()


def _away_for_a_moment(response: HTTPResponse, content: bytes) -> bool:
    """A full queue stays full for minutes; a service that starts again is there in seconds."""
    busy = str(_problem(content).get("type", "")).endswith("/busy")
    return response.status == 503 and not busy and response.headers.get("Retry-After", "").isdigit()


def _problem(content: bytes) -> dict[str, Any]:
    try:
        problem: object = json.loads(content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}  # pyright: ignore[reportUnknownVariableType] - its values are anything

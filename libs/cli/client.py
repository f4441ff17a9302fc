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
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from libs.cli.errors import NobodyAnswers, NoHeadgate, fault_of
from libs.cli.target import Target, find_target

ANSWER_WITHIN_S: Final = 15.0
TRIES: Final = 8  # a service that was killed is back within seconds
PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
NEXT: Final = re.compile(r'<([^>]+)>; rel="next"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked. `within_s` is for each piece of the answer."""

    method: str = "GET"
    path: str
    body: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    within_s: float = ANSWER_WITHIN_S

    @property
    def may_be_repeated(self) -> bool:
        return self.method == "GET" or "Idempotency-Key" in self.headers

    @property
    def content(self) -> bytes | None:
        return None if self.body is None else json.dumps(self.body).encode()


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
        return self._said(self.fetch(path))

    def fetch(self, path: str) -> bytes:
        """The answer as it is."""
        return self._answered(Request(path=path))[1]

    def pages(self, path: str) -> Generator[list[Any]]:
        """A list page by page, as long as each names the next one."""
        following: str | None = path
        while following:
            response, content = self._answered(Request(path=following))
            yield self._said(content)
            named = NEXT.search(response.headers.get("Link", ""))
            following = named[1] if named else None

    def post(self, path: str, body: Mapping[str, object], *, key: str | None = None) -> Any:
        """What the answer's JSON says; with a key it is sent until there is an answer."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return self._said(self._answered(Request(method="POST", path=path, body=body, headers=headers))[1])

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        within_s: float = ANSWER_WITHIN_S,
    ) -> Any:
        """What the answer's JSON says; sent once, as it may not be meant twice."""
        return self._said(self._answered(Request(method=method, path=path, body=body, within_s=within_s))[1])

    def _said(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except ValueError as error:
            raise NoHeadgate(url=self.target.url) from error

    def _answered(self, request: Request) -> tuple[HTTPResponse, bytes]:
        """The answer, read. Where a service is away for a moment it is asked again."""
        for tries_left in reversed(range(TRIES if request.may_be_repeated else 1)):
            try:
                with self.ask(request) as response:
                    content = response.read()
            except NobodyAnswers:
                if not tries_left:
                    raise
                self.sleep(PAUSE_S)
                continue
            if response.status < 300:
                return response, content
            if not (tries_left and _away_for_a_moment(response, content)):
                raise fault_of(response.status, problem_in(content))
            self.sleep(min(float(response.headers["Retry-After"]), LONGEST_PAUSE_S))
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def ask(self, request: Request) -> Generator[HTTPResponse]:
        """One request, and its answer while the connection is open."""
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=request.within_s)
        told = {"Authorization": f"Bearer {self.target.token}", "Accept": "*/*", **request.headers}
        if request.body is not None:
            told["Content-Type"] = "application/json"
        try:
            connection.request(request.method, f"{self._base}{request.path}", body=request.content, headers=told)
            yield connection.getresponse()
        except (OSError, HTTPException) as error:
            raise NobodyAnswers(url=self.target.url, reason=_reason(error)) from error
        finally:
            connection.close()


def user_api() -> Api:
    """As a user; where `headgate up` runs, as its first one."""
    return Api(find_target())


def operator_api() -> Api:
    """The same; where `headgate up` runs, as its operator."""
    return Api(find_target(as_operator=True))


def path_of(*names: str) -> str:
    """Where the API has it: each name is a part of its own, whatever is in it."""
    return "/".join(("/v1", *(quote(name, safe="") for name in names)))


def with_query(path: str, **asked: str | None) -> str:
    """With what was asked for; what was not is left out."""
    query = urlencode({name: value for name, value in asked.items() if value})
    return f"{path}?{query}" if query else path


def _reason(error: OSError | HTTPException) -> str:
    """In words, without the number that the system has for it."""
    words = error.strerror if isinstance(error, OSError) else None
    return words or str(error) or type(error).__name__


def _away_for_a_moment(response: HTTPResponse, content: bytes) -> bool:
    """A full queue stays full for minutes; a service that starts again is there in seconds."""
    busy = str(problem_in(content).get("type", "")).endswith("/busy")
    return response.status == 503 and not busy and response.headers.get("Retry-After", "").isdigit()


def problem_in(content: bytes) -> dict[str, Any]:
    """What an answer says that is no success; nothing where it is not Headgate's own."""
    try:
        problem: object = json.loads(content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}  # pyright: ignore[reportUnknownVariableType] - its values are anything

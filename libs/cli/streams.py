"""A job's stream, read to its end: one sequence of events, however often the connection is lost.

Owns the reading of server-sent events, and the resuming. The last id is sent with each new connection, so what comes
after it comes once and in order; who reads here does not notice.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, Final

from libs.cli.client import Api, Request, path_of, problem_in
from libs.cli.errors import NobodyAnswers, fault_of

SILENT_AFTER_S: Final = 45.0  # a comment comes every 15 s
RETRY_MS: Final = 2000
TRIES: Final = 20  # in a row without a word: about a minute


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event. `id` is null for those that cannot be resumed from."""

    name: str
    data: Any
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to wait before the next connection."""

    after_ms: int


def parsed(lines: Iterable[bytes]) -> Iterator[StreamEvent | Retry]:
    """The events of one connection, as the lines come in. One that the connection was cut in is left out."""
    fields: dict[str, str] = {}
    for raw in lines:
        line = raw.decode(errors="replace").rstrip("\r\n")
        if not line:
            yield from _complete(fields)
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value


def follow(api: Api, job_id: str) -> Iterator[StreamEvent]:
    """Every event of the job's stream until it is complete."""
    last_id: str | None = None
    retry_ms, failures = RETRY_MS, 0
    while True:
        try:
            for event in _connection(api, job_id, last_id):
                failures = 0
                if isinstance(event, Retry):
                    retry_ms = event.after_ms
                    continue
                last_id = event.id or last_id
                yield event
                if event.name == "end":
                    return
        except NobodyAnswers:
            failures += 1
            if failures >= TRIES:
                raise
        api.sleep(retry_ms / 1000 * random.uniform(0.5, 1.0))


def _connection(api: Api, job_id: str, last_id: str | None) -> Iterator[StreamEvent | Retry]:
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
    request = Request(path=path_of("jobs", job_id, "stream"), headers=headers, within_s=SILENT_AFTER_S)
    with api.ask(request) as response:
        if response.status == 204:  # nothing follows that id
            yield StreamEvent("end", {})
        elif response.status == 503:
            raise NobodyAnswers(url=api.target.url, reason="the service behind is starting")
        elif response.status != 200:
            raise fault_of(response.status, problem_in(response.read()))
        else:
            yield from parsed(_lines(response))


def _lines(response: HTTPResponse) -> Iterator[bytes]:
    return iter(response.readline, b"")


def _complete(fields: dict[str, str]) -> Iterator[StreamEvent | Retry]:
    if fields.get("retry", "").isdigit():
        yield Retry(int(fields["retry"]))
    if "data" in fields:
        yield StreamEvent(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id"))

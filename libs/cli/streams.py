"""A job's stream, read to its end: one sequence of events, however often the connection is lost.

Owns the reading of server-sent events, and the resuming. The first connection asks for all there was. The last id and
the last line are sent with each later one, so what comes after them comes once and in order; who reads here does not
notice.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from http.client import HTTPResponse
from typing import Any, Final
from urllib.parse import urlencode

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
class Place:
    """How far a stream was heard: its last id, and where the last line of the job's log stands."""

    id: str | None = None
    line: int = 0

    def after(self, event: StreamEvent) -> Place:
        match event:
            case StreamEvent("log", data):
                return replace(self, line=data.get("seq", self.line))
            case StreamEvent("resync"):
                return Place()
            case _:
                return replace(self, id=event.id or self.id)

    def asked(self, job_id: str) -> Request:
        """For what follows; from the beginning where nothing was heard."""
        query = urlencode({"log_after": self.line} if self.id else {"replay": "true"})
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": self.id} if self.id else {})
        path = f"{path_of('jobs', job_id, 'stream')}?{query}"
        return Request(path=path, headers=headers, within_s=SILENT_AFTER_S)


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
    """Every event of the job's stream, from its first to its end."""
    place = Place()
    retry_ms, failures = RETRY_MS, 0
    while True:
        try:
            for event in _connection(api, place.asked(job_id)):
                failures = 0
                if isinstance(event, Retry):
                    retry_ms = event.after_ms
                    continue
                place = place.after(event)
                yield event
                if event.name == "end":
                    return
        except NobodyAnswers:
            failures += 1
            if failures >= TRIES:
                raise
        api.sleep(retry_ms / 1000 * random.uniform(0.5, 1.0))


def _connection(api: Api, request: Request) -> Iterator[StreamEvent | Retry]:
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

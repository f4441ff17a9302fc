"""What admission needs from outside, and nothing more."""

from __future__ import annotations

from typing import Protocol

from headgate_contracts import Job, JobEvent
from libs.capacity.answers import Outlook, Request, ReserveAnswer, ViewMark
from libs.eventlog import Appended, Conflicted, Record


class Log(Protocol):
    async def append(
        self, event: JobEvent, *, after: Job | None, traceparent: str | None = None
    ) -> Appended | Conflicted: ...
    async def read(self, job_id: str, *, after: int = 0) -> list[Record]: ...


class View(Protocol):
    async def reserve(self, request: Request) -> ReserveAnswer: ...
    async def mark(self) -> ViewMark | None: ...
    async def job(self, job: str) -> str | None: ...
    async def jobs_of(
        self, user: str, *, before: int | None = None, count: int = 50
    ) -> tuple[tuple[str, int], ...]: ...
    async def outlook(self, job: str) -> Outlook | None: ...
    async def day_used(self, user: str, day: int) -> int: ...


class Inputs(Protocol):
    async def put(self, job_id: str, content: bytes, /) -> None: ...


class Results(Protocol):
    async def get(self, name: str, /) -> bytes | None: ...


class Ids(Protocol):
    def event_id(self) -> str: ...
    def job_id(self) -> str: ...

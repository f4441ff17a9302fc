"""The log of a job, as it stands: the lines that the stream LOGS still holds, and their erasure.

A worker numbers the lines of each attempt from 1, in the id of each message, so a reader can tell where some are gone:
the stream drops its oldest ones by age, and when it is full. Lines that nobody can read are passed over like those.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import ValidationError

from headgate_contracts import ContractError
from headgate_contracts.commands import LogLine, logs_subject
from libs.eventlog.api import ask
from libs.eventlog.scanning import from_after, scan
from libs.eventlog.streams import LOGS

_NUMBERED: Final = re.compile(r".*:([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, and its number in its attempt; null where its writer gave none."""

    number: int | None
    line: LogLine


class JetStreamLines:
    """The stream LOGS."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc

    async def of(self, job_id: str) -> AsyncGenerator[list[Line]]:
        """The job's lines in pages, oldest first, as far as they go now."""
        async with aclosing(scan(self._nc, LOGS, filters=[logs_subject(job_id)], start=from_after(0))) as pages:
            async for messages in pages:
                yield [line for message in messages if (line := _line(message)) is not None]

    async def erase(self, job_id: str) -> None:
        """Gone when this returns, whether there were any or not."""
        await ask(self._nc, "STREAM.PURGE", stream=LOGS, question={"filter": logs_subject(job_id)})


class MemoryLines:
    """The twin."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Line]] = {}

    def add(self, line: LogLine, *, number: int | None = None) -> None:
        self._kept.setdefault(line.job_id, []).append(Line(number, line))

    async def of(self, job_id: str) -> AsyncGenerator[list[Line]]:
        if lines := self._kept.get(job_id):
            yield list(lines)

    async def erase(self, job_id: str) -> None:
        self._kept.pop(job_id, None)


def _line(message: Msg) -> Line | None:
    try:
        line = LogLine.model_validate_json(message.data)
    except (ContractError, ValidationError):
        return None
    numbered = _NUMBERED.fullmatch((message.headers or {}).get("Nats-Msg-Id", ""))
    return Line(int(numbered[1]) if numbered else None, line)

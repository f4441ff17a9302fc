"""Who reads a stream: connects to any replica, keeps what it was sent, and comes back with its last id.

    connect ─► 404: not there yet   503: not now        again in a moment
            ─► 200: event by event  ─► `end`            over
            │                       └► broken, silent, ended without `end`: again, with the last id and line
            └► 204: it has everything                   over

Owns `Hearing`, which the judge compares with the log. Some of its connections break at any byte, in some it takes
nothing for a while.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

from headgate_contracts import TABLE, Event
from headgate_contracts.events import JobData
from libs.twins.virtual import Process
from services.notifier.domain import Known
from tests.simulation.audience import NOTIFIERS, Reader
from tests.simulation.connections import App, Connection, Disconnected
from tests.simulation.network import Link
from tests.simulation.notifiers import Streams
from tests.simulation.plan import PEACE_S, POLICY
from tests.simulation.system import System

ANSWERED_WITHIN_S: Final = 8.0
SILENT_AFTER_S: Final = POLICY.stream.comment_s * 2.5
AGAIN_S: Final = (0.1, 2.5)
CUT_WITHIN_BYTES: Final = 4000
TAKES_BYTES: Final = 400  # at once
SLOW_S: Final = ((1.0, 3.5), (1.0, 14.0))  # in some it takes the rest in time
STATUSES: Final = frozenset(row.event for row in TABLE if row.then is not None)


@dataclass(frozen=True, slots=True)
class Sent:
    """One event of a stream, as it came."""

    at_s: float
    kind: str
    id: str | None
    data: Any

    @property
    def seq(self) -> int | None:
        return None if self.id is None else int(self.id.rpartition("-")[2])


@dataclass(slots=True, kw_only=True)
class Hearing:
    """One connection: what was asked, and what came."""

    asked_s: float
    last_event_id: str | None
    line: int | None
    status: int | None = None
    sent: list[Sent] = field(default_factory=list)


@dataclass(slots=True)
class Heard:
    """All that one reader was ever sent. `jobs`: whose stream it was; null for all of a user."""

    reader: Reader
    jobs: tuple[str, ...] | None
    hearings: list[Hearing] = field(default_factory=list)
    last_event_id: str | None = None
    line: int | None = None
    over: bool = False

    def concerns(self, job_id: str, user_id: str) -> bool:
        return user_id == self.reader.user if self.jobs is None else job_id in self.jobs

    @property
    def seq(self) -> int:
        return int((self.last_event_id or "-0").rpartition("-")[2])


class Browser:
    """One reader, for as long as there is something to come."""

    def __init__(self, system: System, reader: Reader, jobs: Sequence[str]) -> None:
        self.heard = Heard(reader, tuple(jobs[:1]) if reader.order else None)
        self._reader = reader
        self._system = system
        self._link = Link(system.network, Process(reader.name, system.loop), "http")

    async def live(self) -> None:
        await asyncio.sleep(max(0.0, self._reader.at_s))
        while not self.heard.over:
            with suppress(Disconnected):
                await self._listen()
            await asyncio.sleep(self._dice.between(f"{self._reader.name} again", *AGAIN_S))

    async def _listen(self) -> None:
        machines = [self._system.machines[name] for name in NOTIFIERS]
        doors = [each for each in machines if each.streams and each.process and each.process.alive]
        if not doors:
            raise Disconnected
        machine = self._dice.one_of(f"{self._reader.name} door", doors)
        heard = self.heard
        hearing = Hearing(asked_s=self._system.loop.time(), last_event_id=heard.last_event_id, line=heard.line)
        heard.hearings.append(hearing)
        connection = Connection(self._system, cast("Process", machine.process), self._link)
        try:
            connection.open(self._asks(cast("Streams", machine.streams)))
            hearing.status = await connection.answered(within_s=ANSWERED_WITHIN_S)
            if hearing.status == 200:
                await self._take(connection, hearing)
        finally:
            connection.hang_up()
        heard.over = heard.over or hearing.status == 204

    def _asks(self, streams: Streams) -> App:
        heard, reader = self.heard, self._reader
        if heard.jobs is None:
            return streams.of_user(reader.user, heard.last_event_id)
        known = Known(heard.last_event_id, heard.line or 0, reader.replay)
        return streams.of_job(heard.jobs[0], known, reader.user)

    async def _take(self, connection: Connection, hearing: Hearing) -> None:
        """Piece by piece, and in troubled times only so far, or not for a while."""
        left, pauses = self._troubles()
        slow_s = self._dice.one_of(f"{self._reader.name} slow", SLOW_S)
        rest = b""
        while piece := await connection.read(within_s=SILENT_AFTER_S, most=min(left, TAKES_BYTES)):
            left -= len(piece)
            *blocks, rest = (rest + piece).split(b"\n\n")
            for sent in _events(blocks, at_s=self._system.loop.time()):
                hearing.sent.append(sent)
                self._remember(sent)
            if left <= 0 or self.heard.over:
                return
            is_troubled = pauses and self._system.loop.time() < PEACE_S
            if is_troubled and self._dice.chance(f"{self._reader.name} pause", 0.4):
                await asyncio.sleep(self._dice.between(f"{self._reader.name} pauses", *slow_s))

    def _troubles(self) -> tuple[int, bool]:
        if self._system.loop.time() > PEACE_S:
            return 10**9, False
        name, reader = self._reader.name, self._reader
        cut = self._dice.chance(f"{name} cut", reader.cut_share)
        bytes_left = self._dice.whole(f"{name} cut at", 1, CUT_WITHIN_BYTES) if cut else 10**9
        return bytes_left, self._dice.chance(f"{name} slow", reader.slow_share)

    def _remember(self, sent: Sent) -> None:
        heard = self.heard
        heard.last_event_id = sent.id or heard.last_event_id
        if sent.kind == "log":
            heard.line = sent.data["seq"]
        heard.over = heard.over or sent.kind == "end"

    @property
    def _dice(self) -> Any:
        return self._system.dice


def browsers_of(system: System, readers: Sequence[Reader], jobs: Mapping[str, tuple[str, ...]]) -> list[Browser]:
    """Of all whose order there is."""
    known = [reader for reader in readers if reader.order is None or reader.order in jobs]
    return [Browser(system, reader, jobs.get(reader.order or "", ())) for reader in known]


def all_read(system: System, streams: Sequence[Heard]) -> bool:
    """Whether all have what there is for them."""
    return all(heard.over or heard.seq >= _last_told_of(system, heard) for heard in streams)


def _last_told_of(system: System, heard: Heard) -> int:
    events = ((kept.seq, kept.record().event) for kept in system.server._kept)
    datas = ((seq, event.data) for seq, event in events if isinstance(event, Event) and isinstance(event.data, JobData))
    ours = (seq for seq, data in datas if data.EVENT in STATUSES and heard.concerns(data.job_id, data.user_id))
    return max(ours, default=0)


def _events(blocks: Sequence[bytes], *, at_s: float) -> Iterator[Sent]:
    for block in blocks:
        lines = (line.partition(": ") for line in block.decode().splitlines())
        fields = {name: value for name, _, value in lines}
        if "event" in fields:
            yield Sent(at_s, fields["event"], fields.get("id"), json.loads(fields["data"]))

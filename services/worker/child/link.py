"""The end of the socket that the process of an attempt holds: it tells the worker, asks it, and sorts what it says.

Owns which answer belongs to which question. Orders go on to whoever carries them out; answers about slots, and the word
that what was kept is stored, go to who waits for them in the middle of a stage.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from services.worker.child.folder import Folder
from services.worker.child.messages import (
    MAX_SHUT_MS,
    Acquire,
    Extend,
    FromChild,
    GiveUp,
    Kept,
    LeaseTold,
    Line,
    Order,
    Shut,
    Stored,
    cut,
    read_by_child,
    sayable,
)
from services.worker.child.packing import ResultTooLarge
from services.worker.pipeline import Slots, StageFailed
from services.worker.sandbox.command import Bounds, Command, Ran
from services.worker.sandbox.running import Sandbox

State = Literal["granted", "full", "lost"]


@dataclass(slots=True)
class _Claim:
    """A lease as this process knows it."""

    number: int
    answer: asyncio.Future[State]


@dataclass(slots=True)
class ParentLink:
    """The socket to the worker."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    folder: Folder | None = None
    sandbox: Sandbox | None = None
    cancelling: bool = False
    lost_slots: bool = False
    orders: asyncio.Queue[Order | None] = field(default_factory=asyncio.Queue)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _claims: dict[Slots, _Claim] = field(default_factory=dict[Slots, _Claim])
    _keeping: asyncio.Lock = field(default_factory=asyncio.Lock)
    _stored: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, message: FromChild) -> None:
        self.writer.write(message.encoded())

    def say(self, line: str) -> None:
        self.tell(Line(line=cut(sayable(line))))

    async def acquire(self, slots: Slots) -> bool:
        number = next(self._numbers)
        claim = self._claims[slots] = _Claim(number, asyncio.get_running_loop().create_future())
        self.tell(
            Acquire(
                lease=number,
                providers=slots.providers,
                groups=slots.groups,
                stage_limit=slots.stage_limit,
                wait_ms=_ms(slots.wait_s),
                ttl_ms=_ms(slots.lease_s),
            )
        )
        if await claim.answer == "granted":
            return True
        del self._claims[slots]
        return False

    def extend(self) -> None:
        self.tell(Extend())

    def give_up(self, slots: Slots) -> None:
        claim = self._claims.pop(slots, None)
        if claim is not None:
            self.tell(GiveUp(lease=claim.number))

    def shut(self, slots: Slots, provider: str, *, for_s: float | None) -> None:
        claim = self._claims.pop(slots, None)
        if claim is not None:
            for_ms = None if for_s is None else min(MAX_SHUT_MS, max(0, round(for_s * 1000)))
            self.tell(Shut(lease=claim.number, provider=provider, for_ms=for_ms))

    async def keep(self) -> None:
        """Until what is to outlive the attempt is stored."""
        assert self.folder is not None
        async with self._keeping:
            try:
                is_new = await asyncio.to_thread(self.folder.keep)
            except ResultTooLarge as large:
                raise StageFailed("The workspace is too large to keep.", str(large)) from large
            if is_new:
                self._stored.clear()
                self.tell(Kept())
                await self._stored.wait()

    async def run(self, command: Command, *, bounds: Bounds | None) -> Ran:
        assert self.sandbox is not None
        return await self.sandbox.run(command, on_line=self.say, bounds=bounds, drained=self.writer.drain)

    async def listen(self) -> None:
        """Until the worker hangs up."""
        while line := await self.reader.readline():
            match read_by_child(line):
                case LeaseTold() as told:
                    self._lease_told(told)
                case Stored():
                    self._stored.set()
                case order:
                    self.orders.put_nowait(order)
        self.orders.put_nowait(None)

    def _lease_told(self, told: LeaseTold) -> None:
        for slots, claim in tuple(self._claims.items()):
            if claim.number != told.lease:
                continue
            if not claim.answer.done():
                claim.answer.set_result(told.state)
            elif told.state == "lost":
                self.lost_slots = True
                slots.lose()


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)

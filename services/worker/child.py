"""What runs inside the process of an attempt: a stage at a time, as the worker asks for it, until the worker hangs up.

Owns this end of the socket and the words an author's exceptions become. It has no credential and opens no connection;
of the world it has its workspace, its input and the socket. Refuses to decide what comes next: that is the worker's.

SIGTERM cancels the running stage, so that it can clear up, and ends the process. SIGKILL follows from outside.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from headgate_contracts.vocabulary import Fault, Stage
from services.worker.messages import (
    MAX_MESSAGE_BYTES,
    Acquire,
    Begin,
    Ended,
    Extend,
    FromChild,
    GiveUp,
    LeaseTold,
    Line,
    Pack,
    Packed,
    RunStage,
    cut,
    read_by_child,
)
from services.worker.packing import ResultTooLarge, pack
from services.worker.pipeline import ChecksFailed, Context, Pipeline, SlotLost, Slots, StageFailed

TERMINATED: Final = 128 + signal.SIGTERM

Answer = Literal["granted", "full", "lost"]


@dataclass(slots=True)
class _Claim:
    """A lease as this process knows it."""

    number: int
    answer: asyncio.Future[Answer]


@dataclass(slots=True)
class ParentLink:
    """The socket to the worker: tells it, asks it, and sorts what it says."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    cancelling: bool = False
    orders: asyncio.Queue[Begin | RunStage | Pack | None] = field(default_factory=asyncio.Queue)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _claims: dict[Slots, _Claim] = field(default_factory=dict[Slots, _Claim])

    def tell(self, message: FromChild) -> None:
        self.writer.write(message.encoded())

    def say(self, line: str) -> None:
        self.tell(Line(line=cut(line)))

    async def acquire(self, slots: Slots) -> bool:
        number = next(self._numbers)
        claim = self._claims[slots] = _Claim(number, asyncio.get_running_loop().create_future())
        wait_ms, ttl_ms = _ms(slots.wait_s), _ms(slots.lease_s)
        self.tell(Acquire(lease=number, providers=slots.providers, groups=slots.groups, wait_ms=wait_ms, ttl_ms=ttl_ms))
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

    async def listen(self) -> None:
        """Until the worker hangs up."""
        while line := await self.reader.readline():
            message = read_by_child(line)
            if isinstance(message, LeaseTold):
                self._lease_told(message)
            else:
                self.orders.put_nowait(message)
        self.orders.put_nowait(None)

    def _lease_told(self, told: LeaseTold) -> None:
        for slots, claim in tuple(self._claims.items()):
            if claim.number != told.lease:
                continue
            if not claim.answer.done():
                claim.answer.set_result(told.state)
            elif told.state == "lost":
                slots.lose()


def run(channel: socket.socket, pipelines: Mapping[str, Pipeline]) -> int:
    """The whole life of the process; its exit code."""
    return asyncio.run(_serve(channel, pipelines))


async def _serve(channel: socket.socket, pipelines: Mapping[str, Pipeline]) -> int:
    reader, writer = await asyncio.open_connection(sock=channel, limit=MAX_MESSAGE_BYTES)
    link = ParentLink(reader, writer)
    listening = asyncio.create_task(link.listen())
    working = asyncio.create_task(_work(link, pipelines))

    def terminate() -> None:
        link.cancelling = True
        working.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    await asyncio.wait([listening, working], return_when=asyncio.FIRST_COMPLETED)
    if not working.done():  # the worker hung up in the middle of a stage
        terminate()
        await asyncio.wait([working])
    listening.cancel()
    if working.cancelled():
        return TERMINATED
    working.result()
    return 0


async def _work(link: ParentLink, pipelines: Mapping[str, Pipeline]) -> None:
    begin = await link.orders.get()
    if not isinstance(begin, Begin):
        return
    _move_into(begin.workspace)
    pipeline = pipelines[begin.pipeline]
    content, wrong = _input_of(pipeline, begin)
    while (order := await link.orders.get()) is not None:
        match order:
            case RunStage() if wrong is not None:
                link.tell(_failed("The job's input is not what the pipeline needs.", wrong))
            case RunStage():
                link.tell(await _run(pipeline, _context(begin, order, content, link), link))
            case Pack():
                link.tell(_packed(Path(begin.workspace), order))
            case Begin():
                return
        await link.writer.drain()


def _move_into(workspace: str) -> None:
    """What is written without a thought goes where it will be thrown away."""
    os.chdir(workspace)
    os.environ["HOME"] = os.environ["TMPDIR"] = workspace


def _input_of(pipeline: Pipeline, begin: Begin) -> tuple[Any, str | None]:
    """The input as the pipeline reads it, or what is wrong with it."""
    try:
        return pipeline.read_input(begin.input), None
    except ValueError as error:
        return None, str(error) or "it cannot be read"


def _context(begin: Begin, order: RunStage, content: Any, link: ParentLink) -> Context:
    workspace = Path(begin.workspace)
    return Context(begin.job_id, begin.project_id, order.stage, order.iteration, workspace, content, link)


async def _run(pipeline: Pipeline, ctx: Context, link: ParentLink) -> Ended:
    """Run the stage, and say in words that its user may read how it ended."""
    name = ctx.stage.value
    try:
        await pipeline.step(ctx.stage).run(ctx)
    except ChecksFailed as failed:
        if ctx.stage is not Stage.CHECKS:
            return _failed(f"The stage {name} said that checks failed, and is none.", str(failed))
        return Ended(outcome="checks_failed", summary=str(failed)[:500])
    except StageFailed as failed:
        return _failed(failed.summary, failed.detail)
    except SlotLost as lost:
        return _failed(f"The stage {name} lost a slot that it needed.", str(lost), Fault.SYSTEM)
    except asyncio.CancelledError:
        if link.cancelling:
            raise
        return _failed(f"The stage {name} lost a slot that it needed.", fault=Fault.SYSTEM)
    except Exception as error:  # noqa: BLE001 - an author's own: whatever it is, it ends the job and not the worker
        ctx.log("".join(traceback.format_exception(error)))
        return _failed(f"The stage {name} ended with {type(error).__name__}.", "The job's log has the details.")
    return Ended(outcome="finished")


def _packed(workspace: Path, order: Pack) -> Packed | Ended:
    try:
        return Packed(size=pack(workspace / "result", Path(order.target), max_bytes=order.max_bytes))
    except ResultTooLarge as error:
        return _failed("The result is too large.", str(error))


def _failed(summary: str, detail: str = "", fault: Literal[Fault.JOB, Fault.SYSTEM] = Fault.JOB) -> Ended:
    return Ended(outcome="failed", summary=summary[:500], detail=detail[:4096], fault=fault)


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)

"""Two schedulers that believe to lead, each starting jobs by single messages, and what the log says of it afterwards.

A single message expects two things: that the log ends where its writer has folded it to, and that its job ends there
too. So each that is stored stands right behind what it was planned over. `judged` holds the log to that: what stands
elsewhere was let through beside a record that its writer had not seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from typing import Final

from headgate_contracts import Event, Job, advance
from headgate_contracts.events import JobData, JobDispatched, JobQueued
from libs.eventlog import Entry, JetStreamLog, LogUnavailable, OutcomeUnknown, Record
from libs.eventlog.expectation import WHOLE_LOG, Message, messages_of
from libs.eventlog.jetstream import JetStreamWire
from libs.eventlog.wire import Accepted
from libs.runtime.clock import SystemClock
from tests.fixtures.lives import queued, step

WITHIN_S: Final = 1.0
READY: Final = 12  # jobs that wait, so that there is always one


@dataclass(slots=True)
class Sent:
    """One message, until it is known what became of it."""

    id: str
    expected: int
    stored_at: int | None = None
    refused: bool = False


@dataclass(slots=True)
class Rival:
    """One of them: follows the log and starts one job after the other, each planned over all that it has folded."""

    name: str
    log: JetStreamLog
    wire: JetStreamWire
    random: Random
    sent: list[Sent] = field(default_factory=list[Sent])
    reached: int = 0
    waiting: dict[str, Job] = field(default_factory=dict[str, Job])
    under_way: asyncio.Event = field(default_factory=asyncio.Event)
    folded: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self) -> None:
        async with aclosing(self.log.follow(after=0)) as pages:
            async for page in pages:
                for record in page.records:
                    self._fold(record)

    def _fold(self, record: Record) -> None:
        self.reached = record.seq
        self.folded.set()
        match record.event:
            case Event(data=JobQueued()) as event:
                self.waiting[event.data.job_id] = advance(None, event, seq=record.seq)  # type: ignore[arg-type]
            case Event(data=JobData(job_id=job_id)):
                self.waiting.pop(job_id, None)
            case _:
                pass

    async def start_jobs(self, over: asyncio.Event) -> None:
        while not over.is_set():
            if not self.waiting:
                await asyncio.sleep(0.001)
                continue
            some = list(self.waiting.values())
            job = some[0] if self.random.random() < 0.5 else self.random.choice(some)
            sent = await self._start(job)
            while sent.stored_at is not None and self.reached < sent.stored_at and not over.is_set():
                self.folded.clear()
                await self.folded.wait()  # it plans nothing before it has folded what it wrote
            await asyncio.sleep(self.random.uniform(0, 0.002))

    async def _start(self, job: Job) -> Sent:
        """The same bytes again until it is known what became of them."""
        message = alone(job, expected=self.reached, salt=f"{self.name} {len(self.sent)}")
        sent = Sent(message.id, self.reached)
        self.sent.append(sent)
        while sent.stored_at is None and not sent.refused:
            self.under_way.set()
            answer = await self.wire.send((message,), within_s=WITHIN_S)
            self.under_way.clear()
            if isinstance(answer, Accepted):
                sent.stored_at = answer.last_seq
            else:
                await self._look(sent)
        return sent

    async def _look(self, sent: Sent) -> None:
        """Who stands in the one place where it can."""
        try:
            standing = await self.wire.next(WHOLE_LOG, after=sent.expected)
        except LogUnavailable:
            standing = None
        if standing is None:
            await asyncio.sleep(0.02)
        elif standing.event_id == sent.id:
            sent.stored_at = standing.seq
        else:
            sent.refused = True


def alone(job: Job, *, expected: int, salt: str) -> Message:
    """A start as one message with both expectations."""
    [message] = messages_of([Entry(step(job, "dispatched", salt=salt), job, over=expected)])
    return message


async def bring(log: JetStreamLog, rivals: Sequence[Rival], over: asyncio.Event, *, name: str, random: Random) -> None:
    """A stranger: appends first events of jobs, so that there is something to start, and something in the way."""
    number = 0
    while not over.is_set():
        if min(len(rival.waiting) for rival in rivals) >= READY:
            await asyncio.sleep(0.001)
            continue
        number += 1
        event = queued(f"{name}-{number}")
        try:
            await log.append(event, after=None)
        except (OutcomeUnknown, LogUnavailable):
            continue
        await asyncio.sleep(random.uniform(0, 0.01))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one run. The three last are faults."""

    sent: int
    stored: int
    same_place: int  # in which both rivals wanted to stand
    let_through: tuple[str, ...]
    lost: tuple[str, ...]
    risen: tuple[str, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        return (*self.let_through, *self.lost, *self.risen)


def judged(records: Sequence[Record], rivals: Sequence[Rival]) -> Verdict:
    """By the records alone, and by what each rival was told."""
    places = {
        record.event_id: record.seq
        for record in records
        if isinstance(record.event, Event) and isinstance(record.event.data, JobDispatched)
    }
    every = [sent for rival in rivals for sent in rival.sent]
    wanted = [{sent.expected for sent in rival.sent} for rival in rivals]
    return Verdict(
        sent=len(every),
        stored=len(places),
        same_place=len(set.intersection(*wanted)),
        let_through=tuple(
            f"{sent.id} stands at {places[sent.id]}, planned up to {sent.expected}"
            for sent in every
            if places.get(sent.id, sent.expected + 1) != sent.expected + 1
        ),
        lost=tuple(
            f"{sent.id} was acknowledged at {sent.stored_at}, and stands at {places.get(sent.id)}"
            for sent in every
            if sent.stored_at is not None and places.get(sent.id) != sent.stored_at
        ),
        risen=tuple(
            f"{sent.id} was taken for refused, and stands there" for sent in every if sent.refused and sent.id in places
        ),
    )


def rival(name: str, log: JetStreamLog, client: object, *, seed: int) -> Rival:
    """On a connection of its own."""
    wire = JetStreamWire(client, epoch=log.epoch, clock=SystemClock())  # type: ignore[arg-type]
    return Rival(name, log, wire, Random(f"{name} {seed}"))

"""What the log costs: appending, batches, reading on; beside each the floor, which is the same bytes without our code.

Every figure is printed as a row of a Markdown table. Nothing is asserted about speed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TypeVar

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig

from headgate_contracts import Event, JobEvent
from headgate_contracts.envelope import AnyEvent
from libs.capacity.folder import Folder
from libs.capacity.ledger import Ledger
from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from libs.eventlog import Appended, Entry, JetStreamLog, migrate, open_log
from libs.eventlog.expectation import Message, messages_of
from libs.eventlog.jetstream import JetStreamWire
from libs.eventlog.streams import JOBS, MIB
from libs.policy import Policy
from libs.runtime.clock import SystemClock
from tests.fixtures.lives import life_of, queued
from tests.fixtures.logs import commit, connected, new_epoch, settings

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

APPENDS = 3_000
IN_FLIGHT = 64
COMMIT = 21  # the scheduler's record and 20 jobs
RAW_BATCH = 200
BATCHED = 20_000
REPLAYED = 100_000
T = TypeVar("T")


@pytest_asyncio.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    async with connected(nats_url) as client:
        await migrate(client, settings(jobs_max_bytes=512 * MIB), new_epoch=new_epoch())
        yield client


@pytest_asyncio.fixture
async def log(nc: Client) -> JetStreamLog:
    return await open_log(nc, settings(jobs_max_bytes=512 * MIB))


async def test_append(nc: Client, log: JetStreamLog) -> None:
    js = JetStreamContext(nc)

    async def ours(event: AnyEvent) -> None:
        assert isinstance(await log.append(event, after=None), Appended)

    async def raw(message: Message) -> None:
        await js.publish(message.subject, message.payload, headers=dict(message.headers))

    _print("append, every event synced to disk", ("", "one by one", f"{IN_FLIGHT} in flight"))
    events = [list(_firsts(APPENDS, name)) for name in ("alone", "among many")]
    _print_row("`append` of a first event", *(await _both(ours, *events)))
    messages = [[_message(event) for event in _firsts(APPENDS, f"raw {name}")] for name in ("alone", "among many")]
    _print_row("floor: `js.publish` of the same bytes and headers", *(await _both(raw, *messages)))


async def test_batch(nc: Client, log: JetStreamLog) -> None:
    wire = JetStreamWire(nc, epoch=log.epoch, clock=SystemClock())
    commits = _commits("ours")
    raw = [messages_of([Entry(event, 0) for event in _firsts(COMMIT, f"raw {n}")]) for n in range(BATCHED // COMMIT)]
    large = [[_message(event) for event in _firsts(RAW_BATCH, f"large {n}")] for n in range(BATCHED // RAW_BATCH)]

    async def ours() -> None:
        last = 0
        for first, *rest in commits:
            outcome = await log.append_batch([Entry(first, last), *(Entry(event, 0) for event in rest)])
            assert isinstance(outcome, Appended)
            last = outcome.records[0].seq

    async def bare(batches: Sequence[Sequence[Message]]) -> None:
        for batch in batches:
            await wire.send(batch, within_s=5.0)

    _print("atomic batch, one after another", ("", "events/s", "ms a batch"))
    for name, seconds, size in (
        (f"`append_batch` of {COMMIT}, a commit of the scheduler", await _seconds(ours), COMMIT),
        (f"floor: a batch of {COMMIT} ready-made messages", await _seconds(lambda: bare(raw)), COMMIT),
        (f"floor: a batch of {RAW_BATCH} ready-made messages", await _seconds(lambda: bare(large)), RAW_BATCH),
    ):
        batches = BATCHED // size
        _print_row(name, f"{batches * size / seconds:,.0f}", f"{seconds / batches * 1e3:.2f}")


async def test_replay_and_rebuild(nc: Client, log: JetStreamLog, redis_url: str) -> None:
    wire = JetStreamWire(nc, epoch=log.epoch, clock=SystemClock())
    for batch in _slices([_loose(event) for event in _lives(REPLAYED)], RAW_BATCH):
        await wire.send(batch, within_s=5.0)

    _print(f"replay of {REPLAYED:,} events, and the view rebuilt from them", ("", "events/s", "seconds"))
    for name, seconds in (
        (f"rebuild of {REPLAYED // 8:,} jobs: read, folded, written", await _seconds(lambda: _rebuilt(log, redis_url))),
        ("read and folded in memory", await _seconds(lambda: _folded(log))),
        ("`follow`, every event decoded and checked", await _seconds(lambda: _followed(log))),
        ("nats-py's `fetch(1000)`, nothing decoded", await _seconds(lambda: _fetched(nc))),
    ):
        _print_row(name, f"{REPLAYED / seconds:,.0f}", f"{seconds:.2f}")


async def _rebuilt(log: JetStreamLog, redis_url: str) -> None:
    client = open_client(redis_url)
    view = RedisView(client, shard="rebuild", epoch=log.epoch)
    ledger = await _folded(log)
    await Folder(view, ledger, epoch=log.epoch, lease_ms=30_000, new_generation=new_epoch).update_view()
    assert (mark := await view.mark()) is not None
    assert mark.applied == REPLAYED
    await view.close()
    await client.aclose()


async def _folded(log: JetStreamLog) -> Ledger:
    ledger = Ledger(Policy())
    async with aclosing(log.follow(after=0)) as follow:
        while ledger.applied < REPLAYED:
            for record in (await anext(follow)).records:
                ledger.apply(record)
    return ledger


async def _followed(log: JetStreamLog) -> None:
    async with aclosing(log.follow(after=0)) as follow:
        async for page in follow:
            assert all(isinstance(record.event, Event) for record in page.records)
            if page.records[-1].seq == page.last_seq == REPLAYED:
                return


async def _fetched(nc: Client) -> None:
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, mem_storage=True)
    subscription = await JetStreamContext(nc).pull_subscribe("", stream=JOBS, config=config)
    received = 0
    while received < REPLAYED:
        received += len(await subscription.fetch(1000, timeout=2))
    await subscription.unsubscribe()


# ── what is written ───────────────────────────────────────────────────────────


def _firsts(count: int, name: str) -> Iterator[JobEvent]:
    slug = name.replace(" ", "-")
    return (queued(f"{slug}-{number}") for number in range(count))


def _commits(name: str) -> list[list[AnyEvent]]:
    return [[commit(number), *_firsts(COMMIT - 1, f"{name} {number}")] for number in range(BATCHED // COMMIT)]


def _lives(count: int) -> Iterator[JobEvent]:
    """Eight events a job, as most jobs have."""
    for number in range(count // 8):
        yield from life_of(f"replayed-{number}")


def _message(event: AnyEvent) -> Message:
    return messages_of([Entry(event, 0)])[0]


def _loose(event: JobEvent) -> Message:
    """Without an expectation, so that a job's whole life can go into one batch."""
    return Message(Entry(event, None), event.subject, event.encode(), None, {"Nats-Msg-Id": event.id})


# ── measuring ─────────────────────────────────────────────────────────────────


async def _both(act: Callable[[T], Awaitable[None]], alone: Sequence[T], many: Sequence[T]) -> list[str]:
    async def one_by_one() -> None:
        for each in alone:
            await act(each)

    async def in_flight() -> None:
        rest = iter(many)
        await asyncio.gather(*(_all(act, rest) for _ in range(IN_FLIGHT)))

    return [f"{APPENDS / await _seconds(one_by_one):,.0f}/s", f"{APPENDS / await _seconds(in_flight):,.0f}/s"]


async def _all(act: Callable[[T], Awaitable[None]], rest: Iterator[T]) -> None:
    for each in rest:
        await act(each)


def _slices(messages: list[Message], size: int) -> Iterator[list[Message]]:
    return (messages[start : start + size] for start in range(0, len(messages), size))


async def _seconds(act: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await act()
    return time.perf_counter() - begun


def _print(title: str, columns: tuple[str, ...]) -> None:
    print(f"\n\n### {title}\n")
    _print_row(*columns)
    print("|" + " --- |" * len(columns))


def _print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |")

"""The scheduler's parts by themselves: outages, the inbox, snapshots, the lead, and the loop around the turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable

import pytest

from libs.capacity.errors import ViewUnavailable
from libs.capacity.lead import Led, MemoryLead
from libs.eventlog.errors import LogUnavailable
from libs.eventlog.memory import MemoryLog, MemorySnapshots
from libs.eventlog.values import Entry, Mark, Page, Record, Wanted
from libs.policy import Policy, load_policy
from libs.runtime.clock import ManualClock
from libs.runtime.errors import SettingsWrong
from libs.runtime.eventually import eventually
from libs.runtime.lifecycle import Health, Loop
from services.scheduler import inbox as inboxes
from services.scheduler import snapshots
from services.scheduler.inbox import PAGES_AHEAD, Inbox
from services.scheduler.leader import FIT_SOON_MS
from services.scheduler.outages import Outages
from services.scheduler.settings import SchedulerSettings, report, require_patience
from tests.fixtures.lives import life_of, step
from tests.fixtures.logs import HastyClock, commit
from tests.fixtures.schedulers import EPOCH, MemorySchedulers, breathe

SECOND, HOUR = 1000, 3_600_000


# ── outages ───────────────────────────────────────────────────────────────────


@pytest.fixture
def outages(clock: ManualClock) -> Outages:
    return Outages("log", "store", clock=clock, patience_ms=5000, lease_ms=30_000, log_ends_at=lambda: 7)


async def hear(outages: Outages, clock: ManualClock, *whom: str, for_s: int) -> None:
    for _ in range(for_s):
        await clock.advance_ms(SECOND)
        for each in whom:
            outages.reached(each)


async def test_who_is_heard_each_second_owes_nothing(outages: Outages, clock: ManualClock) -> None:
    outages.leading(leads=True)

    await hear(outages, clock, "log", "store", for_s=60)

    assert (outages.owed_ms, outages.away, outages.can_judge, outages.excuses) == (0, (), True, 0)


@pytest.mark.parametrize(("silent_s", "owed_s"), [(4, 0), (5, 0), (6, 6), (60, 60)])
async def test_an_outage_is_longer_than_a_heartbeat(
    outages: Outages, clock: ManualClock, silent_s: int, owed_s: int
) -> None:
    outages.leading(leads=True)
    await hear(outages, clock, "store", for_s=silent_s)

    outages.reached("log")

    assert outages.owed_ms == owed_s * SECOND


async def test_outages_that_overlap_are_one(outages: Outages, clock: ManualClock) -> None:
    outages.leading(leads=True)
    await hear(outages, clock, "log", for_s=20)
    await hear(outages, clock, "store", for_s=20)

    outages.reached("log")

    assert outages.owed_ms == 40 * SECOND


async def test_nobody_is_judged_during_an_outage_nor_before_it_was_made_good(
    outages: Outages, clock: ManualClock
) -> None:
    outages.leading(leads=True)
    await hear(outages, clock, "log", "store", for_s=20)
    await hear(outages, clock, "store", for_s=10)
    during = outages.can_judge

    outages.reached("log")
    owed = outages.can_judge
    outages.settled()

    assert (during, owed, outages.can_judge, outages.excuses) == (False, False, True, 7)


async def test_who_has_just_begun_to_lead_judges_nobody_for_three_heartbeats(
    outages: Outages, clock: ManualClock
) -> None:
    await hear(outages, clock, "log", "store", for_s=60)
    outages.leading(leads=True)

    judged: list[bool] = []
    for _ in range(16):
        judged.append(outages.can_judge)
        await hear(outages, clock, "log", "store", for_s=1)

    assert judged == [False] * 15 + [True]


async def test_what_another_leader_lived_through_is_not_owed_here(outages: Outages, clock: ManualClock) -> None:
    await clock.advance_ms(60 * SECOND)
    outages.reached("log")
    outages.reached("store")

    outages.leading(leads=False)
    outages.leading(leads=True)

    assert outages.owed_ms == 0


# ── the inbox ─────────────────────────────────────────────────────────────────


class Paged(MemoryLog):
    """A log of many small pages."""

    given = 0  # so far

    async def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[Page, None]:
        while True:
            self.given += 1
            yield Page((), self.given)


async def test_a_slow_taker_is_not_read_ahead_of_for_ever(world: MemorySchedulers) -> None:
    log = Paged(world.server, clock=world.clock)
    inbox = Inbox(log, after=0, arrived=asyncio.Event(), clock=world.clock)
    reading = asyncio.create_task(inbox.run(asyncio.Event()))

    await breathe(50)
    full = log.given
    taken = inbox.take()
    await breathe(50)

    assert full == PAGES_AHEAD
    assert taken is not None
    assert log.given == PAGES_AHEAD + 1
    reading.cancel()


class Told(MemoryLog):
    """A log whose pages hold these records of a job's life: queued, dispatched, started, four stages, ready."""

    def __init__(self, world: MemorySchedulers) -> None:
        super().__init__(world.server, clock=world.clock)
        self.pages = asyncio.Queue[Page]()

    def tell(self, *seqs: int) -> None:
        life = life_of()
        records = tuple(Record(seq, life[seq - 1].time, life[seq - 1]) for seq in seqs)
        self.pages.put_nowait(Page(records, max(seqs, default=0)))

    async def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[Page, None]:
        while True:
            yield await self.pages.get()


@pytest.mark.parametrize(
    ("seqs", "is_hurried"), [((3,), False), ((3, 4, 5), False), ((2, 3), True), ((7, 8), True), ((), True)]
)
async def test_a_start_and_a_stage_wait_to_be_folded_with_others(
    world: MemorySchedulers, monkeypatch: pytest.MonkeyPatch, seqs: tuple[int, ...], *, is_hurried: bool
) -> None:
    monkeypatch.setattr(inboxes, "UNHURRIED_MS", 600_000)
    log, arrived = Told(world), asyncio.Event()
    reading = asyncio.create_task(Inbox(log, after=0, arrived=arrived, clock=world.clock).run(asyncio.Event()))

    log.tell(*seqs)
    await breathe()

    assert arrived.is_set() is is_hurried
    reading.cancel()


async def test_what_waits_to_be_folded_is_taken_a_moment_later_or_with_whatever_comes(world: MemorySchedulers) -> None:
    log, arrived = Told(world), asyncio.Event()
    inbox = Inbox(log, after=2, arrived=arrived, clock=world.clock)
    reading = asyncio.create_task(inbox.run(asyncio.Event()))

    log.tell(3)
    await arrived.wait()
    inbox.take()
    arrived.clear()
    log.tell(4, 5, 6, 7)
    log.tell(8)
    await breathe()
    await arrived.wait()
    inbox.take()
    inbox.take()

    assert inbox.reached == 8
    reading.cancel()


@pytest.mark.parametrize("policy", [Policy.model_validate({"queue": {"cap": 1000, "user_share": 1000}})])
async def test_others_have_their_turn_while_a_long_page_is_taken(world: MemorySchedulers) -> None:
    for number in range(1, 1001):
        await world.append(None, step(f"job-{number}", "queued", arrival=number, place=number << 16))
    a, turns = world.replica("a"), 0
    await breathe(20)  # the page is read

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(take_turns())
    await world.turn(a)
    other.cancel()

    assert a.ledger.applied == 1000
    assert turns >= 10


async def test_an_inbox_knows_that_it_has_caught_up_only_once_it_was_told(world: MemorySchedulers) -> None:
    log = MemoryLog(world.server, clock=HastyClock())
    await log.append_batch([_entry(1)])
    inbox = Inbox(log, after=0, arrived=asyncio.Event(), clock=world.clock)
    reading = asyncio.create_task(inbox.run(asyncio.Event()))
    before = inbox.caught_up

    await breathe()
    inbox.take()
    caught_up = inbox.caught_up
    inbox.expect(2)

    assert (before, caught_up, inbox.caught_up) == (False, True, False)
    reading.cancel()


def _entry(number: int) -> Entry:
    return Entry(commit(number), number - 1)


# ── snapshots ─────────────────────────────────────────────────────────────────


async def test_the_leader_keeps_its_fold_every_so_many_records(
    world: MemorySchedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 10)
    a = await world.leading()
    keeping = Loop("snapshots", a.keeper.run)
    await keeping.start()

    for number in range(25):
        await world.submit(f"job-{number}", user=f"u-{number}")
        await world.settle(a)
        await world.clock.advance_ms(SECOND)
        if number in (9, 19):
            await eventually(lambda number=number: kept_at(world, number + 1))

    assert await kept_at(world, 20)
    await keeping.stop()


async def kept_at(world: MemorySchedulers, seq: int) -> bool:
    """It is written down in a thread."""
    await breathe()
    kept = await world.snapshots.newest(EPOCH)
    return kept is not None and kept[0] == Mark(EPOCH, seq)


async def test_the_fold_is_kept_soon_after_a_start_and_each_day_also_where_nothing_happens(
    world: MemorySchedulers,
) -> None:
    await world.pause("user:u-1")
    a = await world.leading()
    keeping = Loop("snapshots", a.keeper.run)
    await keeping.start()

    await world.pass_ms(snapshots.FIRST_MS - SECOND, a, every_ms=60 * SECOND)
    early = await world.snapshots.newest(EPOCH)
    await world.pass_ms(3 * SECOND, a)
    await eventually(lambda: kept_at(world, 1))
    world.snapshots = a.keeper._snapshots = MemorySnapshots()  # age has taken it
    await world.pass_ms(snapshots.AGAIN_MS, a, every_ms=HOUR)
    await world.pass_ms(3 * SECOND, a)

    await eventually(lambda: kept_at(world, 1))
    assert early is None
    await keeping.stop()


async def test_what_was_ordered_outlives_the_logs_own_age(world: MemorySchedulers) -> None:
    await world.pause("all")
    await world.set_limit("workflows", 9)
    a = await world.leading()
    await world.submit("job-1")
    await world.settle(a)
    await a.keeper.keep()
    world.server.expire(world.server.last_seq - 1)

    b = await world.restarted("b")
    await world.settle(b)

    assert set(b.ledger.orders.pauses) == {"all"}
    assert b.ledger.orders.limits == {"workflows": 9}


async def test_it_is_said_where_age_has_taken_what_no_snapshot_holds(
    world: MemorySchedulers, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await world.pause("all")
    world.server.expire(2)

    await world.leading()

    assert "records 1 to 2 of the log are gone by age" in caplog.text


class Full(MemorySnapshots):
    async def put(self, data: bytes, *, mark: Mark) -> None:
        raise LogUnavailable(reason="no room")


async def test_a_fold_that_cannot_be_kept_costs_nothing_but_time(world: MemorySchedulers) -> None:
    a = world.replica("a", snapshots=Full())
    await world.settle(a)
    await world.submit("job-1")
    await world.settle(a)

    await a.keeper.keep()

    assert await world.snapshots.newest(EPOCH) is None


async def test_a_snapshot_that_cannot_be_read_is_passed_over(world: MemorySchedulers) -> None:
    await world.snapshots.put(b"nothing of ours", mark=Mark(EPOCH, 7))

    ledger = await snapshots.newest_fold(world.snapshots, world.log, epoch=EPOCH, policy=world.policy)

    assert ledger.applied == 0


# ── the lead ──────────────────────────────────────────────────────────────────


class Away(MemoryLead):
    async def hold(self, name: str, *, ttl_ms: int) -> Led:
        raise ViewUnavailable("no answer")


class Slow(MemoryLead):
    """Lets go of the lead when it is told to."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        super().__init__(now_ms)
        self.asked, self.answers = asyncio.Event(), asyncio.Event()

    async def drop(self, name: str) -> None:
        self.asked.set()
        await self.answers.wait()
        await super().drop(name)


async def test_nobody_leads_for_longer_than_the_store_was_asked(world: MemorySchedulers) -> None:
    a = await world.leading()

    await world.clock.advance_ms(4 * SECOND)
    before = a.leader.leads
    await world.clock.advance_ms(2 * SECOND)

    assert (before, a.leader.leads) == (True, False)


async def test_decisions_are_dated_by_the_stores_clock(world: MemorySchedulers) -> None:
    a = await world.leading()
    before = a.leader.now

    world.clock.jump_wall_ms(3_600_000)

    assert a.leader.now == before


async def test_nobody_leads_before_having_read_the_log(world: MemorySchedulers) -> None:
    a = world.replica("a")

    first = await a.leader.renew()
    await breathe()
    await a.cycle.turn()

    assert (first, await a.leader.renew()) == (False, True)


async def test_who_begins_to_lead_has_a_turn_at_once(world: MemorySchedulers) -> None:
    a = world.replica("a")
    await a.leader.renew()
    await breathe()
    await a.cycle.turn()

    a.woken.clear()
    await a.leader.renew()
    at_the_beginning = a.woken.is_set()
    a.woken.clear()
    await a.leader.renew()

    assert (at_the_beginning, a.woken.is_set()) == (True, False)


async def test_who_has_read_the_log_while_it_asked_asks_again_soon(world: MemorySchedulers) -> None:
    a = world.replica("a", lead=(lead := Slow(world.clock.now_ms)))
    leading = Loop("lead", a.leader.run)
    await leading.start()
    await eventually(lead.asked.is_set)
    await a.cycle.turn()  # it has read the log now
    lead.answers.set()
    await eventually(lambda: world.clock.sleeping == 1)

    await world.clock.advance_ms(FIT_SOON_MS)
    await eventually(lambda: a.leader.leads)

    await leading.stop()


async def test_a_leader_that_can_no_longer_read_the_log_lets_another_lead(world: MemorySchedulers) -> None:
    health = Health("the fold of the log")
    a, b = world.replica("a", health=health), world.replica("b")
    await world.settle(a, b)
    ready = health.ready
    await world.stop_reading(a)
    await world.submit("job-1")

    for _ in range(15):
        await world.beat(slots=1, by=b)
        await world.clock.advance_ms(SECOND)
        for replica in (a, b):
            await world.turn(replica)
            await breathe()

    assert (ready, health.ready) == (True, False)
    assert (a.leader.leads, b.leader.leads) == (False, True)
    assert world.dispatched() == ["job-1"]


# ── the loop around the turns ─────────────────────────────────────────────────


async def test_a_loop_of_turns_says_what_is_missing_and_goes_on_by_itself(world: MemorySchedulers) -> None:
    health, log = Health("the log"), MemoryLog(world.server, clock=HastyClock())
    a = world.replica("a", health=health, log=log)
    await world.settle(a)
    log.wire.connected = False
    await world.clock.advance_ms(2 * SECOND)

    missing = asyncio.create_task(a.cycle._try_turn())
    await _until_done(world, missing)
    away = [each.name for each in health.missing]
    log.wire.connected = True
    await a.leader.renew()
    await _until_done(world, asyncio.create_task(a.cycle._try_turn()))

    assert (away, health.missing) == (["the log"], ())


async def _until_done(world: MemorySchedulers, turn: asyncio.Task[bool]) -> None:
    for _ in range(10):
        await world.clock.advance_ms(100)
        await breathe()
    await turn


async def test_loops_can_be_started_and_stopped_at_any_moment(world: MemorySchedulers) -> None:
    a = world.replica("a")
    loops = [Loop("lead", a.leader.run), Loop("cycle", a.cycle.run, patience_s=1), Loop("gauges", a.gauges.run)]

    for number in range(30):
        await asyncio.gather(*(loop.start() for loop in loops), *(loop.start() for loop in loops))
        await breathe(number % 7)
        a.woken.set()
        await asyncio.gather(*(loop.stop() for loop in loops), *(loop.stop() for loop in loops))

    await world.settle(a)
    assert await world.view_is_the_log()


# ── settings ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("patience_s", "fits"), [(0.5, False), (1.0, False), (1.5, True), (5.0, True)])
def test_patience_is_longer_than_from_one_renewal_of_the_lead_to_the_next(patience_s: float, fits: bool) -> None:  # noqa: FBT001 a table's column
    settings = SchedulerSettings.model_construct(outage_patience_s=patience_s)

    if fits:
        require_patience(settings, Policy())
    else:
        with pytest.raises(SettingsWrong, match=r"leases\.leader_heartbeat_s 1"):
            require_patience(settings, Policy())


def test_a_global_limit_below_a_providers_is_reported_at_start(caplog: pytest.LogCaptureFixture) -> None:
    policy = load_policy(None, environ={"LLM_MAX_CONCURRENCY_GLOBAL": "6"})

    health = Health()

    report(policy, health)

    said = [(record.levelname, record.message) for record in caplog.records if record.levelno >= logging.WARNING]
    assert said == [("WARNING", "policy: providers.global_limit 6 is below openai's 10, which can never be reached")]
    assert health.notes == (said[0][1],)

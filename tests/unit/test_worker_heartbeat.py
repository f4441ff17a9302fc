"""Whose an attempt is: what heartbeats give, what silence takes, and what an outage adds."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from headgate_contracts.commands import Beat, BeatReply, NamedLease
from libs.runtime.clock import ManualClock
from services.worker.attempts import Attempts
from services.worker.domain import Interruption, Lease
from services.worker.heartbeat import HeartbeatLoop, Watchdog
from services.worker.ports import Unheard

CUT_OFF_MS = 100_000


@dataclass
class Slots:
    named: tuple[NamedLease, ...] = ()
    lost_ones: list[str] = field(default_factory=list)

    async def lost(self, lease: str) -> None:
        self.lost_ones.append(lease)


@dataclass
class Attempt:
    """What heartbeat and watchdog see of an attempt."""

    holder: str
    lease: Lease
    slots: Slots = field(default_factory=Slots)
    looked: int = 0
    interrupted: list[Interruption] = field(default_factory=list)

    def hold_until(self, lease: Lease) -> None:
        self.lease = lease

    def look_soon(self) -> None:
        self.looked += 1

    def interrupt(self, why: Interruption) -> None:
        self.interrupted.append(why)


@dataclass
class Table:
    """The attempts of a worker."""

    attempts: list[Attempt]
    draining: bool = False
    stopped: dict[str, None] = field(default_factory=dict)
    some: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_idle(self) -> bool:
        return not self.attempts

    async def until_some(self) -> None:
        await self.some.wait()

    def __iter__(self) -> Any:
        return iter(self.attempts)

    def find(self, holder: str) -> Attempt | None:
        return next((attempt for attempt in self.attempts if attempt.holder == holder), None)


class Scheduler:
    def __init__(self, clock: ManualClock) -> None:
        self.answer: BeatReply | Unheard = Unheard.NOBODY
        self.takes_ms = 0
        self.beats: list[Beat] = []
        self._clock = clock

    async def beat(self, beat: Beat) -> BeatReply | Unheard:
        self.beats.append(beat)
        if self.takes_ms:
            await self._clock.sleep_ms(self.takes_ms)
        return self.answer

    async def acquire(self, wanted: object) -> Unheard:
        return Unheard.NOBODY

    async def give_up(self, lease: str) -> None: ...

    async def shut(self, pause: object) -> Unheard:
        return Unheard.NOBODY


class Scene:
    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.attempt = Attempt("job-1:1", Lease(30_000))
        self.table = Table([self.attempt])
        self.scheduler = Scheduler(clock)
        self.soon = asyncio.Event()
        attempts = cast("Attempts", self.table)
        self.heartbeat = HeartbeatLoop(
            attempts,
            self.scheduler,
            worker="worker-1",
            pool="default",
            slots=4,
            every_ms=5000,
            clock=clock,
            soon=self.soon,
        )
        self.watchdog = Watchdog(attempts, self.heartbeat, cut_off_ms=CUT_OFF_MS, clock=clock)

    async def ticks(self, duration_ms: int) -> None:
        for _ in range(duration_ms // 100):
            await self.clock.advance_ms(100)
            self.watchdog.look()


@pytest.fixture
def scene(clock: ManualClock) -> Scene:
    return Scene(clock)


def reply(**said: Any) -> BeatReply:
    return BeatReply(lease_s=30, **said)


async def test_a_heartbeat_names_all_that_the_worker_has(scene: Scene) -> None:
    lease = NamedLease(lease="job-1-1-1", holder="job-1:1", groups=("llm:ollama",))
    scene.attempt.slots.named = (lease,)
    scene.table.draining = True

    await scene.heartbeat.beat()

    beat = scene.scheduler.beats[0]
    assert (beat.worker, beat.pool, beat.slots, beat.draining) == ("worker-1", "default", 4, True)
    assert (beat.holders, beat.leases) == (("job-1:1",), (lease,))


async def test_a_kept_attempt_is_ours_for_a_lease_from_when_it_was_said(scene: Scene) -> None:
    scene.scheduler.answer = reply(kept=["job-1:1"])
    scene.scheduler.takes_ms = 400

    beating = asyncio.create_task(scene.heartbeat.beat())
    await asyncio.sleep(0)
    await scene.clock.advance_ms(400)
    await beating

    assert scene.attempt.lease == Lease(30_000)  # not 30,400: the answer may have been on its way for long


@pytest.mark.parametrize("said", [{"cancel": ["job-1:1"]}, {"not_yours": ["job-1:1"]}])
async def test_what_is_said_of_an_attempt_is_looked_up_in_the_log(scene: Scene, said: dict[str, Any]) -> None:
    scene.scheduler.answer = reply(**said)

    await scene.heartbeat.beat()

    assert scene.attempt.looked == 1
    assert scene.attempt.interrupted == []


async def test_an_attempt_that_is_to_be_cancelled_keeps_its_lease(scene: Scene) -> None:
    await scene.clock.advance_ms(10_000)
    scene.scheduler.answer = reply(cancel=["job-1:1"])

    await scene.heartbeat.beat()

    assert scene.attempt.lease == Lease(40_000)


async def test_lost_slots_are_told_to_the_attempts(scene: Scene) -> None:
    scene.scheduler.answer = reply(lost_leases=["job-1-1-1"])

    await scene.heartbeat.beat()

    assert scene.attempt.slots.lost_ones == ["job-1-1-1"]


async def test_who_asks_for_a_heartbeat_in_every_turn_of_a_loop_gets_ten_in_the_usual_pause(scene: Scene) -> None:
    scene.scheduler.answer = reply(kept=["job-1:1"])
    running = asyncio.create_task(scene.heartbeat.run(asyncio.Event()))

    for _ in range(1000):  # of five seconds
        scene.soon.set()
        await breathe()
        await scene.clock.advance_ms(5)
    running.cancel()

    assert 9 <= len(scene.scheduler.beats) <= 11
    assert scene.attempt.lease.ends_ms >= 34_500  # and what it holds lasts a whole lease from its last wish


async def test_a_change_is_said_at_once_and_silence_is_tried_again_soon(scene: Scene) -> None:
    scene.scheduler.answer = reply()
    running = asyncio.create_task(scene.heartbeat.run(asyncio.Event()))
    await passes(scene.clock, 1000)

    scene.soon.set()
    await breathe()
    after_a_change = len(scene.scheduler.beats)
    scene.scheduler.answer = Unheard.SILENT
    await passes(scene.clock, 5000)
    await passes(scene.clock, 500)
    running.cancel()

    assert after_a_change == 2
    assert len(scene.scheduler.beats) == 4


async def test_an_attempt_that_nobody_confirms_is_lost_at_the_end_of_its_lease(scene: Scene) -> None:
    scene.scheduler.answer = Unheard.SILENT
    await scene.heartbeat.beat()

    await scene.ticks(29_900)
    before = list(scene.attempt.interrupted)
    await scene.ticks(100)

    assert before == []
    assert scene.attempt.interrupted == [Interruption.LOST]


async def test_an_outage_of_all_makes_leases_longer_by_as_much(scene: Scene) -> None:
    await scene.ticks(10_000)
    scene.scheduler.answer = Unheard.NOBODY
    await scene.heartbeat.beat()

    await scene.ticks(60_000)

    assert scene.attempt.interrupted == []
    assert scene.attempt.lease.ends_ms == pytest.approx(90_000, abs=100)


async def test_after_an_outage_the_rest_of_the_lease_runs(scene: Scene) -> None:
    await scene.heartbeat.beat()
    await scene.ticks(60_000)
    scene.scheduler.answer = Unheard.SILENT
    await scene.heartbeat.beat()

    await scene.ticks(30_200)

    assert Interruption.LOST in scene.attempt.interrupted


async def test_who_reaches_nobody_for_longer_than_policy_allows_has_lost_its_attempts(scene: Scene) -> None:
    scene.scheduler.answer = Unheard.NOBODY
    await scene.heartbeat.beat()

    await scene.ticks(29_800 + CUT_OFF_MS)
    before = list(scene.attempt.interrupted)
    await scene.ticks(400)

    assert before == []
    assert set(scene.attempt.interrupted) == {Interruption.LOST}


async def test_each_outage_is_counted_from_when_somebody_was_heard(scene: Scene) -> None:
    for _ in range(3):
        scene.scheduler.answer = Unheard.NOBODY
        await scene.heartbeat.beat()
        await scene.ticks(CUT_OFF_MS - 1000)
        scene.scheduler.answer = reply(kept=["job-1:1"])
        await scene.heartbeat.beat()

    assert scene.attempt.interrupted == []


async def test_who_was_stopped_through_the_end_of_a_lease_has_lost_it(scene: Scene) -> None:
    await scene.ticks(1000)

    await scene.clock.advance_ms(60_000)  # no tick: the process itself was stopped
    scene.watchdog.look()

    assert scene.attempt.interrupted == [Interruption.LOST]


async def test_being_stopped_during_an_outage_counts_as_no_outage(scene: Scene) -> None:
    await scene.heartbeat.beat()
    await scene.ticks(1000)

    await scene.clock.advance_ms(60_000)
    scene.watchdog.look()

    assert scene.attempt.interrupted == [Interruption.LOST]


async def passes(clock: ManualClock, duration_ms: int) -> None:
    for _ in range(duration_ms // 100):
        await clock.advance_ms(100)
        await breathe()


async def breathe() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("unheard", "ends_ms"), [(True, 62_100), (False, 62_000)])
async def test_a_watchdog_sleeps_until_there_is_an_attempt_and_counts_no_outage_before_it(
    scene: Scene, *, unheard: bool, ends_ms: int
) -> None:
    scene.table.attempts.clear()
    scene.heartbeat.nobody_there = unheard
    watching = asyncio.create_task(scene.watchdog.run(asyncio.Event()))
    for _ in range(320):
        await scene.clock.advance_ms(100)

    scene.attempt.lease = Lease(62_000)
    scene.table.attempts.append(scene.attempt)
    scene.table.some.set()
    await asyncio.sleep(0)
    await scene.clock.advance_ms(100)

    watching.cancel()
    assert scene.attempt.lease.ends_ms == ends_ms

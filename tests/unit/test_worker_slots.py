"""Slots inside an attempt: how they are named outside, and how long the process waits for an answer."""

import asyncio

import pytest

from headgate_contracts.commands import AcquireLease, LeaseReply
from libs.runtime.clock import ManualClock
from services.worker.messages import Acquire, LeaseTold
from services.worker.ports import Unheard
from services.worker.slots import StageSlots
from tests.fixtures.lives import job_after


class Scheduler:
    """Gives the answers it was told to give, then the last one for ever."""

    def __init__(self, *answers: str | Unheard) -> None:
        self.answers = list(answers)
        self.asked: list[AcquireLease] = []
        self.given_up: list[str] = []

    async def beat(self, beat: object) -> Unheard:
        return Unheard.NOBODY

    async def acquire(self, wanted: AcquireLease) -> LeaseReply | Unheard:
        self.asked.append(wanted)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Unheard) else LeaseReply(lease=wanted.lease, state=answer)  # type: ignore[arg-type]

    async def give_up(self, lease: str) -> None:
        self.given_up.append(lease)


class Scene:
    def __init__(self, clock: ManualClock, *answers: str | Unheard) -> None:
        self.told: list[tuple[int, str]] = []
        self.clock = clock
        self.scheduler = Scheduler(*answers)
        job = job_after("queued dispatched started")
        self.slots = StageSlots(job, scheduler=self.scheduler, clock=clock, again_ms=5000, tell=self._tell)

    async def _tell(self, told: LeaseTold) -> None:
        self.told.append((told.lease, told.state))

    async def pass_ms(self, duration_ms: int) -> None:
        await breathe()
        await self.clock.advance_ms(duration_ms)
        await breathe()


async def test_slots_bear_names_that_their_process_cannot_choose(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")

    scene.slots.ask(Acquire(lease=4, providers=("ollama",), groups=("db",), ttl_ms=9000))
    await breathe()

    assert scene.scheduler.asked[0].lease == "job-1-1-4"
    assert scene.scheduler.asked[0].groups == ("llm:ollama", "llm:global", "group:project-1:db")
    assert scene.scheduler.asked[0].holder == "job-1:1"
    assert scene.told == [(4, "granted")]
    assert [named.lease for named in scene.slots.named] == ["job-1-1-4"]


async def test_nothing_is_named_as_held_while_it_waits(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting")

    scene.slots.ask(Acquire(lease=1, groups=("db",)))
    await scene.pass_ms(1000)

    assert scene.slots.named == ()
    assert scene.told == []


async def test_a_turn_that_has_come_is_taken_at_once(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting", "granted")
    scene.slots.ask(Acquire(lease=1, groups=("db",)))
    await breathe()

    known = scene.slots.granted("job-1-1-1")
    await breathe()

    assert known
    assert scene.told == [(1, "granted")]


async def test_a_grant_that_was_lost_is_found_by_asking_again(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting", "granted")
    scene.slots.ask(Acquire(lease=1, groups=("db",)))

    await scene.pass_ms(5000)

    assert scene.told == [(1, "granted")]


async def test_a_grant_for_another_is_passed_over(clock: ManualClock) -> None:
    assert not Scene(clock, "waiting").slots.granted("job-9-1-1")


async def test_who_will_not_wait_is_told_at_once(clock: ManualClock) -> None:
    scene = Scene(clock, "full")

    scene.slots.ask(Acquire(lease=1, groups=("db",), wait_ms=0))
    await breathe()

    assert scene.scheduler.asked[0].wait_ms == 0
    assert scene.told == [(1, "full")]


async def test_who_waits_for_a_while_is_told_when_it_is_over_and_waits_no_longer(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting")
    scene.slots.ask(Acquire(lease=1, groups=("db",), wait_ms=800))

    await scene.pass_ms(799)
    before = list(scene.told)
    await scene.pass_ms(1)

    assert before == []
    assert scene.told == [(1, "full")]
    assert scene.scheduler.given_up == ["job-1-1-1"]


@pytest.mark.parametrize("answer", ["view_lost", "not_yours", Unheard.NOBODY, Unheard.SILENT])
async def test_where_nobody_can_say_it_is_asked_again(clock: ManualClock, answer: str | Unheard) -> None:
    scene = Scene(clock, answer, answer, "granted")
    scene.slots.ask(Acquire(lease=1, groups=("db",)))

    await scene.pass_ms(500)
    await scene.pass_ms(500)

    assert scene.told == [(1, "granted")]


async def test_what_is_given_up_is_given_back_and_no_longer_named(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")
    scene.slots.ask(Acquire(lease=1, groups=("db",)))
    await breathe()

    scene.slots.give_up(1)
    await breathe()

    assert scene.slots.named == ()
    assert scene.scheduler.given_up == ["job-1-1-1"]


async def test_a_lost_slot_is_told_once(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")
    scene.slots.ask(Acquire(lease=1, groups=("db",)))
    await breathe()

    await scene.slots.lost("job-1-1-1")
    await scene.slots.lost("job-1-1-1")

    assert scene.told == [(1, "granted"), (1, "lost")]
    assert scene.slots.named == ()


async def test_a_process_cannot_ask_for_ever_more(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting")

    for number in range(1, 1000):
        scene.slots.ask(Acquire(lease=number, groups=("db",)))
    await breathe()

    assert len(scene.scheduler.asked) == 64


async def test_after_the_attempt_nothing_is_asked_any_more(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting")
    scene.slots.ask(Acquire(lease=1, groups=("db",)))
    await breathe()

    scene.slots.close()
    await scene.pass_ms(10_000)

    assert len(scene.scheduler.asked) == 1


async def breathe() -> None:
    for _ in range(6):
        await asyncio.sleep(0)

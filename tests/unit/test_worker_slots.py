"""Slots inside an attempt: how they are named outside, and how long the process waits for an answer."""

import asyncio

import pytest

from headgate_contracts.commands import AcquireLease, LeaseReply, ProviderShut, ShutProvider
from libs.policy import Policy
from libs.runtime.clock import ManualClock
from services.worker.attempt.slots import StageSlots
from services.worker.child.messages import Acquire, LeaseNotice, Shut
from services.worker.ports import Unheard
from tests.fixtures.lives import job_after


class Scheduler:
    """Gives the answers it was told to give, then the last one for ever."""

    def __init__(self, *answers: str | Unheard | LeaseReply) -> None:
        self.answers = list(answers)
        self.asked: list[AcquireLease] = []
        self.given_up: list[str] = []
        self.acts: list[str] = []
        self.shuts: list[ShutProvider] = []
        self.away = 0

    async def beat(self, beat: object) -> Unheard:
        return Unheard.NOBODY

    async def acquire(self, wanted: AcquireLease) -> LeaseReply | Unheard:
        self.asked.append(wanted)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.acts.append("acquire")
        return LeaseReply(lease=wanted.lease, state=answer) if isinstance(answer, str) else answer  # type: ignore[arg-type]

    async def give_up(self, lease: str) -> None:
        self.given_up.append(lease)
        self.acts.append("give up")

    async def shut(self, pause: ShutProvider) -> ProviderShut | Unheard:
        if self.away:
            self.away -= 1
            return Unheard.NOBODY
        self.shuts.append(pause)
        self.acts.append("shut")
        return ProviderShut(provider=pause.provider)


class Scene:
    def __init__(self, clock: ManualClock, *answers: str | Unheard | LeaseReply) -> None:
        self.told: list[tuple[int, str]] = []
        self.clock = clock
        self.scheduler = Scheduler(*answers)
        job = job_after("queued dispatched started")
        self.paused: list[str] = []
        self.slots = StageSlots(
            job,
            scheduler=self.scheduler,
            clock=clock,
            tell=self._tell,
            policy=Policy(),
            pauses=self.paused.append,
        )

    def ask(self, wanted: Acquire) -> None:
        self.slots.ask(wanted, "code")

    async def _tell(self, told: LeaseNotice) -> None:
        self.told.append((told.lease, told.state))

    async def pass_ms(self, duration_ms: int) -> None:
        await breathe()
        await self.clock.advance_ms(duration_ms)
        await breathe()


async def test_slots_bear_names_that_their_process_cannot_choose(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")

    scene.ask(Acquire(lease=4, providers=("ollama",), groups=("db",), ttl_ms=9000))
    await breathe()

    assert scene.scheduler.asked[0].lease == "job-1-1-4"
    assert scene.scheduler.asked[0].groups == ("llm:ollama", "llm:global", "group:project-1:db")
    assert scene.scheduler.asked[0].holder == "job-1:1"
    assert scene.told == [(4, "granted")]
    assert [named.lease for named in scene.slots.named] == ["job-1-1-4"]


async def test_nothing_is_named_as_held_while_it_waits(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting")

    scene.ask(Acquire(lease=1, groups=("db",)))
    await scene.pass_ms(1000)

    assert scene.slots.named == ()
    assert scene.told == []


async def test_a_turn_that_has_come_is_taken_at_once(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting", "granted")
    scene.ask(Acquire(lease=1, groups=("db",)))
    await breathe()

    known = scene.slots.granted("job-1-1-1")
    await breathe()

    assert known
    assert scene.told == [(1, "granted")]


async def test_a_grant_that_was_lost_is_found_by_asking_again(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting", "granted")
    scene.ask(Acquire(lease=1, groups=("db",)))

    await scene.pass_ms(5000)

    assert scene.told == [(1, "granted")]


async def test_a_turn_that_was_none_is_not_asked_for_without_end(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting", Unheard.NOBODY)
    scene.ask(Acquire(lease=1, groups=("db",)))
    await breathe()

    scene.slots.granted("job-1-1-1")
    await breathe()

    assert len(scene.scheduler.asked) == 2
    scene.slots.close()


async def test_a_grant_for_another_is_passed_over(clock: ManualClock) -> None:
    assert not Scene(clock, "waiting").slots.granted("job-9-1-1")


async def test_a_grant_that_nobody_wants_any_more_is_given_up(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")
    scene.ask(Acquire(lease=1, groups=("db",)))
    await breathe()
    scene.slots.give_up(1)
    await breathe()

    known = scene.slots.granted("job-1-1-1")  # by a scheduler that heard the old request late
    await breathe()

    assert not known
    assert scene.scheduler.given_up == ["job-1-1-1", "job-1-1-1"]


async def test_who_will_not_wait_is_told_at_once(clock: ManualClock) -> None:
    scene = Scene(clock, "full")

    scene.ask(Acquire(lease=1, groups=("db",), wait_ms=0))
    await breathe()

    assert scene.scheduler.asked[0].wait_ms == 0
    assert scene.told == [(1, "full")]


async def test_who_waits_for_a_while_is_told_when_it_is_over_and_waits_no_longer(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting")
    scene.ask(Acquire(lease=1, groups=("db",), wait_ms=800))

    await scene.pass_ms(799)
    before = list(scene.told)
    await scene.pass_ms(1)

    assert before == []
    assert scene.told == [(1, "full")]
    assert scene.scheduler.given_up == ["job-1-1-1"]


async def test_who_is_refused_is_not_to_wait(clock: ManualClock) -> None:
    scene = Scene(clock, "refused")
    scene.ask(Acquire(lease=1, groups=("db",), wait_ms=60_000))

    await breathe()

    assert scene.told == [(1, "full")]


@pytest.mark.parametrize("answer", ["view_lost", "not_yours", Unheard.NOBODY, Unheard.SILENT])
async def test_where_nobody_can_say_it_is_asked_again(clock: ManualClock, answer: str | Unheard) -> None:
    scene = Scene(clock, answer, answer, "granted")
    scene.ask(Acquire(lease=1, groups=("db",)))

    await scene.pass_ms(500)
    await scene.pass_ms(500)

    assert scene.told == [(1, "granted")]


async def test_what_is_given_up_is_given_back_and_no_longer_named(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")
    scene.ask(Acquire(lease=1, groups=("db",)))
    await breathe()

    scene.slots.give_up(1)
    await breathe()

    assert scene.slots.named == ()
    assert scene.scheduler.given_up == ["job-1-1-1"]


async def test_a_lost_slot_is_told_once(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")
    scene.ask(Acquire(lease=1, groups=("db",)))
    await breathe()

    await scene.slots.lost("job-1-1-1")
    await scene.slots.lost("job-1-1-1")

    assert scene.told == [(1, "granted"), (1, "lost")]
    assert scene.slots.named == ()


async def test_a_process_cannot_ask_for_ever_more(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting")

    for number in range(1, 1000):
        scene.ask(Acquire(lease=number, groups=("db",)))
    await breathe()

    assert len(scene.scheduler.asked) == 64


async def test_after_the_attempt_nothing_is_asked_any_more(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting")
    scene.ask(Acquire(lease=1, groups=("db",)))
    await breathe()

    scene.slots.close()
    await scene.pass_ms(10_000)

    assert len(scene.scheduler.asked) == 1


# ── a provider that had enough ────────────────────────────────────────────────


async def test_all_are_told_of_a_pause_before_the_slot_goes_and_the_next_wish_waits_for_that(
    clock: ManualClock,
) -> None:
    scene = Scene(clock, "granted")
    scene.scheduler.away = 2
    scene.ask(Acquire(lease=1, providers=("openai",)))
    await breathe()

    scene.slots.shut(Shut(lease=1, provider="openai", for_ms=20_000))
    scene.ask(Acquire(lease=2, providers=("openai",)))
    await scene.pass_ms(500)
    meanwhile = list(scene.scheduler.acts)
    await scene.pass_ms(500)

    assert meanwhile == ["acquire"]
    assert scene.scheduler.acts == ["acquire", "shut", "give up", "acquire"]
    assert scene.scheduler.given_up == ["job-1-1-1"]
    assert scene.told == [(1, "granted"), (2, "granted")]
    assert scene.paused == []


async def test_a_grant_that_nobody_wants_is_given_up_also_while_all_are_told_of_a_pause(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")
    scene.scheduler.away = 1
    scene.ask(Acquire(lease=1, providers=("openai",)))
    await breathe()
    scene.slots.shut(Shut(lease=1, provider="openai", for_ms=20_000))
    await breathe()

    known = [scene.slots.granted(lease) for lease in ("job-1-1-1", "job-1-1-2")]
    await breathe()

    assert known == [False, False]
    assert scene.scheduler.given_up == ["job-1-1-2"]
    scene.slots.close()


async def test_a_pause_has_some_jitter_and_is_never_shorter_than_asked(clock: ManualClock) -> None:
    pauses = set[int]()
    for _ in range(20):
        scene = Scene(clock, "granted")
        scene.ask(Acquire(lease=1, providers=("openai",)))
        await breathe()
        scene.slots.shut(Shut(lease=1, provider="openai", for_ms=20_000))
        await breathe()
        pauses.add(scene.scheduler.shuts[0].for_ms)

    assert len(pauses) > 1
    assert all(20_000 <= pause <= 22_000 for pause in pauses)


async def test_a_provider_that_wants_to_be_asked_again_at_once_has_a_pause_all_the_same(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")
    scene.ask(Acquire(lease=1, providers=("openai",)))
    await breathe()

    scene.slots.shut(Shut(lease=1, provider="openai", for_ms=0))
    await breathe()

    assert scene.scheduler.shuts[0].for_ms >= 500


@pytest.mark.parametrize(("for_ms", "gives_back"), [(50_000, False), (61_000, True), (None, False)])
async def test_for_a_long_pause_a_job_does_not_wait_with_all_its_slots(
    clock: ManualClock, for_ms: int | None, *, gives_back: bool
) -> None:
    scene = Scene(clock, "granted")
    scene.slots._providers = Policy.model_validate({"providers": {"pause_s": 30}}).providers
    scene.ask(Acquire(lease=1, providers=("openai",)))
    await breathe()

    scene.slots.shut(Shut(lease=1, provider="openai", for_ms=for_ms))
    await breathe()

    assert scene.paused == (["openai"] if gives_back else [])


@pytest.mark.parametrize(
    "shut",
    [
        Shut(lease=2, provider="openai", for_ms=1000),  # a lease that it has not
        Shut(lease=1, provider="gemini", for_ms=1000),  # a provider that it does not call
    ],
)
async def test_only_who_holds_a_slot_of_a_provider_can_shut_it(clock: ManualClock, shut: Shut) -> None:
    scene = Scene(clock, "granted")
    scene.ask(Acquire(lease=1, providers=("openai",)))
    await breathe()

    scene.slots.shut(shut)
    await breathe()

    assert scene.scheduler.shuts == []


async def test_who_is_still_waiting_for_a_slot_can_shut_nothing(clock: ManualClock) -> None:
    scene = Scene(clock, "waiting")
    scene.ask(Acquire(lease=1, providers=("openai",)))
    await breathe()

    scene.slots.shut(Shut(lease=1, provider="openai", for_ms=1000))
    await breathe()

    assert scene.scheduler.shuts == []


@pytest.mark.parametrize(("shut_ms", "gives_back"), [(59_000, False), (61_000, True)])
async def test_a_pause_that_others_began_counts_as_well(clock: ManualClock, shut_ms: int, *, gives_back: bool) -> None:
    answer = LeaseReply(lease="job-1-1-1", state="waiting", group="llm:openai", shut_ms=shut_ms)
    scene = Scene(clock, answer)

    scene.ask(Acquire(lease=1, providers=("openai",)))
    await breathe()

    assert scene.paused == (["openai"] if gives_back else [])


async def test_a_stage_that_allows_so_many_is_a_group_with_that_number_in_its_name(clock: ManualClock) -> None:
    scene = Scene(clock, "granted")

    scene.ask(Acquire(lease=1, stage_limit=3))
    await breathe()

    assert scene.scheduler.asked[0].groups == ("stage:build:code:3",)


async def breathe() -> None:
    for _ in range(6):
        await asyncio.sleep(0)

"""Recorded events under a policy: the same one gives what was recorded, another changes what it must."""

from __future__ import annotations

import json
import random
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from headgate_contracts.envelope import utc
from headgate_contracts.vocabulary import Priority, Tier
from libs.capacity.rows import Pause, Resume, SetLimit
from libs.cli import simulate as command
from libs.cli.arguments import parse
from libs.cli.bars import Group, bar, svg
from libs.cli.errors import Failed
from libs.cli.output import Output
from libs.eventlog import Record
from libs.forecast.durations import Durations
from libs.forecast.lives import Life, RecordedAct, RecordedPast, Staffed, Stay
from libs.forecast.machine import PoolSlots
from libs.forecast.making import durations_of
from libs.forecast.recorded import Recorder
from libs.forecast.replay import Replay, Replayed
from libs.forecast.simulate import OTHER, RECORDED, TODAY, Comparison, compare
from libs.policy import Policy
from tests.fixtures.lives import life_of
from tests.fixtures.schedulers import MemorySchedulers, a_world

SLOTS = 3


def policy(*, jobs_per_day: int = 100, queue: dict[str, int] | None = None, **tiers: dict[str, int]) -> Policy:
    """The defaults but for what is said. Nobody falls silent in it, however far the clock jumps."""
    return Policy.model_validate(
        {
            "leases": {"job_s": 1e6, "heartbeat_s": 1e5},
            "queue": queue or {},
            "tiers": {tier.value: {"jobs_per_day": jobs_per_day, **tiers.get(tier.value, {})} for tier in Tier},
        }
    )


POLICY = policy()
TIERS = [Tier.BOOTSTRAPPER, Tier.PARTNER, Tier.CTO_SCALE]


@dataclass(frozen=True)
class Guest:
    name: str
    at_s: int
    hold_s: int
    user: str
    tier: Tier
    priority: Priority
    story: str  # what its worker writes in the end


def guests(count: int = 60) -> list[Guest]:
    rng = random.Random(5)
    stories = ["ready"] * 6 + ["failed", "awaiting_confirmation", "given_back:drained"]
    users = [int(6 * rng.random() ** 1.5) for _ in range(count)]
    return [
        Guest(
            name=f"job-{number:02}",
            at_s=number * 15 + rng.randrange(10),
            hold_s=rng.randrange(25, 90),
            user=f"user-{users[number]}",
            tier=TIERS[users[number] % 3],
            priority=rng.choice([Priority.NORMAL, Priority.NORMAL, Priority.LOW]),
            story=rng.choice(stories),
        )
        for number in range(count)
    ]


async def live_through(world: MemorySchedulers, guests: Sequence[Guest]) -> tuple[Record, ...]:
    """The real scheduler, over servers in memory; each worker takes exactly as long as it is told."""
    leader = world.replica("a")
    await world.settle(leader)
    await world.beat("worker-1", slots=SLOTS)
    began_ms, known = world.clock.monotonic_ms(), {each.name: each for each in guests}
    due = [(each.at_s, "come", each.name) for each in guests]
    seen = 0
    while due:
        due.sort()
        at_s, what, name = due.pop(0)
        await world.pass_ms(max(0, began_ms + at_s * 1000 - world.clock.monotonic_ms()))
        if await happen(world, what, known[name]):
            due.append((at_s + 40, "answer", name))
        await world.settle(leader)
        started = world.dispatched()
        due += [(at_s + known[each].hold_s, "end", each) for each in started[seen:]]
        seen = len(started)
    return tuple(world.records())


async def happen(world: MemorySchedulers, what: str, guest: Guest) -> bool:
    """What somebody writes now; whether its user is asked by it."""
    if what == "come":
        asked = {"tier": guest.tier, "priority": guest.priority, "takes_day": True}
        await world.submit(guest.name, user=guest.user, project=guest.user, **asked)
    elif what == "answer":
        await world.write(guest.name, "confirmed")
    else:
        return await end(world, guest)
    return False


async def end(world: MemorySchedulers, guest: Guest) -> bool:
    """What becomes of an attempt. One that was given back, or asks, ends well the next time."""
    job = await world.job(guest.name)
    if guest.story == "ready" or job.attempt > 1:
        await world.write(guest.name, "started", *_rest(job.finished_stages), "ready")
    elif guest.story == "awaiting_confirmation":
        await world.write(guest.name, "started", "scaffold", "code", "deps", "checks")
        await world.write(guest.name, "awaiting_confirmation", expires_at=utc(world.clock.now_ms() + 86_400_000))
        return True
    else:
        await world.write(guest.name, "started", guest.story)
    return False


def _rest(finished: Sequence[str]) -> list[str]:
    return [stage for stage in ("scaffold", "code", "deps", "checks") if stage not in finished]


@pytest_asyncio.fixture(scope="module")
async def records() -> AsyncIterator[tuple[Record, ...]]:
    async with a_world(policy=POLICY) as world:
        yield await live_through(world, guests())


@pytest.fixture
def recorder(records: tuple[Record, ...]) -> Recorder:
    recorder = Recorder()
    recorder.take(records)
    return recorder


def mean_s(found: Comparison, source: str, *, tier: Tier | None = None) -> float:
    waits = [kind.waits[source] for kind in found.kinds if source in kind.waits and tier in (None, kind.tier)]
    return sum(each.mean * each.count for each in waits) / sum(each.count for each in waits)


# ── a recorded run ────────────────────────────────────────────────────────────


def test_the_same_policy_gives_the_waits_that_were_recorded(recorder: Recorder) -> None:
    found = compare(recorder, today=POLICY, other=POLICY)

    assert found.jobs == 60
    assert mean_s(found, RECORDED) > 20, "nobody waited: this compares nothing"
    for kind in found.kinds:
        recorded, today = kind.waits[RECORDED], kind.waits[TODAY]
        assert (recorded.count, kind.waits[OTHER]) == (today.count, today)
        assert (today.mean, today.p99) == pytest.approx((recorded.mean, recorded.p99), abs=0.01)


def test_the_virtual_rules_start_each_job_when_the_scheduler_did(recorder: Recorder) -> None:
    holds = Durations(durations_of({}, POLICY))

    found = Replay(recorder.history(holds), POLICY, holds=holds).run()

    assert {start.job: start.at_ms for start in found.starts} == {start.job: start.at_ms for start in recorder.starts()}


def test_a_lower_limit_lengthens_the_waits_of_those_it_is_for(recorder: Recorder) -> None:
    tight = policy(bootstrapper={"jobs_per_user": 1})

    found = compare(recorder, today=POLICY, other=tight)

    assert mean_s(found, OTHER, tier=Tier.BOOTSTRAPPER) > mean_s(found, TODAY, tier=Tier.BOOTSTRAPPER) + 5
    assert mean_s(found, OTHER, tier=Tier.CTO_SCALE) <= mean_s(found, TODAY, tier=Tier.CTO_SCALE)


def test_without_a_boost_the_tier_that_had_it_waits_longer(recorder: Recorder) -> None:
    flat = policy(cto_scale={"boost": 0}, partner={"boost": 0})

    found = compare(recorder, today=POLICY, other=flat)

    assert mean_s(found, OTHER, tier=Tier.CTO_SCALE) > mean_s(found, TODAY, tier=Tier.CTO_SCALE)
    assert mean_s(found, OTHER, tier=Tier.BOOTSTRAPPER) < mean_s(found, TODAY, tier=Tier.BOOTSTRAPPER)


def test_a_daily_cap_of_one_schedules_the_rest_for_later_days(recorder: Recorder) -> None:
    capped = policy(jobs_per_day=1)

    found = compare(recorder, today=POLICY, other=capped)

    assert found.deferred[OTHER] > 40 > found.deferred[TODAY]
    assert mean_s(found, OTHER) < mean_s(found, TODAY)


def test_a_smaller_queue_refuses_some(recorder: Recorder) -> None:
    small = policy(queue={"cap": 2})

    found = compare(recorder, today=POLICY, other=small)

    assert found.refused[OTHER] > 0 == found.refused[TODAY]


def test_only_starts_since_a_moment_are_counted(recorder: Recorder) -> None:
    starts = sorted(start.at_ms for start in recorder.starts())

    found = compare(recorder, today=POLICY, other=POLICY, since_ms=starts[30])

    assert sum(kind.waits[RECORDED].count for kind in found.kinds if RECORDED in kind.waits) == 30


def test_a_log_that_is_read_in_mid_run_is_replayed_with_dealt_ends(records: tuple[Record, ...]) -> None:
    recorder = Recorder()
    recorder.take(records[: len(records) // 2])

    found = compare(recorder, today=POLICY, other=POLICY)

    assert sum(kind.waits[TODAY].count for kind in found.kinds) == recorder.jobs


@pytest.mark.parametrize(
    ("story", "patience_s", "stays"),
    [
        ("queued cancelled", 1.0, ()),
        ("scheduled cancelled", 0.0, ()),
        ("queued dispatched cancel_requested started cancelled", None, (Stay(3.0),)),
        ("queued dispatched started given_back:lost cancelled", None, (Stay(2.0),)),
    ],
)
def test_how_a_job_left_is_its_own(story: str, patience_s: float | None, stays: tuple[Stay, ...]) -> None:
    recorder = Recorder()
    recorder.take(
        Record(seq=seq, at=event.time, event=event) for seq, event in enumerate(life_of("job-1", story), start=1)
    )

    (found,) = recorder.history(Durations(durations_of({}, POLICY))).lives

    assert (found.patience_s, found.stays) == (patience_s, stays)


# ── a history by hand ─────────────────────────────────────────────────────────


def life(name: str, at_s: float = 0, *holds_s: float, **changes: Any) -> Life:
    plain = Life(
        job=name,
        user=name,
        project=name,
        tier="bootstrapper",
        priority="normal",
        at_ms=round(at_s * 1000),
        stays=tuple(Stay(hold_s) for hold_s in holds_s or (100,)),
    )
    return replace(plain, **changes)


def replayed(*lives: Life, slots: int = 1, rules: Policy = POLICY, acts: Sequence[RecordedAct] = ()) -> Replayed:
    staffed = (Staffed(0, PoolSlots("default", slots)),)
    return Replay(
        RecordedPast(lives=lives, acts=tuple(acts), staffed=staffed), rules, holds=Durations(durations_of({}, rules))
    ).run()


def starts_s(found: Replayed) -> dict[str, float]:
    return {start.job: start.at_ms / 1000 for start in found.starts}


def test_a_job_that_comes_back_takes_its_old_place() -> None:
    asks = life("asks", 0, stays=(Stay(100, away_s=50), Stay(100)))

    assert starts_s(replayed(asks, life("b", 1), life("c", 2))) == {"asks": 0, "b": 100, "c": 300}


def test_a_job_that_was_cancelled_while_it_waited_leaves_the_queue() -> None:
    found = replayed(life("a", 0), life("gone", 1, patience_s=50), life("c", 2))

    assert starts_s(found) == {"a": 0, "c": 100}
    assert found.unstarted == ("gone",)


def test_a_later_phase_comes_when_the_one_before_it_is_over() -> None:
    first, second = life("w-1", 0, workflow="w"), life("w-2", 0, workflow="w", after="w-1")

    assert starts_s(replayed(first, second, slots=5)) == {"w-1": 0, "w-2": 100}


def test_what_operators_did_happens_again() -> None:
    acts = [
        RecordedAct(0, Pause("user:a", "op", "", 0)),
        RecordedAct(50_000, Resume("user:a")),
        RecordedAct(0, SetLimit("user:b", 1)),
    ]

    found = replayed(life("a", 0), life("b", 0), life("c", 0, user="b", project="b"), slots=9, acts=acts)

    assert starts_s(found) == {"b": 0, "a": 50, "c": 100}


def test_somebodys_priority_counts_from_then_on() -> None:
    lifted = life("lifted", 2, ranks=((50_000, "high"),))

    assert starts_s(replayed(life("a", 0), life("b", 1), lifted)) == {"a": 0, "lifted": 100, "b": 200}


def test_a_released_job_waits_for_room() -> None:
    one = policy(queue={"cap": 1})
    later = life("later", 0, run_at_ms=50_000)

    found = replayed(life("a", 0), life("b", 1), later, rules=one)

    assert starts_s(found) == {"a": 0, "b": 100, "later": 200}


# ── the command ───────────────────────────────────────────────────────────────


@pytest.fixture
def asked(tmp_path: Path, records: tuple[Record, ...], monkeypatch: pytest.MonkeyPatch) -> Namespace:
    async def read(recorder: Recorder, tell: Any) -> None:
        recorder.take(records)
        tell(len(records), len(records))

    monkeypatch.setattr(command, "_read", read)
    other = tmp_path / "other.toml"
    other.write_text("[tiers.bootstrapper]\njobs_per_user = 1\n")
    return parse(["simulate", "--policy", str(other), "--plot", str(tmp_path / "waits.svg")])


def test_the_command_shows_all_three_and_draws_them(asked: Namespace, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.simulate(asked, Output(as_json=False)) == 0

    shown = capsys.readouterr().out
    assert "60 jobs" in shown
    for word in ("recorded", "today's policy", "the other", "bootstrapper", "█"):
        assert word in shown
    assert asked.plot.read_text().startswith("<svg ")


@pytest_asyncio.fixture
async def prompt_start() -> AsyncIterator[tuple[Record, ...]]:
    """One job that waits 20 ms."""
    async with a_world(policy=POLICY) as world:
        leader = world.replica("a")
        await world.settle(leader)
        await world.beat("worker-1", slots=1)
        await world.submit("a", user="u", project="p", tier=Tier.PARTNER, takes_day=True)
        await world.pass_ms(20)
        await world.settle(leader)
        yield tuple(world.records())


def test_a_wait_that_is_shown_as_none_has_no_bar(
    asked: Namespace,
    prompt_start: tuple[Record, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def read(recorder: Recorder, tell: Any) -> None:
        recorder.take(prompt_start)

    monkeypatch.setattr(command, "_read", read)

    command.simulate(asked, Output(as_json=False))

    [recorded] = [line for line in capsys.readouterr().out.splitlines() if "recorded" in line]
    assert recorded.split()[-5:] == ["1", "0.0", "0.0", "0.0", "0.0"]


def test_json_is_all_that_a_program_gets(asked: Namespace, capsys: pytest.CaptureFixture[str]) -> None:
    command.simulate(asked, Output(as_json=True))

    said = json.loads(capsys.readouterr().out)
    assert said["jobs"] == 60
    assert {"recorded", "today", "other"} <= set(said["waits"][0])


def test_a_log_without_a_start_is_no_comparison(asked: Namespace) -> None:
    asked.since = replace_year(asked)

    with pytest.raises(Failed, match="No job has started"):
        command.simulate(asked, Output(as_json=True))


def replace_year(asked: Namespace) -> Any:
    return parse(["simulate", "--policy", str(asked.policy), "--since", "2099-01-01"]).since


@pytest.mark.parametrize("words", [["simulate"], ["simulate", "--policy", "x", "--since", "yesterday"]])
def test_wrong_usage_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(words)

    assert ended.value.code == 2
    assert "Usage" in capsys.readouterr().err


def test_a_bar_is_as_long_as_its_number() -> None:
    assert [bar(value, 4, width=4) for value in (0, 0.5, 2, 4)] == ["", "▌", "██", "████"]
    assert bar(1, 0, width=4) == ""


def test_a_picture_escapes_what_it_is_told() -> None:
    drawn = svg("a < b", [Group("x & y", {"one": 2.0}), Group("none", {})], ["one"], unit="s")

    assert "a &lt; b" in drawn
    assert "x &amp; y" in drawn
    assert drawn.count("<rect") == 3

"""The fold of the log, held in memory: what it makes of each record, and that a snapshot loses nothing."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts import Event, Status, UnknownEvent, Writer, advance, fold
from headgate_contracts.events import (
    Act,
    Group,
    LeaseReleased,
    LimitSet,
    LimitUnset,
    QueuePaused,
    QueueResumed,
    SchedulerCommitted,
)
from libs.capacity.ledger import Ledger
from libs.capacity.rows import Change, FreeLease, Pause, Resume, SetLimit, UnsetLimit
from libs.capacity.snapshot import SHAPE, SnapshotUnusable, dump, load, picture_of
from libs.policy import Policy
from tests.fixtures.lives import event_id, life_of, queued, step, submission, wander

POLICY = Policy()
T0 = datetime(2026, 1, 1, tzinfo=UTC)
KNOWN = ("jobs", "roster", "passed", "orders", "forced", "days", "turns", "learned", "phases", "places", "remnants")


@dataclass(frozen=True)
class Logged:
    seq: int
    at: datetime
    event: object


def logged(events: Iterable[object], *, after: int = 0) -> list[Logged]:
    return [Logged(seq, T0 + timedelta(seconds=seq), event) for seq, event in enumerate(events, after + 1)]


def folded(events: Iterable[object]) -> tuple[Ledger, list[Change]]:
    ledger = Ledger(POLICY)
    return ledger, [ledger.apply(record) for record in logged(events)]


def act(data: Act) -> Event[Act]:
    return Event(event_id(data.about(), data.type_name()), Writer.ADMISSION, T0, data)


def test_each_change_leads_on_from_the_one_before() -> None:
    _, changes = folded(life_of("job-1"))

    assert [(change.prev, change.seq) for change in changes] == [(n, n + 1) for n in range(len(changes))]


def test_a_row_holds_its_slots_from_dispatched_to_the_end() -> None:
    _, changes = folded(life_of("job-1", "queued dispatched started scaffold code deps checks ready"))

    holders = [change.row and change.row.holder for change in changes]

    assert holders == [None, *["job-1:1"] * 6, None]


def test_a_job_given_back_stands_at_its_old_place() -> None:
    _, changes = folded(life_of("job-1", "queued dispatched started scaffold given_back:lost"))
    first, last = changes[0].row, changes[-1].row

    assert first is not None
    assert last is not None
    assert last.score == first.score
    assert last.entered_ms == first.entered_ms


def test_a_job_cancelled_before_it_started_gives_its_day_back() -> None:
    ledger, changes = folded([*life_of("job-1", "queued cancelled", quota_day="2026-01-01")])

    assert changes[0].row is not None
    assert changes[0].row.quota_day is not None
    assert ledger.jobs["job-1"].quota_day is None


def test_what_cannot_follow_is_stepped_over_and_complained_of() -> None:
    twice = queued("job-1")

    ledger, changes = folded([twice, twice, object()])

    assert changes[1].row is None
    assert "about a job that is queued" in str(changes[1].complaint)
    assert changes[2].complaint is not None
    assert ledger.applied == 3


def test_an_event_of_a_newer_writer_keeps_the_jobs_chain() -> None:
    first, *_ = life_of("job-1")
    newer = UnknownEvent(event_id("newer"), "dev.headgate.job.polished.v1", T0, "job-1", Status.QUEUED, sequence=2)

    ledger, changes = folded([first, newer])

    assert changes[1].row is not None
    assert (ledger.jobs["job-1"].sequence, ledger.jobs["job-1"].seq) == (2, 2)


def test_a_job_that_was_passed_before_its_own_first_event_remembers_it() -> None:
    late = queued("late")
    passer = queued("passer", passed=("late",))

    ledger, changes = folded([passer, late])

    assert changes[0].passed == ("late",)
    assert changes[1].passed_before == 1
    assert ledger.passed == {"late": 1}


def test_operators_orders_become_orders_of_the_view() -> None:
    pause = act(QueuePaused(scope="user:u1", by="olga", reason="too loud"))
    resume = act(QueueResumed(scope="user:u1", by="olga"))
    limit = act(LimitSet(group="group:shop:db", limit=4, by="olga"))

    ledger, changes = folded([pause, resume, limit])

    since_ms = round(T0.timestamp() * 1000) + 1000
    assert changes[0].order == Pause("user:u1", "olga", "too loud", since_ms)
    assert changes[1].order == Resume("user:u1")
    assert changes[2].order == SetLimit("group:shop:db", 4)
    assert ledger.orders.pauses == {}


@pytest.mark.parametrize(("group", "sets"), [("group:shop:db", True), ("workflows", False)])
def test_a_submission_sets_a_limit_only_where_none_is_set(group: str, sets: bool) -> None:  # noqa: FBT001 a table's column
    asked = submission(groups=(Group(name=group, limit=7),))

    ledger, _ = folded([queued("job-1", submission=asked), queued("job-2", submission=asked)])

    assert ledger.orders.in_force() == ({group: 7} if sets else {})


DB = "group:shop:db"
LONG = "queued dispatched started"


def asking(job: str, story: str, *, limit: int | None = None) -> list[object]:
    return list(life_of(job, story, submission=submission(groups=(Group(name=DB, limit=limit),))))


@pytest.mark.parametrize(
    ("events", "in_force", "unused"),
    [
        (asking("job-1", LONG, limit=2), {DB: 2}, []),
        (asking("job-1", "queued cancelled", limit=2), {}, [2]),
        (asking("job-1", "scheduled cancelled", limit=2), {}, [2]),
        (asking("job-1", f"{LONG} failed", limit=2), {}, [4]),
        ([*asking("job-1", "queued cancelled", limit=2), *asking("job-2", "queued", limit=3)], {DB: 3}, [2]),
        ([*asking("job-2", "queued"), *asking("job-1", "queued cancelled", limit=2)], {DB: 2}, []),
        ([*asking("job-2", "queued cancelled"), *asking("job-1", "queued", limit=2)], {DB: 2}, []),
        ([*asking("job-1", "queued", limit=2), *asking("job-2", "queued cancelled", limit=3)], {DB: 2}, []),
        ([LimitSet(group=DB, limit=5, by="olga"), *asking("job-1", "queued cancelled", limit=2)], {DB: 5}, []),
    ],
)
def test_the_limit_that_a_submission_brings_goes_with_the_last_unfinished_job_of_its_group(
    events: list[object], in_force: dict[str, int], unused: list[int]
) -> None:
    ledger, changes = folded([act(each) if isinstance(each, LimitSet) else each for each in events])

    assert ledger.orders.in_force() == in_force
    assert [change.seq for change in changes if change.unused] == unused
    assert {group for change in changes for group in change.unused} <= {DB}


def test_a_limit_that_is_unset_leaves_what_submissions_bring_and_else_policy() -> None:
    unset = act(LimitUnset(group=DB, by="olga"))
    ledger, changes = folded(
        [
            act(LimitSet(group=DB, limit=5, by="olga")),
            *asking("job-1", "queued", limit=2),
            unset,
            act(LimitSet(group=DB, limit=6, by="olga")),
            act(LimitUnset(group=DB, by="olga")),
            *asking("job-1", "queued cancelled")[1:],
            act(LimitUnset(group=DB, by="olga")),
        ]
    )

    orders = [change.order for change in changes if change.order]
    assert orders == [SetLimit(DB, 5), SetLimit(DB, 2), SetLimit(DB, 6), SetLimit(DB, 2), UnsetLimit(DB)]
    assert (ledger.orders.in_force(), changes[5].unused) == ({}, (DB,))


def test_a_ledger_that_was_put_away_still_knows_which_groups_are_used() -> None:
    ledger, _ = folded(
        [*asking("job-1", "queued", limit=2), *asking("job-2", "queued"), *asking("job-3", "queued cancelled")]
    )

    resumed = load(dump(ledger, epoch="E"), epoch="E", policy=POLICY)

    assert resumed.orders == ledger.orders
    for number, job in ((5, "job-1"), (6, "job-2")):
        last = resumed.apply(Logged(number, T0, asking(job, "queued cancelled")[1]))
    assert (resumed.orders.in_force(), resumed.orders.asked, last.unused) == ({}, {}, (DB,))


@pytest.mark.parametrize(
    ("group", "lease", "forced"),
    [
        ("user:user-1", "job-1:1", {"job-1": "olga"}),
        ("pool:default", "job-1:1", {"job-1": "olga"}),
        ("user:user-2", "job-1:1", {}),
        ("user:user-1", "job-1:2", {}),
        ("llm:ollama", "job-1-1-1", {"job-1": "olga"}),
        ("llm:ollama", "job-1-2-1", {}),
        ("llm:ollama", "job-1-1", {}),
        ("llm:ollama", "lease-1", {}),
    ],
)
def test_a_forced_release_names_an_attempt_that_runs_by_its_own_slot_or_its_stages(
    group: str, lease: str, forced: dict[str, str]
) -> None:
    release = act(LeaseReleased(group=group, lease=lease, by="olga"))

    ledger, changes = folded([*life_of("job-1", "queued dispatched started"), release])

    assert ledger.forced == forced
    assert changes[-1].order == (None if forced else FreeLease(group, lease))  # the attempt holds it until it ends


def test_an_attempt_that_is_over_is_forced_no_more() -> None:
    life = life_of("job-1", "queued dispatched started given_back:forced dispatched")
    release = act(LeaseReleased(group="user:user-1", lease="job-1:1", by="olga"))

    ledger, _ = folded([*life[:3], release, *life[3:]])

    assert ledger.forced == {}


def test_a_job_given_back_for_a_provider_waits_at_its_gate_until_it_starts() -> None:
    life = life_of("job-1", "queued dispatched started scaffold")
    job = fold(life)
    back = step(job, "given_back:provider", provider="openai")

    _, changes = folded([*life, back, step(advance(job, back), "dispatched")])

    assert [change.row and change.row.gates for change in changes[-3:]] == [(), ("llm:openai",), ()]


def test_a_commit_changes_nothing_but_the_sequence() -> None:
    link = Event(event_id("c"), Writer.SCHEDULER, T0, SchedulerCommitted(shard="0", leader="s1", jobs=("job-1",)))

    _, changes = folded([link])

    assert changes == [Change(seq=1, prev=0)]


def test_an_ended_job_leaves_after_a_minute_by_the_logs_own_clock() -> None:
    ledger = Ledger(POLICY)
    for record in logged(life_of("job-1", "queued cancelled")):
        ledger.apply(record)

    stays = ledger.apply(Logged(3, T0 + timedelta(seconds=60), queued("job-2")))
    assert set(ledger.jobs) == {"job-1", "job-2"}
    goes = ledger.apply(Logged(4, T0 + timedelta(seconds=63), queued("job-3")))
    assert set(ledger.jobs) == {"job-2", "job-3"}
    assert (stays.gone, goes.gone) == ((), ("job-1",))


def test_of_those_that_ended_just_now_so_many_are_known_and_no_more() -> None:
    ledger = Ledger(Policy.model_validate({"retention": {"ended_jobs": 3}}))
    lives = [event for number in range(9) for event in life_of(f"job-{number}", "queued cancelled")]
    for record in logged(lives):
        ledger.apply(record)

    ledger.apply(logged([queued("last")], after=len(lives))[0])

    assert set(ledger.jobs) == {"job-6", "job-7", "job-8", "last"}


@given(seed=st.integers(0, 2**32), cut=st.integers(0, 60))
def test_a_snapshot_and_the_rest_of_the_log_are_the_whole_log(seed: int, cut: int) -> None:
    random = Random(seed)
    lives = [list(wander(random, job_id=f"job-{n}", steps=random.randint(1, 20), ends=True)) for n in range(5)]
    records = logged(shuffled_together(lives, random))
    whole, begun = Ledger(POLICY), Ledger(POLICY)
    for record in records:
        whole.apply(record)

    for record in records[:cut]:
        begun.apply(record)
    resumed = load(dump(begun, epoch="E"), epoch="E", policy=POLICY)
    for record in records[cut:]:
        resumed.apply(record)

    for name in KNOWN:
        assert getattr(resumed, name) == getattr(whole, name), name
    assert list(resumed.seeds()) == list(whole.seeds())


def test_what_is_folded_while_a_snapshot_is_written_down_is_not_in_it() -> None:
    """It is written in a thread: what it shares with the ledger must not change."""
    pause = act(QueuePaused(scope="user:u1", by="olga", reason="too loud"))
    records = logged([*(queued(f"job-{number}") for number in range(3)), pause])
    ledger = Ledger(POLICY)
    ledger.apply(records[0])

    picture, before = picture_of(ledger, epoch="E"), dump(ledger, epoch="E")
    for record in records[1:]:
        ledger.apply(record)

    assert picture.encode() == before != dump(ledger, epoch="E")


def test_a_snapshot_of_another_log_is_refused() -> None:
    snapshot = dump(Ledger(POLICY), epoch="E1")

    with pytest.raises(SnapshotUnusable, match="epoch E1"):
        load(snapshot, epoch="E2", policy=POLICY)
    with pytest.raises(SnapshotUnusable, match="cannot be read"):
        load(snapshot[:-3], epoch="E1", policy=POLICY)


def reshaped(snapshot: bytes, **header: object) -> bytes:
    """As another release would have written it; null: it does not know that."""
    first, *lines = zlib.decompress(snapshot).decode().split("\n")
    kept = {name: value for name, value in {**json.loads(first), **header}.items() if value is not None}
    return zlib.compress("\n".join((json.dumps(kept), *lines)).encode())


def ordered() -> Ledger:
    """Three jobs and what an operator ordered."""
    ledger = Ledger(POLICY)
    orders = [LimitSet(group="workflows", limit=9, by="olga"), QueuePaused(scope="user:u1", by="olga", reason="loud")]
    for record in logged([*(queued(f"job-{number}") for number in range(3)), *map(act, orders)]):
        ledger.apply(record)
    return ledger


@pytest.mark.parametrize("shape", [1, SHAPE - 1, SHAPE + 1])
def test_of_another_shape_the_orders_are_kept_and_the_log_is_folded_over_them(shape: int) -> None:
    """They may be older than all that the log still holds; what it does hold comes after them."""
    beyond_orders = dict.fromkeys(("forced", "over", "turns", "paces", "waits"))
    resumed = load(reshaped(dump(ordered(), epoch="E"), shape=shape, **beyond_orders), epoch="E", policy=POLICY)
    before = (resumed.applied, resumed.jobs)

    resumed.apply(Logged(5, T0, act(QueueResumed(scope="user:u1", by="olga"))))

    assert before == (0, {})
    assert (resumed.orders.limits, resumed.orders.pauses) == ({"workflows": 9}, {})


def test_a_users_tier_is_forgotten_with_their_last_job() -> None:
    ledger, _ = folded([*life_of("job-1", "queued cancelled"), queued("job-2", user_id="user-2")])
    kept = dict(ledger.orders.tiers)

    ledger.apply(Logged(9, T0 + timedelta(seconds=POLICY.retention.ended_s + 60), queued("job-3", user_id="user-3")))

    assert set(kept) == {"user-1", "user-2"}
    assert set(ledger.orders.tiers) == {"user-2", "user-3"}


@pytest.mark.parametrize("content", [b"{}", b"[]", b'{"shape": 1}', b"null", b'{"shape": 1, "epoch": "E"}\n0 {}'])
def test_a_snapshot_of_any_other_shape_is_refused_and_not_tripped_over(content: bytes) -> None:
    with pytest.raises(SnapshotUnusable):
        load(zlib.compress(content), epoch="E", policy=POLICY)


def shuffled_together(lives: list[list[Event]], random: Random) -> list[object]:
    """One log of several lives, each in its own order."""
    waiting = [life for life in lives if life]
    mixed: list[object] = []
    while waiting:
        life = random.choice(waiting)
        mixed.append(life.pop(0))
        waiting = [life for life in waiting if life]
    return mixed

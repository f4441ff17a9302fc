"""The engine by itself. That it plans what a walk over the whole queue would is shown in tests/conformance."""

from dataclasses import replace
from typing import Any

import pytest

from libs.capacity.answers import Heartbeat, WorkerStatus
from libs.capacity.engine import Engine
from libs.capacity.memory.blocking import LOOKS
from libs.capacity.rows import Change, OperatorOrder, Row, Seed, SetLimit, StandingOrders
from tests.conformance.view_log import DEFAULTS, NOW_MS, row

DB = "group:shop:db"


class Fed:
    """An engine, and the log that it is fed."""

    def __init__(self, *seeds: Row) -> None:
        self.now_ms = NOW_MS
        self.seq = 0
        self.engine = Engine(
            StandingOrders(defaults=DEFAULTS), [Seed(each, 0) for each in seeds], applied=0, clock=lambda: self.now_ms
        )
        self.beat("w1", slots=10)

    def beat(self, worker: str, *, slots: int, **details: Any) -> None:
        said = {"pool": "default", "draining": False, "holders": (), "leases": (), "ttl_ms": 30_000, **details}
        self.engine.staff.beat(Heartbeat(worker=worker, slots=slots, **said))

    def write(self, row: Row) -> None:
        self.seq += 1
        self.engine.take([Change(seq=self.seq, prev=self.seq - 1, row=replace(row, seq=self.seq))])

    def order(self, order: OperatorOrder) -> None:
        self.seq += 1
        self.engine.take([Change(seq=self.seq, prev=self.seq - 1, order=order)])

    def plan(self) -> list[str]:
        return [pick.job for pick in self.engine.plan(20).picks]


def queued(job: str, place: int = 1, **details: Any) -> Row:
    return replace(row(job, user=f"u-{job}", project=f"p-{job}", **details), place=place, arrival=place)


def started(row: Row) -> Row:
    return replace(row, status="starting", attempt=1, place=None, holder=f"{row.id}:1", started_ms=NOW_MS)


def status_of(worker: str, *, slots: int, heard_ms: int, until_ms: int) -> WorkerStatus:
    return WorkerStatus(
        worker=worker,
        pool="default",
        slots=slots,
        draining=False,
        heard_ms=heard_ms,
        until_ms=until_ms,
        holders=(),
    )


@pytest.fixture
def fed() -> Fed:
    return Fed()


def test_it_begins_where_the_ledger_stands() -> None:
    fed = Fed(queued("a"), started(queued("b", groups=(DB,))), replace(queued("c", groups=(DB,)), place=2))

    assert fed.plan() == ["a"]


def test_what_has_ended_leaves_nothing_behind(fed: Fed) -> None:
    before = _sizes(fed.engine)
    for number in range(30):
        fed.write(queued(f"j{number}", groups=(DB,), workflow=f"flow-{number}"))
    for number in range(30):
        running = started(queued(f"j{number}", groups=(DB,), workflow=f"flow-{number}"))
        fed.write(running)
        fed.plan()
        fed.write(replace(running, status="ready", holder=None))

    assert _sizes(fed.engine) == before


def _sizes(engine: Engine) -> dict[str, int]:
    state = engine._state
    sized = {name: getattr(state, name) for name in type(state).__slots__}
    by_pool = {"line", "eligible"}
    return {name: len(each) for name, each in sized.items() if hasattr(each, "__len__") and name not in by_pool}


def test_a_step_of_a_running_job_changes_no_plan_and_is_counted(fed: Fed) -> None:
    running = started(queued("a", groups=(DB,)))
    fed.write(running)
    fed.write(queued("b", groups=(DB,)))

    fed.write(replace(running, status="code", job="{}"))

    assert (fed.plan(), fed.engine.applied) == ([], 3)


def test_a_job_that_is_moved_is_planned_at_its_new_place(fed: Fed) -> None:
    for place, job in enumerate("ab", 1):
        fed.write(queued(job, place))

    fed.write(replace(queued("a", 1), place=3))

    assert fed.plan() == ["b", "a"]


def test_a_record_that_does_not_follow_is_no_ones_to_fold(fed: Fed) -> None:
    with pytest.raises(AssertionError, match="does not follow"):
        fed.engine.take([Change(seq=9, prev=8, row=queued("a"))])


# ── workers ───────────────────────────────────────────────────────────────────


def test_of_two_words_about_a_worker_the_later_counts(fed: Fed) -> None:
    for number in range(4):
        fed.write(queued(f"j{number}", number + 1))
    fed.beat("w1", slots=3)

    fed.engine.staff.take([status_of("w1", slots=1, heard_ms=NOW_MS - 1, until_ms=NOW_MS + 30_000)])
    own = len(fed.plan())
    fed.engine.staff.take([status_of("w1", slots=1, heard_ms=NOW_MS + 1, until_ms=NOW_MS + 30_000)])

    assert (own, len(fed.plan())) == (3, 1)


def test_a_workers_last_word_counts_though_the_clock_went_back(fed: Fed) -> None:
    fed.write(queued("a"))

    fed.now_ms -= 5000
    fed.beat("w1", slots=10, draining=True)

    assert fed.plan() == []


def test_a_worker_that_nobody_hears_has_no_slots(fed: Fed) -> None:
    fed.write(queued("a"))

    fed.now_ms += 30_000

    assert fed.plan() == []


def test_the_same_word_may_end_later_by_now(fed: Fed) -> None:
    fed.write(queued("a"))

    fed.engine.staff.take([status_of("w1", slots=10, heard_ms=NOW_MS, until_ms=NOW_MS + 60_000)])
    fed.now_ms += 30_000

    assert fed.plan() == ["a"]


def test_a_silent_worker_is_forgotten_at_the_next_look(fed: Fed) -> None:
    fed.now_ms += 30_000

    fed.engine.staff.take([])

    assert not fed.engine._state.workers


# ── what the log does not tell ────────────────────────────────────────────────


def test_what_was_learned_of_a_group_counts_until_it_is_forgotten(fed: Fed) -> None:
    fed.write(queued("a", 1, groups=("llm:ollama",)))
    fed.write(queued("b", 2))

    fed.engine.learn("llm:ollama", others=4)
    full = fed.plan()
    fed.engine.unlearn()

    assert (full, fed.plan()) == (["b"], ["a", "b"])


def test_what_is_learned_anew_takes_the_place_of_what_was_learned_before(fed: Fed) -> None:
    for number in range(4):
        fed.write(queued(f"j{number}", number + 1, groups=("llm:ollama",)))

    fed.engine.learn("llm:ollama", others=4)
    fed.engine.learn("llm:ollama", others=1)

    assert len(fed.plan()) == 3


def test_a_providers_pause_is_known_until_it_is_over(fed: Fed) -> None:
    fed.engine.pause("llm:ollama", NOW_MS + 5000)
    fed.engine.pause("llm:ollama", NOW_MS + 3000)
    told = fed.engine.paused_until_ms("llm:ollama")
    fed.now_ms += 5000

    assert told == NOW_MS + 5000
    assert fed.engine.paused_until_ms("llm:ollama") is None
    assert fed.engine.paused_until_ms("llm:other") is None


def test_part_of_a_group_is_learned_too(fed: Fed) -> None:
    for number in range(4):
        fed.write(queued(f"j{number}", number + 1, groups=("llm:ollama",)))

    fed.engine.learn("llm:ollama", others=2)

    assert fed.plan() == ["j0", "j1"]


def test_a_group_is_shut_until_its_time_or_until_it_is_forgotten(fed: Fed) -> None:
    fed.write(queued("a", 1, groups=("llm:ollama",)))
    fed.write(queued("b", 2, gates=("llm:ollama",)))

    fed.engine.learn("llm:ollama", others=0, until_ms=NOW_MS + 5_000)
    shut = fed.plan()
    fed.now_ms += 5_000
    over = fed.plan()
    fed.engine.learn("llm:ollama", others=0, until_ms=fed.now_ms + 5_000)
    again = fed.plan()
    fed.engine.unlearn()

    assert (shut, over, again, fed.plan()) == ([], ["a", "b"], [], ["a", "b"])


def test_a_quarantine_gives_no_slot_and_leaves_gates_open(fed: Fed) -> None:
    fed.write(queued("a", 1, groups=("llm:ollama",)))
    fed.write(queued("b", 2, gates=("llm:ollama",)))

    fed.engine.quarantine(NOW_MS + 5_000)
    quarantined = fed.plan()
    fed.now_ms += 5_000
    over = fed.plan()
    fed.engine.quarantine(fed.now_ms + 5_000)
    again = fed.plan()
    fed.engine.unlearn()

    assert (quarantined, over, again, fed.plan()) == (["b"], ["a", "b"], ["b"], ["a", "b"])


# ── what a plan keeps in mind ─────────────────────────────────────────────────


def of_ann(job: str, place: int, *, class_number: int = 50) -> Row:
    """Who may run two at a time."""
    ours = row(job, user="ann", project=f"p-{job}", class_number=class_number)
    return replace(ours, place=place, arrival=place)


def test_of_those_that_are_passed_over_no_more_stay_on_the_walk_than_there_are_slots(fed: Fed) -> None:
    for number in range(6):
        fed.write(of_ann(f"j{number}", number + 1))
    for number, job in enumerate(("first", "second")):
        fed.write(of_ann(job, number + 7, class_number=20))

    assert fed.plan() == ["first", "second"]

    state = fed.engine._state
    assert [*state.eligible["default"]] == ["first", "second", "j0", "j1"]
    assert {name: [*jobs] for name, jobs in state.parked.items()} == {"user:ann@default/50": ["j2", "j3", "j4", "j5"]}


def test_as_many_come_out_of_a_bucket_as_slots_came_free(fed: Fed) -> None:
    for number in range(6):
        fed.write(of_ann(f"j{number}", number + 1))
    for number, job in enumerate(fed.plan()):
        fed.write(started(of_ann(job, number + 1)))
    fed.plan()

    fed.write(replace(of_ann("j0", 1), status="ready", place=None, holder=None))

    assert fed.plan() == ["j2"]
    assert _apart(fed) == (["j2"], ["j3", "j4", "j5"])


def test_as_many_come_out_of_a_bucket_as_its_limit_has_risen(fed: Fed) -> None:
    for number in range(6):
        fed.write(of_ann(f"j{number}", number + 1))
    for number, job in enumerate(("first", "second")):
        fed.write(of_ann(job, number + 7, class_number=20))
    fed.plan()
    apart = []

    for limit in (2, 3):
        fed.order(SetLimit("user:ann", limit))
        fed.engine.plan(20, only_class=90)
        apart.append(_apart(fed))

    waiting = ["first", "second", "j0", "j1"]
    assert apart == [(waiting, ["j2", "j3", "j4", "j5"]), ([*waiting, "j2"], ["j3", "j4", "j5"])]


def _apart(fed: Fed) -> tuple[list[str], list[str]]:
    """Who is on the walk, and who is parked behind ann's own limit."""
    state = fed.engine._state
    return [*state.eligible["default"]], [*state.parked["user:ann@default/50"]]


def test_nothing_is_owed_to_a_bucket_that_its_last_job_has_left(fed: Fed) -> None:
    for number, job in enumerate("abc"):
        fed.write(of_ann(job, number + 1))
    for number, job in enumerate(fed.plan()):
        fed.write(started(of_ann(job, number + 1)))
    fed.plan()

    fed.write(replace(of_ann("a", 1), status="ready", place=None, holder=None))
    fed.write(replace(of_ann("c", 3), status="cancelled", place=None))

    assert fed.engine._state.debts == {}
    assert fed.plan() == []


def test_debts_are_paid_whichever_class_is_planned(fed: Fed) -> None:
    for number, job in enumerate("abc"):
        fed.write(of_ann(job, number + 1))
    for job in fed.plan():
        fed.write(started(of_ann(job, 1)))
    fed.plan()
    fed.write(replace(of_ann("a", 1), status="ready", place=None, holder=None))
    owed = dict(fed.engine._state.debts)

    fed.engine.plan(20, only_class=90)

    assert (owed, fed.engine._state.debts) == ({"user:ann@default/50": 1}, {})
    assert fed.plan() == ["c"]


def test_a_plan_of_one_class_has_all_of_it_and_nothing_of_its_neighbours(fed: Fed) -> None:
    for class_number in (49, 50, 51):
        for place in (0, 1):
            fed.write(queued(f"{class_number}/{place}", place, class_number=class_number))

    planned = fed.engine.plan(20, only_class=50)

    assert [pick.job for pick in planned.picks] == ["50/0", "50/1"]


CACHE = "group:shop:cache"


def between_two_groups(fed: Fed, *behind: Row) -> None:
    """`both` has come free of one group's limit, those behind it have not; of its other group a job of another class
    is picked before it."""
    holder = started(queued("holder", groups=(DB,)))
    fed.write(holder)
    for waiting in (queued("both", 2, groups=(DB, CACHE)), *behind):
        fed.write(waiting)
    fed.write(queued("first", class_number=20, groups=(CACHE,)))
    fed.write(replace(holder, status="ready", holder=None))


def test_who_is_passed_over_leaves_its_other_slots_to_those_behind_it(fed: Fed) -> None:
    between_two_groups(fed, queued("behind", 3, groups=(DB,)))

    assert fed.plan() == ["first", "behind"]


def test_a_plan_that_ran_out_of_looks_says_that_there_may_be_more(fed: Fed) -> None:
    other = "group:shop:other"
    fed.write(started(queued("elsewhere", groups=(other,))))
    between_two_groups(fed, *(queued(f"j{place}", place, groups=(DB, other)) for place in range(3, LOOKS + 3)))

    plan = fed.engine.plan(20)

    assert [pick.job for pick in plan.picks] == ["first"]
    assert plan.more


def test_after_a_quarantine_those_it_held_up_are_looked_at_again(fed: Fed) -> None:
    fed.write(queued("a", groups=("user:u-a", DB)))
    fed.engine.quarantine(NOW_MS + 60_000)
    held_up = fed.plan()

    fed.engine.unlearn()

    assert (held_up, fed.plan()) == ([], ["a"])


def test_a_pool_was_heard_by_those_of_its_workers_that_take_work(fed: Fed) -> None:
    fed.now_ms += 1000
    fed.beat("w2", slots=3, draining=True)

    assert fed.engine.staff.last_beats() == {"default": NOW_MS}

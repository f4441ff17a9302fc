"""Groups whose slots are held outside jobs: what the fold keeps of them, for how long, and whose limit counts."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from headgate_contracts.events import Group, GroupLeased, LimitSet, LimitUnset
from libs.capacity.ledger import Ledger
from libs.capacity.orders import LEASED_FOR
from libs.capacity.rows import Change, SetLimit
from libs.capacity.snapshot import dump, load
from libs.policy import Policy
from tests.fixtures.lives import life_of, submission
from tests.unit.test_ledger import POLICY, T0, Logged, act

DB, CACHE = "group:shop:db", "group:shop:cache"
LATER = T0 + LEASED_FOR


def leased(group: str = DB, limit: int | None = None) -> object:
    return act(GroupLeased(group=group, limit=limit, by="ann"))


def asking(story: str, *, limit: int | None = None) -> list[object]:
    return list(life_of("job-1", story, submission=submission(groups=(Group(name=DB, limit=limit),))))


def folded(*events: tuple[datetime, object], policy: Policy = POLICY) -> tuple[Ledger, list[Change]]:
    ledger = Ledger(policy)
    return ledger, [ledger.apply(Logged(seq, at, event)) for seq, (at, event) in enumerate(events, 1)]


def at_once(*events: object) -> list[tuple[datetime, object]]:
    return [(T0, event) for event in events]


@pytest.mark.parametrize(
    ("events", "in_force", "orders"),
    [
        ([leased()], {}, []),
        ([leased(limit=3)], {DB: 3}, [SetLimit(DB, 3)]),
        ([leased(limit=3), leased(), leased(limit=3)], {DB: 3}, [SetLimit(DB, 3)]),
        ([leased(limit=3), leased(limit=5)], {DB: 5}, [SetLimit(DB, 3), SetLimit(DB, 5)]),
        ([*asking("queued", limit=2), leased(limit=3)], {DB: 2}, []),
        ([*asking("queued"), leased(limit=3)], {DB: 3}, [SetLimit(DB, 3)]),
        ([leased(limit=3), *asking("queued cancelled", limit=2)], {DB: 3}, [SetLimit(DB, 3)]),
        ([act(LimitSet(group=DB, limit=9, by="olga")), leased(limit=3)], {DB: 9}, [SetLimit(DB, 9)]),
    ],
)
def test_the_limit_asked_for_last_counts_where_no_job_and_no_operator_has_set_one(
    events: list[object], in_force: dict[str, int], orders: list[SetLimit]
) -> None:
    ledger, changes = folded(*at_once(*events))

    assert ledger.orders.in_force() == in_force
    assert [change.order for change in changes if change.order] == orders
    assert [change.unused for change in changes if change.unused] == []


@pytest.mark.parametrize("name", [DB, "db"])
def test_what_policy_names_is_left_to_it(name: str) -> None:
    ledger, changes = folded(
        *at_once(leased(limit=3)), policy=Policy.model_validate({"concurrency": {"limits": {name: 4}}})
    )

    assert (ledger.orders.in_force(), changes[0].order) == ({}, None)


def test_an_operator_who_takes_back_a_limit_leaves_that_of_the_leases() -> None:
    operator = (act(LimitSet(group=DB, limit=9, by="olga")), act(LimitUnset(group=DB, by="olga")))

    _, changes = folded(*at_once(operator[0], leased(limit=3), operator[1]))

    assert changes[-1].order == SetLimit(DB, 3)


def test_a_group_is_forgotten_a_day_after_it_was_named_last_and_its_limit_with_it() -> None:
    said = [(T0, leased(limit=3)), (T0, leased(CACHE, limit=4)), (T0 + timedelta(hours=12), leased(limit=3))]

    ledger, changes = folded(*said, (LATER, asking("queued")[0]))

    assert list(ledger.orders.leased) == [DB]
    assert ([change.unused for change in changes], ledger.orders.in_force()) == ([(), (), (), (CACHE,)], {DB: 3})


def test_a_job_keeps_the_limit_of_leases_that_are_forgotten_until_its_end() -> None:
    begin, end = asking("queued cancelled")

    ledger, changes = folded((T0, leased(limit=3)), (T0, begin), (LATER, leased(CACHE)), (LATER, end))

    assert [change.unused for change in changes] == [(), (), (), (DB,)]
    assert ledger.orders.in_force() == {}


def test_a_ledger_that_was_put_away_still_knows_them() -> None:
    ledger, _ = folded((T0, leased(limit=3)), (T0, leased(CACHE)))

    resumed = load(dump(ledger, epoch="E"), epoch="E", policy=POLICY)

    assert (resumed.orders, [*resumed.orders.leased]) == (ledger.orders, [DB, CACHE])

"""What the rules say, worked out the long way: by looking at every job in the queue.

Owns the scan that planning must equal, and the laws that hold in every state of the view in memory.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from headgate_contracts.vocabulary import Priority
from libs.capacity.answers import Reserved
from libs.capacity.memory.blocking import bucket_of, group_of
from libs.capacity.memory.entering import is_reserved
from libs.capacity.memory.state import GATE, State, is_aside, times_passed
from libs.capacity.rows import Row
from tests.conformance.view_log import ENDS, Orders
from tests.conformance.view_scenario import ViewScenario
from tests.fixtures.observing import Observation


def scan(seen: Observation, rows: Mapping[str, Row], orders: Orders, *, quarantined: bool) -> Iterator[str]:
    """Every job of `rows` that may run, in order, looking at one after the other. What is over was caught up with."""
    shut = seen.shut.keys()
    taken: Counter[str] = Counter({group: len(holders) for group, holders in seen.groups.items()})
    for entry in seen.queue:
        if entry.reserved or entry.job not in rows:
            continue
        row = rows[entry.job]
        if not _scopes(row).isdisjoint(seen.pauses):
            continue
        pool = f"pool:{row.pool}"
        blocked = not shut.isdisjoint((*row.groups, *row.gates)) or any(
            (quarantined and _is_inner(group)) or taken[group] >= orders.limit(group, row) for group in row.groups
        )
        if not blocked and pool not in shut and taken[pool] < seen.slots.get(row.pool, 0):
            taken.update([*row.groups, pool])
            yield row.id


def _scopes(row: Row) -> set[str]:
    """Written a second time, on purpose: what `scopes` says is what this judges."""
    [priority] = [each.value for each in Priority if each.class_number == row.class_number]
    own = {"all", f"priority:{priority}", f"pool:{row.pool}", f"user:{row.user}", f"project:{row.project}"}
    return own | {f"workflow:{row.workflow}"}


def _is_inner(group: str) -> bool:
    return group.partition(":")[0] not in ("user", "project", "pool", "workflows")


# ── laws ──────────────────────────────────────────────────────────────────────


def check_laws(state: State, world: ViewScenario, *, bound: int) -> None:
    _every_job_has_one_place(state, world.rows)
    _every_queued_job_is_in_one_set(state, world.rows)
    _nobody_is_passed_more_often_than_the_bound(state, world, bound)
    _days_and_timers_are_those_of_the_jobs(state, world.rows)
    _inputs_add_up_and_those_of_unfinished_jobs_stay(state)
    _slots_are_held_by_those_who_run(state, world.rows)
    _leases_and_waiters_inside_a_job_run_with_it(state)
    _nobody_waits_for_a_slot_that_is_free(state, world.orders)
    _buckets_are_owed_enough(state, world.rows, world.orders)


def _every_job_has_one_place(state: State, rows: Mapping[str, Row]) -> None:
    queued = {job: row.score for job, row in rows.items() if row.place is not None and job in state.rows}
    reserved = {job: held.spot.score for job, held in state.reservations.items() if held.spot}
    assert not queued.keys() & reserved.keys()
    assert {name: score for score, name in state.queue.entries()} == queued | reserved
    assert state.spots.keys() == queued.keys() | reserved.keys()


def _every_queued_job_is_in_one_set(state: State, rows: Mapping[str, Row]) -> None:
    eligible = [job for members in state.eligible.values() for job in members]
    parked = [job for members in state.parked.values() for job in members]
    unpaused = [job for job in state.queue if not is_reserved(state, job) and not is_aside(state, state.spots[job])]
    assert sorted(eligible + parked) == sorted(unpaused)
    assert {name for name, members in state.parked.items() if members} == set().union(*state.buckets.values())
    for bucket, members in state.parked.items():
        assert all(bucket_of(rows[job], group_of(bucket)[0]) == bucket for job in members)


def _inputs_add_up_and_those_of_unfinished_jobs_stay(state: State) -> None:
    sums = Counter[str]()
    for kept in state.inputs.values():
        sums[kept.user] += kept.size
    assert state.stored == sums
    assert set(state.input_ends) == {job for job, kept in state.inputs.items() if kept.until_ms is not None}
    unfinished = [row for row in state.rows.values() if row.input_bytes and row.input_until_ms is None]
    assert [state.inputs[row.id].size for row in unfinished] == [row.input_bytes for row in unfinished]
    assert all(state.inputs[row.id].until_ms is None for row in unfinished)


def _nobody_is_passed_more_often_than_the_bound(state: State, world: ViewScenario, bound: int) -> None:
    by_reservations = Counter[str]()
    for held in state.reservations.values():
        by_reservations.update(held.answer.passed if isinstance(held.answer, Reserved) else ())
    assert state.passing == by_reservations
    assert all(state.passed[job] == world.passed[job] for job, row in world.rows.items() if row.status not in ENDS)
    assert max((times_passed(state, job) for job in state.queue), default=0) <= bound


def _days_and_timers_are_those_of_the_jobs(state: State, rows: Mapping[str, Row]) -> None:
    days = {(row.user, row.quota_day, job) for job, row in rows.items() if row.quota_day is not None}
    reserved = {(*held.quota, job) for job, held in state.reservations.items() if held.quota}
    assert {(*day, job) for day, jobs in state.quota.items() for job in jobs} == days | reserved
    assert set(state.timers) == {f"{kind}:{job}" for job, row in rows.items() for kind in row.timers}


def _slots_are_held_by_those_who_run(state: State, rows: Mapping[str, Row]) -> None:
    holders = {row.holder: row for row in rows.values() if row.holder}
    assert set(state.running) == set(holders)
    expected = Counter[str]()
    for row in holders.values():
        expected.update([*row.groups, f"pool:{row.pool}"])
    for lease in (*state.leases.values(), *state.claims.values()):
        expected.update(lease.groups)
    assert {group: len(held) for group, held in state.held.items() if held} == +expected


def _leases_and_waiters_inside_a_job_run_with_it(state: State) -> None:
    owned = [each.owner for each in (*state.leases.values(), *state.waiting.values()) if each.owner is not None]
    assert all(owner in state.running for owner in owned)
    assert {name for names in state.waiters.values() for name in names} == set(state.waiting) == set(state.deadlines)
    assert all(waiter.group in waiter.groups for waiter in state.waiting.values())


def _nobody_waits_for_a_slot_that_is_free(state: State, orders: Orders) -> None:
    """What time alone has ended counts as held until it is noticed. A pool that grew is noticed then too."""
    for group, names in state.waiters.items():
        full = group.startswith("pool:") or len(state.held.get(group, ())) >= orders.limit(group, None)
        assert not names or full or _is_shut_still(state, group), group


def _buckets_are_owed_enough(state: State, rows: Mapping[str, Row], orders: Orders) -> None:
    """Of every bucket, as many eligible jobs of its pool and class go before its first as the group has free slots,
    debts counted. Behind a gate that is open nobody is left unowed.
    """
    for bucket, members in state.parked.items():
        if not members:
            continue
        group, _ = group_of(bucket)
        owed = state.debts.get(bucket, 0)
        if group.startswith(GATE):
            assert group.removeprefix(GATE) in state.shut or owed >= len(members), bucket
            continue
        first = rows[members.first() or ""]
        free = orders.limit(group, first) - len(state.held.get(group, ()))
        before = [rows[job] for job in state.eligible[first.pool] if (rows[job].score, job) < (first.score, first.id)]
        standing = sum(group in row.groups and row.class_number == first.class_number for row in before)
        assert _is_shut_still(state, group) or owed >= len(members) or standing + owed >= free, bucket


def _is_shut_still(state: State, group: str) -> bool:
    """Until its end is noticed."""
    return group in state.shut or (bool(state.quarantine_until_ms and state.unheard) and _is_inner(group))

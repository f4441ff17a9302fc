"""In the view's slots: who holds one, for how long, who waits, and who is woken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from libs.capacity.answers import Grant, Heartbeat, HeartbeatAnswer, HeldLease
from libs.capacity.memory.blocking import owe_groups
from libs.capacity.memory.planning import _Walk
from libs.capacity.memory.slots import drop_waiter, hold, is_running, job_of
from libs.capacity.memory.state import SlotLease, State, shut_until
from libs.capacity.rows import Row, Seed
from tests.planted.bug import Bug


def frees_slots_by_time(sound: Any) -> Any:
    def catch_up(state: State, *, now_ms: int) -> list[Grant]:
        for holder in state.running.up_to(now_ms):
            owe_groups(state, [group for group, holders in state.held.items() if holders.discard(holder)])
        return sound(state, now_ms=now_ms)

    return catch_up


def counts_what_workers_say(sound: Any) -> Any:
    def _count_free_slots(self: _Walk) -> None:
        sound(self)
        for pool in self.free:
            if shut_until(self.state, f"pool:{pool}", self.now_ms) is None:
                workers = [worker for worker in self.state.workers.values() if worker.pool == pool]
                self.free[pool] = self.slots_at[pool] - sum(len(worker.holders) for worker in workers)

    return _count_free_slots


def looks_at_one_group_alone(sound: Any) -> Any:
    def _grant_or_move(state: State, name: str, *, now_ms: int) -> Grant | None:
        waiter, end_ms = state.waiting[name], now_ms + state.waiting[name].ttl_ms
        drop_waiter(state, name)
        hold(state, name, SlotLease(waiter.groups, waiter.owner, waiter.ttl_ms, now_ms), end_ms=end_ms)
        return Grant(name, waiter.owner, waiter.reply, end_ms)

    return _grant_or_move


def loses_who_changes_lines(sound: Any) -> Any:
    def _grant_or_move(state: State, name: str, *, now_ms: int) -> Grant | None:
        grant = sound(state, name, now_ms=now_ms)
        if name in state.waiting:
            state.waiters[state.waiting[name].group].discard(name)
        return grant

    return _grant_or_move


def wakes_nobody(sound: Any) -> Any:
    def leave(state: State, row: Row, *, takes_slots: bool) -> None:
        sound(state, row, takes_slots=True)

    return leave


def hears_of_jobs_not_attempts(sound: Any) -> Any:
    def beat(state: State, heartbeat: Heartbeat, *, now_ms: int) -> HeartbeatAnswer:
        said = sound(state, heartbeat, now_ms=now_ms)
        rows = {holder: state.rows.get(job_of(holder)) for holder in said.not_yours}
        running = {holder: row.holder for holder, row in rows.items() if row is not None and row.holder is not None}
        for current in running.values():
            state.running.add(current, now_ms + heartbeat.ttl_ms)
        over = tuple(holder for holder in said.not_yours if holder not in running)
        return replace(said, kept=(*said.kept, *running), not_yours=over)

    return beat


def gives_no_grace(sound: Any) -> Any:
    def seed(state: State, seeds: Iterable[Seed], *, lease_ms: int, now_ms: int) -> None:
        sound(state, seeds, lease_ms=0, now_ms=now_ms)

    return seed


def opens_at_once(sound: Any) -> Any:
    def open_(state: State, *, quarantine_ms: int, leased: Iterable[str], leased_ms: int, now_ms: int) -> None:
        sound(state, quarantine_ms=0, leased=leased, leased_ms=leased_ms, now_ms=now_ms)

    return open_


def extends_by_and_not_to(sound: Any) -> Any:
    def _extend_to(state: State, name: str, *, end_ms: int) -> None:
        lease = state.leases[name]
        so_far_ms = int(state.ends.score(name) or 0)
        sound(state, name, end_ms=so_far_ms + lease.ttl_ms)

    return _extend_to


def opens_what_users_hold(sound: Any) -> Any:
    def open_(state: State, *, quarantine_ms: int, leased: Iterable[str], leased_ms: int, now_ms: int) -> None:
        sound(state, quarantine_ms=quarantine_ms, leased=(), leased_ms=leased_ms, now_ms=now_ms)

    return open_


def holds_what_was_given_up(sound: Any) -> Any:
    def _hear(state: State, named: HeldLease, *, ttl_ms: int, now_ms: int) -> bool:
        state.given_up.discard(named.lease)
        return sound(state, named, ttl_ms=ttl_ms, now_ms=now_ms)

    return _hear


def grants_what_was_given_up(sound: Any) -> Any:
    def _may_hold(state: State, name: str, owner: str, *, now_ms: int) -> bool:
        return is_running(state, owner)

    return _may_hold


SLOTS: Final = (
    Bug(
        "release-on-time-out",
        "libs.capacity.memory.slots:catch_up",
        frees_slots_by_time,
        "A job holds its slots until the log says that it does not; its lease only lets the scheduler say so. The "
        "slots of a silent job are given to another before it is given back (I5).",
    ),
    Bug(
        "counter-beside-the-leases",
        "libs.capacity.memory.planning:_Walk._count_free_slots",
        counts_what_workers_say,
        "No counter stands beside the leases. A pool's free slots are counted from what its workers said last, so "
        "until the next heartbeat more jobs are dispatched than it has slots (I5).",
    ),
    Bug(
        "naive-semaphore",
        "libs.capacity.memory.slots:_grant_or_move",
        looks_at_one_group_alone,
        "All groups are taken in one step or none. Who waited for one of them gets the others as well, full or not: "
        "more calls than a provider, or all providers together, may have (I5).",
    ),
    Bug(
        "grant-lost-with-its-waiter",
        "libs.capacity.memory.slots:_grant_or_move",
        loses_who_changes_lines,
        "A freed slot wakes the next waiter. One that finds its second group full is in no line from then on, and "
        "waits until its time is over beside free slots.",
    ),
    Bug(
        "lost-wake-up",
        "libs.capacity.memory.blocking:leave",
        wakes_nobody,
        "Work never halts. Where a job that was next for a slot is cancelled or paused, those that the same full group "
        "blocked are not looked at again: they wait beside a free slot, and for ever where nothing else runs (I1, I8).",
    ),
    Bug(
        "heartbeat-extends-what-is-not-held",
        "libs.capacity.memory.workers:beat",
        hears_of_jobs_not_attempts,
        "A heartbeat extends what its worker holds. An old attempt is told that it is kept and goes on beside the new "
        "one (I4), whose lease it extends: where that one's worker is dead nobody notices.",
    ),
    Bug(
        "no-grace-after-a-rebuild",
        "libs.capacity.memory.life:seed",
        gives_no_grace,
        "After a loss of the view a running job has one full lease of grace. It is given back at once, under a worker "
        "that lives, and runs twice (I4).",
    ),
    Bug(
        "no-quarantine-after-a-rebuild",
        "libs.capacity.memory.life:open_",
        opens_at_once,
        "After a loss of the view nothing is granted inside jobs until all of them have said what they hold. Slots "
        "that stages hold are granted to others (I5).",
    ),
    Bug(
        "lease-outlives-its-end",
        "libs.capacity.memory.slots:_extend_to",
        extends_by_and_not_to,
        "A lease outside jobs ends one lease after its holder was heard last. Each extension adds one to its end: the "
        "slot of a holder that has died stays taken for minutes, and those in line wait for nobody (I8).",
    ),
    Bug(
        "leased-group-open-after-a-loss",
        "libs.capacity.memory.life:open_",
        opens_what_users_hold,
        "After a loss of the view nothing is granted in a group of which users held slots until a lease has passed. "
        "Another gets the slot of one who works on (I5).",
    ),
    Bug(
        "held-again-by-a-late-heartbeat",
        "libs.capacity.memory.workers:_hear",
        holds_what_was_given_up,
        "A slot that a stage has given back is free. A heartbeat that named it and comes to the view after that holds "
        "it again: it stays taken until a lease is over, with nobody inside (I8).",
    ),
    Bug(
        "granted-after-it-was-given-up",
        "libs.capacity.memory.slots:_may_hold",
        grants_what_was_given_up,
        "A slot that a stage no longer wants is free. Where the question for it was under way for longer than the word "
        "that it is not needed, it is granted to nobody, and stays taken until a lease is over (I8).",
    ),
)

"""What the scripts answer, as values. Each function reads the GIVES of one verb's header; flags are 0 and 1."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from libs.capacity.answers import (
    Beat,
    Between,
    BetweenAnswer,
    Busy,
    Deferred,
    Due,
    Folded,
    Full,
    Grant,
    Granted,
    GroupStatus,
    Holder,
    HorizonFull,
    Known,
    LeaseAnswer,
    LeaseRequest,
    NoGap,
    NoRoom,
    NotQueued,
    NotReleasable,
    NotYours,
    Observation,
    Obstacle,
    Outlook,
    Pick,
    Plan,
    QueueEntry,
    ReleaseAnswer,
    ReserveAnswer,
    Reserved,
    ShareFull,
    Stale,
    Swept,
    ViewMark,
    Waits,
)
from libs.capacity.errors import ViewMisused

Reply = Any  # nested lists of str, int and None


def mark_of(epoch: str | None, generation: str, applied: str, is_open: str) -> ViewMark | None:
    return None if epoch is None else ViewMark(epoch, generation, int(applied), is_open == "1")


def folded(replies: Sequence[Reply], *, last_seq: int) -> Folded | Stale:
    """Several changes were tried in order: the view stands where the last answer says."""
    applied: int = replies[-1][0]
    told = tuple(grant for _, each in replies for grant in grants(each))
    return Folded(applied, told) if applied >= last_seq else Stale(applied, told)


def grants(reply: Reply) -> tuple[Grant, ...]:
    return tuple(Grant(lease, owner or None, reply_to, ends) for lease, owner, reply_to, ends in reply)


def reserved(reply: Reply) -> ReserveAnswer:
    match reply:
        case ["reserved", arrival, place, passed, position, day]:
            return Reserved(arrival, place, tuple(passed), position, day)
        case ["deferred", day]:
            return Deferred(day)
        case ["known", status, seq]:
            return Known(status, seq)
        case ["busy", queued, slots]:
            return Busy(queued, slots)
        case ["share_full", held]:
            return ShareFull(held)
        case ["horizon_full", last_day]:
            return HorizonFull(last_day)
        case _:
            raise _unknown(reply)


def released(reply: Reply, job: str) -> ReleaseAnswer:
    match reply:
        case ["reserved", arrival, place, passed, position, day]:
            return Reserved(arrival, place, tuple(passed), position, day)
        case ["no_room"]:
            return NoRoom()
        case ["not_releasable"]:
            return NotReleasable(job)
        case _:
            raise _unknown(reply)


def between(reply: Reply) -> BetweenAnswer:
    match reply:
        case ["between", class_number, place]:
            return Between(class_number, place)
        case ["no_gap", class_number]:
            return NoGap(class_number)
        case ["not_queued", job]:
            return NotQueued(job)
        case _:
            raise _unknown(reply)


def plan(reply: Reply) -> Plan:
    applied, picks, limits, slots, more = reply
    return Plan(applied, tuple(Pick(job, seq) for job, seq in picks), dict(limits), dict(slots), bool(more))


def due(reply: Reply, limit: int) -> tuple[Due, ...]:
    timers, leases = reply
    found = [Due(kind, job, int(at)) for name, at in _pairs(timers) for kind, _, job in [name.partition(":")]]
    found += [Due("lease", *_job_of(holder, int(at))) for holder, at in _pairs(leases)]
    return tuple(sorted(found, key=lambda each: (each.due_ms, each.kind, each.job))[:limit])


def lease(reply: Reply, request: LeaseRequest) -> LeaseAnswer:
    match reply:
        case ["granted", ends]:
            return Granted(request.lease, ends)
        case ["waits", group, behind]:
            return Waits(request.lease, group, behind)
        case ["full", group, limit, active]:
            return Full(group, limit, active)
        case ["not_yours"]:
            return NotYours(request.owner or "")
        case _:
            raise _unknown(reply)


def beat(reply: Reply, holders: Sequence[str]) -> Beat:
    heard, lost, told = reply
    by_word: dict[str, list[str]] = {"kept": [], "cancel": [], "not_yours": []}
    for holder, word in zip(holders, heard, strict=True):
        by_word[word].append(holder)
    answers = {word: tuple(names) for word, names in by_word.items()}
    return Beat(**answers, lost_leases=tuple(lost), grants=grants(told))


def swept(reply: Reply) -> Swept:
    told, lapsed, gone = reply
    return Swept(grants(told), tuple(lapsed), tuple(gone))


def outlook(reply: Reply) -> Outlook | None:
    if reply is None:
        return None
    position, passed, score, pauses, obstacles, pool_slots, pool_active, quarantined = reply
    return Outlook(
        position=position,
        passed=passed,
        score=int(score),
        pauses=tuple(pauses),
        obstacles=tuple(Obstacle(*each) for each in obstacles),
        pool_slots=pool_slots,
        pool_active=pool_active,
        quarantined=bool(quarantined),
    )


def group(reply: Reply, name: str) -> GroupStatus:
    limit, waiting, parked, holders = reply
    return GroupStatus(name, limit, len(holders), waiting, parked, tuple(_holder(*each) for each in holders))


def queue(reply: Reply) -> tuple[QueueEntry, ...]:
    return tuple(
        QueueEntry(job=job, score=int(score), reserved=bool(reserved), passed=passed)
        for job, score, reserved, passed in reply
    )


def jobs_of(reply: Reply) -> tuple[tuple[str, int], ...]:
    return tuple((job, int(seq)) for job, seq in _pairs(reply))


def observation(reply: Reply, epoch: str) -> Observation:
    generation, applied, entries, statuses, groups, waiters, quotas, timers, limits, pauses, *rest = reply
    slots, room, leases, eligible, parked, debts = rest
    return Observation(
        mark=ViewMark(epoch, generation, applied, open=True),
        queue=queue(entries),
        statuses=dict(_pairs(statuses)),
        groups=_lists(groups),
        waiters=_lists(waiters),
        quotas={name: tuple(sorted(jobs)) for name, jobs in _pairs(quotas)},
        timers=_numbers(timers),
        limits=_numbers(limits),
        pauses={scope: json.loads(text) for scope, text in _pairs(pauses)},
        slots=_numbers(slots),
        room=tuple(room),
        leases=_numbers(leases),
        eligible=_lists(eligible),
        parked=_lists(parked),
        debts=_numbers(debts),
    )


def _holder(name: str, owner: str | None, worker: str | None, since_ms: int | None, ends_ms: int) -> Holder:
    if owner is None:
        return Holder(name, None, None, None, since_ms, ends_ms)
    job, _, attempt = owner.rpartition(":")
    return Holder(name, job, int(attempt), worker, since_ms, ends_ms)


def _job_of(holder: str, due_ms: int) -> tuple[str, int, int]:
    job, _, attempt = holder.rpartition(":")
    return job, due_ms, int(attempt)


def _pairs(flat: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _numbers(flat: Sequence[Any]) -> Mapping[str, int]:
    return {name: int(number) for name, number in _pairs(flat)}


def _lists(flat: Sequence[Any]) -> Mapping[str, tuple[str, ...]]:
    return {name: tuple(members) for name, members in _pairs(flat)}


def _unknown(reply: Reply) -> ViewMisused:
    return ViewMisused(f"a script of another version answered {reply!r}: services and scripts are of one release")

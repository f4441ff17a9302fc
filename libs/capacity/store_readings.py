"""What the scripts answer to readers, as values.

Each function reads the GIVES of one verb's header; flags are 0 and 1.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headgate_contracts import Holder
from libs.capacity.answers import (
    DueTimer,
    GroupStatus,
    Obstacle,
    Outlook,
    QueueEntry,
    SlotHolder,
    WorkerStatus,
)
from libs.capacity.rows import Pause
from libs.capacity.scripts import Reply


def due(reply: Reply, limit: int) -> tuple[DueTimer, ...]:
    timers, leases = reply
    found = [DueTimer(kind, job, int(at)) for name, at in _pairs(timers) for kind, _, job in [name.partition(":")]]
    ended = [(Holder.parse(name), int(at)) for name, at in _pairs(leases)]
    found += [DueTimer("lease", holder.job, at_ms, holder.attempt) for holder, at_ms in ended]
    return tuple(sorted(found, key=lambda each: (each.due_ms, each.kind, each.job))[:limit])


def outlook(reply: Reply) -> Outlook | None:
    if reply is None:
        return None
    position, score, passed, room, pauses, obstacles, pool_slots, pool_active, quarantined = reply
    return Outlook(
        position=position,
        score=score and int(score),
        passed=passed,
        room=bool(room),
        pauses=tuple(_pause(scope, text) for scope, text in pauses),
        obstacles=tuple(_obstacle(each) for each in obstacles),
        pool_slots=pool_slots,
        pool_active=pool_active,
        quarantined=bool(quarantined),
    )


def group(reply: Reply, name: str) -> GroupStatus:
    limit, waiting, blocked, holders, until_ms = reply
    return GroupStatus(
        group=name,
        limit=limit,
        active=len(holders),
        waiting=waiting,
        blocked=blocked,
        holders=_holders(holders),
        shut_until_ms=until_ms,
    )


def groups(reply: Reply) -> tuple[str, ...]:
    return tuple(sorted(reply))


def workers(reply: Reply) -> tuple[WorkerStatus, ...]:
    """By name."""
    return tuple(_worker(each) for each in sorted(reply))


def pauses(reply: Reply) -> tuple[Pause, ...]:
    """By scope."""
    return tuple(_pause(scope, text) for scope, text in sorted(_pairs(reply)))


def tiers(reply: Reply) -> Mapping[str, int]:
    return _numbers(reply)


def queue(reply: Reply) -> tuple[QueueEntry, ...]:
    return tuple(
        QueueEntry(job=job, score=int(score), reserved=bool(reserved), passed=passed)
        for job, score, reserved, passed in reply
    )


def jobs_of(reply: Reply) -> tuple[tuple[str, int], ...]:
    return tuple((job, int(seq)) for job, seq in _pairs(reply))


def refused(reply: Reply) -> Mapping[tuple[int, str], int]:
    named = ((*name.split(":", 1), int(count)) for name, count in _pairs(reply))
    return {(int(hour_ms), reason): count for hour_ms, reason, count in named}


def _holders(described: Reply) -> tuple[SlotHolder, ...]:
    return tuple(_holder(name, owner, *rest) for name, owner, *rest in described)


def _holder(name: str, owner: str | None, *rest: Any) -> SlotHolder:
    job, attempt = Holder.parse(owner) if owner else (None, None)
    return SlotHolder(name, job, attempt, *rest)


def _obstacle(reply: Reply) -> Obstacle:
    group, limit, active, since_ms, holders, until_ms = reply
    return Obstacle(
        group=group, limit=limit, active=active, since_ms=since_ms, holders=_holders(holders), until_ms=until_ms
    )


def _worker(reply: Reply) -> WorkerStatus:
    worker, pool, slots, draining, heard_ms, until_ms, holders = reply
    return WorkerStatus(
        worker=worker,
        pool=pool,
        slots=slots,
        draining=bool(draining),
        heard_ms=heard_ms,
        until_ms=until_ms,
        holders=tuple(holders),
    )


def _pause(scope: str, text: str) -> Pause:
    told = json.loads(text)
    return Pause(scope, told["by"], told["reason"], int(told["since_ms"]))


def _pairs(flat: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Of a list of name, value, …."""
    return zip(flat[::2], flat[1::2], strict=True)


def _numbers(flat: Sequence[Any]) -> Mapping[str, int]:
    return {name: int(number) for name, number in _pairs(flat)}

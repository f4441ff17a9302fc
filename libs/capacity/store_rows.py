"""What the view is told, as the scripts take it: scalars as text, structures as one JSON text, null left out.

Owns the split of a row into its shape, which is all that indexes are made of, and what changes while a job runs. A
running job whose shape is the same text touches no index, so the text must depend on the row alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from headgate_contracts.vocabulary import PRIORITY_OF_CLASS
from libs.capacity.answers import Claim, Deferral, Heartbeat, LeaseRequest, Request
from libs.capacity.rows import (
    Change,
    FreeLease,
    OperatorOrder,
    Pause,
    Resume,
    Row,
    Seed,
    SetLimit,
    StandingOrders,
    UnsetLimit,
)
from libs.capacity.scopes import CLASS_OF_SCOPE
from libs.capacity.scripts import Arg

ROW_ARGS: Final = 10  # of a change: the row's own and what follows from it

to_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def shape_of(row: Row) -> str:
    """Everything of the row that an index is made of."""
    return to_json(
        _without_null(
            {
                "id": row.id,
                "first_seq": row.first_seq,
                "user": row.user,
                "project": row.project,
                "workflow": row.workflow,
                "pool": row.pool,
                "tier": row.tier,
                "class": row.class_number,
                "priority": _priority(row.class_number),
                "boost": row.boost,
                "arrival": row.arrival,
                "place": row.place,
                "groups": row.groups,
                "gates": row.gates or None,
                "limits": dict(row.limits) or None,
                "holder": row.holder,
                "started_ms": row.started_ms,
                "quota_day": row.quota_day,
                "timers": dict(row.timers) or None,
                "input": row.input_bytes or None,
                "input_until": row.input_until_ms,
            }
        )
    )


def row_args(row: Row) -> tuple[Arg, ...]:
    """id, shape, status, seq, cancelling, worker, the job."""
    return row.id, shape_of(row), row.status, row.seq, "1" if row.cancelling else "", row.worker or "", row.job


def change_args(change: Change) -> tuple[Arg, ...]:
    """From `seq` on, as `fold_v1` takes it."""
    head = (change.seq, change.prev, order_text(change.order) if change.order else "")
    gone = (to_json(change.gone),) if change.gone else ()
    unused = to_json(change.unused) if change.unused else ""
    if change.row is None:
        return (*head, *[""] * (ROW_ARGS - 1), unused, *gone) if gone or unused else (*head, "")
    passed = to_json(change.passed) if change.passed else ""
    return *head, *row_args(change.row), passed, change.passed_before, unused, *gone


def seed_args(seed: Seed) -> tuple[Arg, ...]:
    """From the count on, as `seed_v1` takes it."""
    return seed.passed, *row_args(seed.row)


def order_text(order: OperatorOrder) -> str:
    match order:
        case Pause(scope):
            fields = {"act": "pause", "scope": scope, "class": CLASS_OF_SCOPE.get(scope), "text": _pause_text(order)}
        case Resume(scope):
            fields = {"act": "resume", "scope": scope, "class": CLASS_OF_SCOPE.get(scope)}
        case SetLimit(group, limit):
            fields = {"act": "set_limit", "group": group, "limit": limit}
        case UnsetLimit(group):
            fields = {"act": "unset_limit", "group": group}
        case FreeLease(group, lease):
            fields = {"act": "free_lease", "group": group, "lease": lease}
    return to_json(_without_null(fields))


def standing_text(standing: StandingOrders) -> str:
    return to_json(
        {
            "tiers": dict(standing.tiers),
            "limits": dict(standing.limits),
            "defaults": dict(standing.defaults),
            "paused": {pause.scope: _pause_text(pause) for pause in standing.pauses},
            "used": [[user, day, count] for (user, day), count in standing.used.items()],
            "leaving": [[user, hour, size] for (user, hour), size in standing.leaving.items()],
        }
    )


def request_text(request: Request) -> str:
    return to_json(
        _without_null(
            {
                "id": request.job,
                "user": request.user,
                "project": request.project,
                "workflow": request.workflow,
                "pool": request.pool,
                "class": request.class_number,
                "priority": _priority(request.class_number),
                "boost": request.boost,
                "takes_day": request.takes_day,
                "run_at": request.run_at_ms,
                "first_day": request.first_day,
                "per_day": request.per_day,
                "horizon_days": request.horizon_days,
                "cap": request.cap,
                "user_share": request.user_share,
                "passed_bound": request.passed_bound,
                "lapse_ms": request.lapse_ms,
                "cost_ms": request.cost_ms,
                "inputs": dict(request.inputs),
                "digest": request.digest,
                "room": request.room and asdict(request.room),
                "dry": request.dry or None,
            }
        )
    )


def deferral_args(deferral: Deferral) -> tuple[Arg, ...]:
    """From the job's id on, as `defer_v1` takes it."""
    days = (deferral.first_day, deferral.per_day, deferral.horizon_days)
    return deferral.job, deferral.user, *days, deferral.lapse_ms


def claims_text(claims: Sequence[Claim]) -> str:
    return to_json([asdict(claim) for claim in claims])


def lease_args(request: LeaseRequest) -> tuple[Arg, ...]:
    told = "" if request.held_until_ms is None else request.held_until_ms
    most = "" if request.most is None else request.most
    times = (request.ttl_ms, request.wait_ms)
    owner, user = request.owner or "", request.user or ""
    return (request.lease, to_json(request.groups), owner, *times, request.reply, user, told, most)


def heartbeat_text(heartbeat: Heartbeat) -> str:
    return to_json(
        {
            "worker": heartbeat.worker,
            "pool": heartbeat.pool,
            "slots": heartbeat.slots,
            "draining": heartbeat.draining,
            "holders": heartbeat.holders,
            "leases": [{"lease": each.lease, "owner": each.owner, "groups": each.groups} for each in heartbeat.leases],
            "ttl_ms": heartbeat.ttl_ms,
        }
    )


def _priority(class_number: int) -> str:
    """A class that no priority has is in no scope of a pause."""
    return PRIORITY_OF_CLASS.get(class_number, "")


def _pause_text(pause: Pause) -> str:
    return to_json({"by": pause.by, "reason": pause.reason, "since_ms": str(pause.since_ms)})


def _without_null(fields: Mapping[str, Any]) -> dict[str, Any]:
    """In Lua a JSON null counts as true."""
    return {name: value for name, value in fields.items() if value is not None}

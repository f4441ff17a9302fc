"""A ledger as bytes: the newest one and the records after it are all that a rebuild has to read.

The shape is JSON lines under zlib: a header with epoch, sequence and all that the jobs themselves do not say, then one
folded job a line with how often it was passed.

What operators ordered may be older than all that the log still holds, so no reader throws it away: of another shape,
older or newer, the orders and the policy alone are taken, and the log is folded over them from its beginning. So these
never change their shape. Jobs are what the fold of a release makes of them: one that takes more from the log has a new
shape. A snapshot of another log is refused.
"""

import json
import logging
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Final

from headgate_contracts import Job, Status
from headgate_contracts.events import Estimate
from libs.capacity.days import Days
from libs.capacity.ledger import Ledger
from libs.capacity.orders import Orders
from libs.capacity.paces import WAITS_MAX, Pace, Paces, Wait
from libs.capacity.patience import Patience
from libs.capacity.phases import Phase, Phases
from libs.capacity.remnants import Remnants
from libs.capacity.rows import Pause
from libs.capacity.turns import Turn, Turns
from libs.policy import Policy, PolicyError, PolicyInForce
from libs.policy.reloading import sections_of

logger = logging.getLogger(__name__)

SHAPE: Final = 6


class SnapshotUnusable(ValueError):
    """A snapshot is damaged or of another log. Fold the log from its beginning instead."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A ledger at one moment. It shares nothing that changes, so it may be written down in a thread."""

    header: Mapping[str, Any]
    waits: tuple[Wait, ...]
    jobs: tuple[Job, ...]
    passed: Mapping[str, int]

    def encode(self) -> bytes:
        header = {**self.header, "waits": [_wait_as_json(wait) for wait in self.waits]}
        jobs = (f"{self.passed.get(job.id, 0)} {job.model_dump_json(by_alias=True)}" for job in self.jobs)
        return zlib.compress("\n".join((json.dumps(header), *jobs)).encode(), level=1)


def picture_of(ledger: Ledger, *, epoch: str) -> Picture:
    """The ledger as it stands: quick, whatever it holds."""
    orders, flows = ledger.orders, ledger.phases.flows
    header = {
        "shape": SHAPE,
        "epoch": epoch,
        "applied": ledger.applied,
        "orders": {
            "arrivals": orders.arrivals,
            "tiers": dict(orders.tiers),
            "limits": dict(orders.limits),
            "pauses": {scope: asdict(pause) for scope, pause in orders.pauses.items()},
        },
        "policy": {"seq": ledger.policy_seq, "sections": sections_of(ledger.policy)} if ledger.policy_seq else None,
        "brought": dict(orders.brought),
        "leased": {group: at.isoformat() for group, at in orders.leased.items()},
        "early": {job_id: (count, at.isoformat()) for job_id, (count, at) in ledger.early.items()},
        "forced": dict(ledger.forced),
        "over": dict(ledger.days.over),
        "used": [[user, day.isoformat(), count] for (user, day), count in ledger.days.used.items()],
        "turns": {number: asdict(turn) for number, turn in ledger.turns.by_class.items()},
        "patience": asdict(ledger.patience),
        "phases": {flow: {n: [phase.job, phase.status] for n, phase in known.items()} for flow, known in flows.items()},
        "inputs": [[user, hour, size] for (user, hour), size in ledger.remnants.inputs.items()],
        "lent": {name: at.isoformat() for name, at in ledger.remnants.lent.items()},
        "paces": {tier: asdict(pace) for tier, pace in ledger.paces.items()},
    }
    return Picture(header, tuple(ledger.waits), tuple(ledger.jobs.values()), dict(ledger.passed))


def dump(ledger: Ledger, *, epoch: str) -> bytes:
    """The ledger as it stands, as bytes."""
    return picture_of(ledger, epoch=epoch).encode()


def load(snapshot: bytes, *, epoch: str, policy: Policy) -> Ledger:
    """The ledger that was dumped, under the policy of today, or of the last reload."""
    try:
        first, *lines = zlib.decompress(snapshot).decode().split("\n")
        return _ledger(json.loads(first), lines, epoch=epoch, policy=policy)
    except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SnapshotUnusable(f"the snapshot cannot be read: {error}") from error


def _ledger(header: dict[str, Any], lines: list[str], *, epoch: str, policy: Policy) -> Ledger:
    if header["epoch"] != epoch:
        raise ValueError(f"it is of epoch {header['epoch']}, not of {epoch}")
    policy, policy_seq = _policy(header.get("policy"), policy)
    if header["shape"] != SHAPE:
        return Ledger(policy, orders=_orders(header["orders"]), policy_seq=policy_seq)
    jobs, passed = _jobs(lines)
    orders, users = _orders(header["orders"]), {job.user_id for job in jobs.values()}
    orders.tiers = {user: tier for user, tier in orders.tiers.items() if user in users}
    orders.brought = header["brought"]
    orders.leased = {group: datetime.fromisoformat(at) for group, at in header["leased"].items()}
    return Ledger(
        policy,
        applied=header["applied"],
        jobs=jobs,
        passed=passed,
        early={job_id: (count, datetime.fromisoformat(at)) for job_id, (count, at) in header["early"].items()},
        orders=orders,
        forced=header["forced"],
        days=_days(header),
        turns=Turns({int(number): Turn(**turn) for number, turn in header["turns"].items()}),
        patience=_patience(header),
        learned=_learned(header),
        phases=_phases(header),
        remnants=_remnants(header),
        policy_seq=policy_seq,
    )


def _policy(kept: dict[str, Any] | None, policy: Policy) -> tuple[Policy, int]:
    """With the last reload. One that cannot go together with today's file takes no order of an operator with it: who
    reads the snapshot asks the log for a newer one."""
    if kept is None:
        return policy, 0
    in_force = PolicyInForce.of(policy)
    try:
        in_force.take(kept["sections"])
    except PolicyError as error:
        logger.warning("the policy in the snapshot, of record %s, cannot be in force here: %s", kept["seq"], error)
        return policy, 0
    return in_force, kept["seq"]


def _jobs(lines: Iterable[str]) -> tuple[dict[str, Job], dict[str, int]]:
    jobs: dict[str, Job] = {}
    passed: dict[str, int] = {}
    for line in lines:
        count, _, text = line.partition(" ")
        job = Job.model_validate_json(text)
        jobs[job.id] = job
        if count != "0":
            passed[job.id] = int(count)
    return jobs, passed


def _orders(raw: dict[str, Any]) -> Orders:
    pauses = {scope: Pause(**pause) for scope, pause in raw["pauses"].items()}
    return Orders(arrivals=raw["arrivals"], tiers=raw["tiers"], limits=raw["limits"], pauses=pauses)


def _days(header: dict[str, Any]) -> Days:
    used = Counter({(user, date.fromisoformat(day)): count for user, day, count in header["used"]})
    return Days(over=header["over"], used=used)


def _patience(header: dict[str, Any]) -> Patience:
    raw: dict[str, Any] = header["patience"]
    over: dict[str, list[list[int]]] = raw["over"]
    return Patience({job_id: [(begin, end) for begin, end in spans] for job_id, spans in over.items()}, raw["since"])


def _phases(header: dict[str, Any]) -> Phases:
    raw: dict[str, dict[str, list[str]]] = header["phases"]
    return Phases.standing(
        {
            flow: {int(number): Phase(job, Status(status)) for number, (job, status) in known.items()}
            for flow, known in raw.items()
        }
    )


def _remnants(header: dict[str, Any]) -> Remnants:
    inputs = Counter({(user, hour): size for user, hour, size in header["inputs"]})
    return Remnants(inputs, {name: datetime.fromisoformat(at) for name, at in header["lent"].items()})


def _learned(header: dict[str, Any]) -> Paces:
    raw: dict[str, dict[str, Any]] = header["paces"]
    paces = {tier: Pace(pace["average_s"], pace["count"], tuple(pace["holds"])) for tier, pace in raw.items()}
    return Paces(paces, deque(map(_wait_of_json, header["waits"]), maxlen=WAITS_MAX))


def _wait_as_json(wait: Wait) -> dict[str, Any]:
    return {
        "at": wait.at.isoformat(),
        "tier": wait.tier,
        "priority": wait.priority,
        "pool": wait.pool,
        "wait_s": wait.wait_s,
        "estimate": wait.estimate and wait.estimate.model_dump(mode="json"),
        "asked": wait.asked,
    }


def _wait_of_json(raw: dict[str, Any]) -> Wait:
    estimate = raw["estimate"] and Estimate.model_validate(raw["estimate"])
    fields: dict[str, Any] = {**raw, "at": datetime.fromisoformat(raw["at"]), "estimate": estimate}
    return Wait(**fields)

"""A ledger as bytes: the newest one and the records after it are all that a rebuild has to read.

The shape is JSON lines under zlib: a header with epoch, sequence and orders, then one folded job a line with how often
it was passed. A reader refuses another shape or another epoch and reads the log from its beginning instead.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from headgate_contracts import Job
from libs.capacity.ledger import Ledger, Orders
from libs.capacity.rows import Pause
from libs.policy import Policy

SHAPE: Final = 1


class SnapshotUnusable(ValueError):
    """A snapshot is of another shape or another log. Fold the log from its beginning instead."""


def dump(ledger: Ledger, *, epoch: str) -> bytes:
    """The ledger as it stands."""
    header = {
        "shape": SHAPE,
        "epoch": epoch,
        "applied": ledger.applied,
        "orders": asdict(ledger.orders),
        "early": {job_id: (count, at.isoformat()) for job_id, (count, at) in ledger.early.items()},
    }
    jobs = (f"{ledger.passed.get(job.id, 0)} {job.model_dump_json(by_alias=True)}" for job in ledger.jobs.values())
    return zlib.compress("\n".join((json.dumps(header), *jobs)).encode(), level=1)


def load(snapshot: bytes, *, epoch: str, policy: Policy) -> Ledger:
    """The ledger that was dumped, under the policy of today."""
    try:
        first, *lines = zlib.decompress(snapshot).decode().split("\n")
        return _ledger(json.loads(first), lines, epoch=epoch, policy=policy)
    except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SnapshotUnusable(f"the snapshot cannot be read: {error}") from error


def _ledger(header: dict[str, Any], lines: list[str], *, epoch: str, policy: Policy) -> Ledger:
    if (header["shape"], header["epoch"]) != (SHAPE, epoch):
        raise ValueError(f"shape {header['shape']}, epoch {header['epoch']}: not shape {SHAPE}, epoch {epoch}")
    jobs, passed = _jobs(lines)
    early = {job_id: (count, datetime.fromisoformat(at)) for job_id, (count, at) in header["early"].items()}
    orders = _orders(header["orders"])
    return Ledger(policy, applied=header["applied"], jobs=jobs, passed=passed, early=early, orders=orders)


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

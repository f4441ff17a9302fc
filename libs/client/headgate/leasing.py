"""Slots outside any job, script by script: taken, extended, given back.

Each may be sent again without harm: the same lease asked for twice is one lease.
"""

import secrets
import time
from datetime import datetime
from math import inf
from typing import Final

from headgate.errors import NoSlot
from headgate.exchange import Request, Script, asked, path_of, terms
from headgate.overseen import LeaseState
from headgate.repeating import answered, fetched

IN_LINE_S: Final = 30  # of one request; it is sent again for as long as is to be waited
ANSWER_S: Final = 15.0  # beside that
LETTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_lease() -> str:
    """A name for a lease: a ULID."""
    number = int(time.time() * 1000) << 80 | secrets.randbits(80)
    return "".join(LETTERS[number >> shift & 31] for shift in range(125, -1, -5))


def take_slot(
    name: str,
    lease: str,
    *,
    project: str,
    limit: int | None = None,
    ttl_s: int | None = None,
    wait_s: float | None = None,
) -> Script[LeaseState]:
    """A slot of the project's group, waited for in line; `NoSlot` where none came free in time. Null: as long as it
    takes."""
    known = yield from terms()
    ends_s = inf if wait_s is None else known.now_s() + wait_s
    while True:
        in_line_s = int(max(0, min(IN_LINE_S, ends_s - known.now_s())))
        body = asked(lease=lease, limit=limit, ttl_s=ttl_s, wait_s=in_line_s)
        request = Request(
            method="POST",
            path=path_of("concurrency", _group(project, name), "leases"),
            body=body,
            within_s=in_line_s + ANSWER_S,
            is_idempotent=True,
        )
        try:
            return (yield from fetched(request, LeaseState))
        except NoSlot:
            if in_line_s < IN_LINE_S:
                raise


def extend_slot(
    name: str,
    lease: str,
    *,
    project: str,
    limit: int | None = None,
    ttl_s: int | None = None,
    held_until: datetime | None = None,
    within_s: float = ANSWER_S,
) -> Script[LeaseState]:
    """It is held for as long from now; `NotFound` where it is not held any more. `held_until`: what was told last."""
    body = asked(limit=limit, ttl_s=ttl_s, held_until=held_until and held_until.isoformat())
    path = path_of("concurrency", _group(project, name), "leases", lease)
    return (yield from fetched(Request(method="PATCH", path=path, body=body, within_s=within_s), LeaseState))


def give_slot_back(name: str, lease: str, *, project: str) -> Script[None]:
    """The next in line has it at once. What is not held any more is no error."""
    path = path_of("concurrency", _group(project, name), "leases", lease)
    yield from answered(Request(method="DELETE", path=path, is_idempotent=True))


def _group(project: str, name: str) -> str:
    return f"group:{project}:{name}"

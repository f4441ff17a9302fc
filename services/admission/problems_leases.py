"""The refusals about slots outside jobs, in words."""

import math
from typing import Any, Final

from headgate_contracts.envelope import utc
from libs.capacity.answers import GroupStatus, SlotHolder
from libs.runtime.problems import Problem

LONGEST_RETRY_S: Final = 30  # somebody may give one back before their lease ends


def none_free(group: str, status: GroupStatus, *, user: str, now_ms: int) -> Problem:
    """Who holds them: one's own by name, of others how long."""
    wait_s = _retry_s(status, now_ms)
    if status.shut_until_ms is not None:
        why = "the view was lost, and nobody can know who holds a slot until every lease from before is over"
    else:
        why = f"all {status.limit} slots are taken, and {status.waiting} wait"
    return Problem(
        status=429,
        slug="no-slot",
        title="No slot is free",
        detail=f"{group}: {why}: ask again in {wait_s} s, or wait in line with wait_s",
        retry_after_s=wait_s,
        more={
            "limit": status.limit,
            "active": status.active,
            "waiting": status.waiting + status.blocked,
            "holders": [_holder(each, user) for each in status.holders],
        },
    )


def _retry_s(status: GroupStatus, now_ms: int) -> int:
    ends = [each.expires_ms for each in status.holders if each.job is None]
    next_ms = status.shut_until_ms or (min(ends) if ends else now_ms + LONGEST_RETRY_S * 1000)
    return min(LONGEST_RETRY_S, max(1, math.ceil((next_ms - now_ms) / 1000)))


def _holder(holder: SlotHolder, user: str) -> dict[str, Any]:
    own = holder.user == user
    since = None if holder.since_ms is None else utc(holder.since_ms).isoformat()
    return {
        "yours": own,
        "lease": holder.name if own else None,
        "job_id": holder.job if own else None,
        "since": since,
        "expires_at": utc(holder.expires_ms).isoformat(),
    }


def not_leasable(group: str) -> Problem:
    detail = f"{group!r} cannot be leased: name a group of a project of yours, group:<project>:<name>"
    return Problem(status=403, slug="not-leasable", title="Not to be leased", detail=detail)


def too_long_a_lease(longest_ms: int) -> Problem:
    said = f"a lease lasts {longest_ms // 1000} s at most: extend it while it is needed"
    wrong = [{"in": "body", "field": "ttl_s", "message": said}]
    return Problem(status=422, slug="invalid", title="Invalid request", detail=f"ttl_s: {said}", more={"errors": wrong})


def lease_taken(lease: str) -> Problem:
    detail = f"{lease} stands for a slot of another group, or of somebody else: make a new ULID for a new lease"
    return Problem(status=409, slug="lease-taken", title="Another lease has this name", detail=detail)


def not_held(group: str, lease: str) -> Problem:
    detail = f"you hold no slot of {group} as {lease}: it has ended, was given back, or an operator has freed it"
    return Problem(status=404, slug="not-found", title="Not held", detail=detail)


def too_many_groups(retry_ms: int) -> Problem:
    wait_s = max(1, math.ceil(retry_ms / 1000))
    detail = f"you have named too many groups that are new: try again in {wait_s} s"
    return Problem(status=429, slug="too-fast", title="Too many new groups", detail=detail, retry_after_s=wait_s)


def too_many_leases(held: int) -> Problem:
    detail = f"you hold and wait for {held} slots outside jobs, as many as one user may: give one back first"
    return Problem(status=429, slug="lease-share", title="Your share of slots is full", detail=detail)


def gone_away() -> Problem:
    """Nobody reads it."""
    return Problem(status=503, slug="unavailable", title="Gone", detail="the client has gone", retry_after_s=1)

"""What a submission may ask for: every limit that a body is held to, for a job, a workflow and a retry.

    shape: types, lengths, the largest input and batch        contracts: `asked.py`, before this is called
    bytes of the body as a whole                              `bodies.py`, before it is read
    what policy and the user's tier allow                     here
    places, shares and rates                                  the view, by `reserve`: what they are is in its `Request`

Pure. Owns no number: policy does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headgate_contracts import Job, Priority, Tier
from headgate_contracts.asked import JobOrder, SubmitJob, SubmitWorkflow
from libs.policy import Policy


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """The user may not ask for this. `field` of the body is to be changed, and `also` these, each with its reason."""

    field: str
    reason: str
    also: tuple[tuple[str, str], ...] = ()

    @property
    def every(self) -> tuple[tuple[str, str], ...]:
        return ((self.field, self.reason), *self.also)

    def below(self, part: str) -> NotAllowed:
        """The same of this part of the body."""
        first, *others = ((f"{part}.{field}", reason) for field, reason in self.every)
        return NotAllowed(*first, also=tuple(others))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Whose jobs they will be, and what that user may ask for. `projects` are those that they share with others."""

    user_id: str
    tier: Tier
    projects: frozenset[str] = frozenset()
    policy: Policy
    now: datetime
    traceparent: str | None = None  # of the request
    tracestate: str | None = None

    def shares(self, project_id: str) -> bool:
        """Whether the name is one project for all who share it; else it is this user's own."""
        return self.policy.projects.shared or project_id in self.projects


def priority_refusal(priority: Priority, tier: Tier, policy: Policy) -> NotAllowed | None:
    """What is not allowed about a class."""
    highest = policy.tier_limits(tier).highest_priority
    if priority.class_number < highest.class_number:
        return NotAllowed("priority", f"your tier may ask for {highest.value} at most")
    return None


def submission_refusal(body: SubmitJob | SubmitWorkflow, asker: Asker) -> NotAllowed | None:
    """The first limit that a new job, or a new workflow, is over."""
    if (refusal := _frame_refusal(body, asker)) is not None:
        return refusal
    return _phases_refusal(body, asker) if isinstance(body, SubmitWorkflow) else _order_refusal(body, asker.policy)


def retry_refusal(jobs: Sequence[Job], content: Mapping[str, Any] | None, asker: Asker) -> NotAllowed | None:
    """The first limit that these jobs are over when they are submitted again, the first of them with this input. What
    the log has was within its limits once: only what may have changed since is looked at."""
    if content is not None and (refusal := _input_refusal(content, asker.policy)) is not None:
        return refusal
    pools = (_pool_refusal(each.submission.pool, asker.policy) for each in jobs)
    return next((refusal for refusal in pools if refusal is not None), None)


def _frame_refusal(body: SubmitJob | SubmitWorkflow, asker: Asker) -> NotAllowed | None:
    """What is not allowed about what stands around the orders."""
    policy = asker.policy
    days = policy.queue.horizon_days
    if body.run_at is not None and body.run_at > asker.now + timedelta(days=days):
        return NotAllowed("run_at", f"at most {days} days ahead are allowed")
    if body.notify_url is not None and not policy.webhooks.allows(body.notify_url):
        return NotAllowed("notify_url", _hosts_allowed(policy))
    return priority_refusal(body.priority, asker.tier, policy)


def _phases_refusal(body: SubmitWorkflow, asker: Asker) -> NotAllowed | None:
    most = asker.policy.submissions.max_phases
    if len(body.phases) > most:
        return NotAllowed("phases", f"at most {most} phases are allowed, these are {len(body.phases)}")
    for number, order in enumerate(body.phases):
        refusal = _order_refusal(order, asker.policy)
        if refusal is not None:
            return refusal.below(f"phases.{number}")
    return None


def _order_refusal(order: JobOrder, policy: Policy) -> NotAllowed | None:
    """What is not allowed about an order in itself."""
    if (refusal := _pool_refusal(order.pool, policy)) is not None:
        return refusal
    if (order.run_timeout_s or 0) > policy.runs.max_timeout_s:
        return NotAllowed("run_timeout_s", f"at most {policy.runs.max_timeout_s:g} seconds are allowed")
    if (refusal := _input_refusal(order.input, policy)) is not None:
        return refusal
    if order.concurrency_limit is not None and order.concurrency_group is None:
        return NotAllowed("concurrency_limit", "a limit needs a concurrency_group to hold for")
    return None


def _input_refusal(content: Mapping[str, Any], policy: Policy) -> NotAllowed | None:
    if not _is_json(content):
        return NotAllowed("input", "it holds a number that JSON cannot write: NaN or infinity")
    if len(canonical(content)) > policy.submissions.max_input_bytes:
        return NotAllowed("input", f"at most {policy.submissions.max_input_bytes} bytes as JSON are taken")
    return None


def _pool_refusal(pool: str, policy: Policy) -> NotAllowed | None:
    """A job of a pool that no worker may serve would wait for ever, in everybody's queue."""
    if pool in policy.pools.open:
        return None
    wrong = "takes no new jobs" if pool in policy.pools.closing else "is no pool here"
    return NotAllowed("pool", f"{pool!r} {wrong}: name {', '.join(policy.pools.open)}")


def _hosts_allowed(policy: Policy) -> str:
    if not (listed := policy.webhooks.receivers):
        return "nobody may be called: an operator lists the hosts in the policy (webhooks.hosts)"
    return f"only these hosts may be called, with the same port or with none: {', '.join(listed)}"


def canonical(content: Mapping[str, Any]) -> bytes:
    """An input as bytes that are the same for the same content."""
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _is_json(content: Mapping[str, Any]) -> bool:
    try:
        json.dumps(content, allow_nan=False)
    except ValueError:
        return False
    return True

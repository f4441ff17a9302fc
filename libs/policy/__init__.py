"""The numbers and named choices that an operator may change, in one frozen object.

Owns defaults, bounds, what numbers must keep together, and how `policy.toml` and the environment become a `Policy`.
Refuses decisions: it says how many, never who.
"""

from libs.policy.errors import PolicyError, Problem
from libs.policy.loading import load_policy
from libs.policy.model import Policy
from libs.policy.reloading import PolicyInForce
from libs.policy.sections import (
    Concurrency,
    Confirmation,
    Forecast,
    Leases,
    Order,
    Pools,
    Providers,
    Queue,
    Retention,
    Runs,
    Sandbox,
    Stream,
    Submissions,
    TierLimits,
    Tiers,
    Tracing,
    Webhooks,
)

__all__ = [
    "Concurrency",
    "Confirmation",
    "Forecast",
    "Leases",
    "Order",
    "Policy",
    "PolicyError",
    "PolicyInForce",
    "Pools",
    "Problem",
    "Providers",
    "Queue",
    "Retention",
    "Runs",
    "Sandbox",
    "Stream",
    "Submissions",
    "TierLimits",
    "Tiers",
    "Tracing",
    "Webhooks",
    "load_policy",
]

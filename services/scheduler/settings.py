"""What the scheduler is told from outside, beside what all services are told, and what it says of that at start."""

import logging

from libs.policy import Policy
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Health
from libs.runtime.settings import ServiceSettings

logger = logging.getLogger(__name__)


class SchedulerSettings(ServiceSettings):
    """Nothing of its own: every number the scheduler decides by is policy."""


def require_patience(settings: SchedulerSettings, policy: Policy) -> None:
    """The store is heard when the lead is renewed: with less patience each renewal looks like the end of an outage, and
    leases are made longer by it for ever."""
    patience_s, renewed_s = settings.outage_patience_s, policy.leases.leader_heartbeat_s
    if patience_s <= renewed_s:
        wrong = f"HEADGATE_OUTAGE_PATIENCE_S {patience_s:g} is no longer than leases.leader_heartbeat_s {renewed_s:g}"
        raise SettingsWrong([f"{wrong}: write more than that, or lower it in the policy"])


def report(policy: Policy, health: Health) -> None:
    """Which numbers hold that are not the default, and which look like a mistake: by the one service that decides by
    all of them. The latter also to the probe that asks whether it is ready, as `headgate up` does."""
    health.note("the file", *(f"policy: {doubt}" for doubt in policy.doubts()))
    for change in policy.changes():
        logger.info("policy: %s", change)
    for doubt in policy.doubts():
        logger.warning("policy: %s", doubt)

"""What the scheduler is told from outside, beside what all services are told."""

from __future__ import annotations

from libs.runtime.settings import ServiceSettings


class SchedulerSettings(ServiceSettings):
    """Nothing of its own: every number the scheduler decides by is policy."""

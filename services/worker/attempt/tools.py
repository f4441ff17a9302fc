"""What every attempt of a worker is given: what all of them share, and what one of them begins with."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from opentelemetry.trace import SpanContext

from headgate_contracts import Job
from libs.eventlog.ports import EventLog, Inputs, Objects, ProgressBucket
from libs.policy import Policy
from libs.runtime.clock import Clock
from services.worker.attempt.checkpoints import Shelf
from services.worker.attempt.job_log import LinePump
from services.worker.attempt.process import Limits
from services.worker.children import Spawner
from services.worker.ports import Scheduler
from services.worker.signals import Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What all attempts of a worker share."""

    worker: str
    policy: Policy
    limits: Limits
    log: EventLog
    inputs: Inputs
    results: Objects
    shelf: Shelf
    scheduler: Scheduler
    spawner: Spawner
    pump: LinePump
    progress: ProgressBucket
    signals: Signals
    clock: Clock
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """An attempt that is ours, as it was when it became ours."""

    job: Job
    at_ms: int  # by our own clock that only grows
    at: datetime  # by the log's
    budget_s: float
    cause: SpanContext  # the span of its claim
    content: asyncio.Task[bytes | None]  # what it is made from, on its way since it was to be had

    def worked_s(self, clock: Clock) -> float:
        """How long the attempt has been ours."""
        return (clock.monotonic_ms() - self.at_ms) / 1000

    def log_time(self, clock: Clock) -> datetime:
        """Now, by the log's clock as far as we can tell: a wrong clock of this machine has no effect."""
        return self.at + timedelta(seconds=self.worked_s(clock))

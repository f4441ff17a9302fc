"""What Headgate tells operators, as values."""

from collections.abc import Mapping
from typing import Any

from pydantic import AwareDatetime

from headgate.values import PausedScope, Value


class SlotHolder(Value):
    """Who has a slot. Without a job it was asked for outside any."""

    lease: str
    user_id: str | None = None
    since: AwareDatetime | None = None
    expires_at: AwareDatetime
    job_id: str | None = None
    title: str | None = None
    attempt: int | None = None
    worker: str | None = None


class LeaseState(Value):
    """A slot that is held outside any job, until then."""

    group: str
    lease: str
    ttl_s: float
    expires_at: AwareDatetime


class GroupState(Value):
    """A group's slots."""

    group: str
    limit: int
    active: int
    waiting: int
    holders: tuple[SlotHolder, ...] = ()
    shut_until: AwareDatetime | None = None


class WorkerState(Value):
    """A worker that is heard of."""

    worker: str
    pool: str
    slots: int
    jobs: tuple[str, ...]
    heard_at: AwareDatetime
    draining: bool


class PipelineRemoved(Value):
    """A pipeline for which no job is taken in any more."""

    name: str
    pool: str
    message: str


class WaitsOf(Value):
    """How long the jobs of one priority and tier waited for their first start, in seconds."""

    priority: str
    tier: str
    count: int
    mean: float
    p50: float
    p90: float
    p99: float


class ForecastHits(Value):
    """How often the real wait lay inside the interval that was shown; `error` is the mean absolute error in seconds.
    Of a tier, of a class, or of all."""

    tier: str | None
    count: int
    hit_rate: float
    error: float
    priority: str | None = None


class RefusalsOfHour(Value):
    """How many submissions were refused in the hour that began at `hour`, for this reason."""

    hour: AwareDatetime
    reason: str
    count: int


class QueueAnalytics(Value):
    """Waits, and what the forecasts were worth, over the starts since `since`; refusals of the last 24 hours."""

    since: AwareDatetime | None
    waits: tuple[WaitsOf, ...]
    forecast: tuple[ForecastHits, ...]
    by_class: tuple[ForecastHits, ...] = ()
    refused: tuple[RefusalsOfHour, ...] = ()


class ChartLine(Value):
    """A number for each step: `queued` and `running` at its end, waits in seconds, else how many in it."""

    name: str
    of: str | None = None
    values: tuple[float | None, ...]


class Charts(Value):
    """Figures over time, in steps that begin at `times`."""

    since: AwareDatetime
    until: AwareDatetime
    step_s: int
    times: tuple[AwareDatetime, ...]
    lines: tuple[ChartLine, ...]
    unknown: tuple[str, ...] = ()


class AttemptOfWorker(Value):
    """What a worker took up, and what became of it; `end` is null while it runs."""

    job_id: str
    attempt: int
    worker: str
    pool: str
    began_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    end: str | None = None


class AuditRecord(Value):
    """What somebody did to others' jobs or to the queue, and why."""

    seq: int
    at: AwareDatetime
    act: str
    by: str
    reason: str
    about: str
    details: Mapping[str, Any] = {}


class ScopeChanged(Value):
    """What came of a pause or a resume. `paused`: all that is now."""

    scope: str
    changed: bool
    message: str
    paused: tuple[PausedScope, ...] = ()


class LeaseFreed(Value):
    """What came of a forced release."""

    group: str
    lease: str
    message: str
    job_id: str | None = None
    attempt: int | None = None


class TokenRevoked(Value):
    """A token that lets nobody in. `until`: no token can be good for longer."""

    jti: str
    until: AwareDatetime
    changed: bool
    message: str


class PolicyState(Value):
    """The policy in force. `by` somebody `since` then, or null where it is the file that the services started with.
    `version`: the same for the same numbers; what a reload can name that is to replace no other."""

    policy: Mapping[str, Any]
    version: str
    since: AwareDatetime | None = None
    by: str | None = None
    reason: str = ""
    changed: tuple[str, ...] = ()


class ContentErased(Value):
    """What was erased of a user. As long as jobs are `unfinished`, their workers may still write: erase again then."""

    user_id: str
    jobs: int
    cancelled: tuple[str, ...]
    unfinished: tuple[str, ...]
    message: str

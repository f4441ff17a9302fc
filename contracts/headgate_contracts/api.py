"""The bodies of the HTTP API: what a client sends and what it is shown. OpenAPI is generated from these.

What a client sends is exact: an unknown field is an error that names it. What it is shown may grow.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, field_validator

from headgate_contracts.events import JobData, JobQueued, LabelKey, LabelValue, Note
from headgate_contracts.tokens import Token
from headgate_contracts.vocabulary import Priority, Status, Tier

MAX_INPUT_BYTES: Final = 64 * 1024
ForeignId = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class Asked(BaseModel):
    """A body that a client sends."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Shown(BaseModel):
    """A body that a client is shown."""

    model_config = ConfigDict(frozen=True)


class SubmitJob(Asked):
    """What to run, for which project."""

    project_id: ForeignId
    input: dict[str, Any]
    pipeline: Token = "rehearsal"
    priority: Priority = Priority.NORMAL
    pool: Token = "default"
    concurrency_group: Token | None = None
    concurrency_limit: Annotated[int, Field(ge=1, le=10_000)] | None = None
    queue_ttl_s: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    run_timeout_s: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    run_at: AwareDatetime | None = None
    labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=16)] = {}

    @field_validator("input")
    @classmethod
    def _fits(cls, value: dict[str, Any]) -> dict[str, Any]:
        size = len(json.dumps(value, ensure_ascii=False).encode())
        if size > MAX_INPUT_BYTES:
            raise ValueError(f"{size} bytes as JSON, at most {MAX_INPUT_BYTES} are taken")
        return value


class CancelJob(Asked):
    """Why a job should end."""

    reason: Note = ""


class QueuePart(Shown):
    """Where a queued job stands."""

    position: int
    position_original: int
    position_message: str
    passed_by: int
    estimate_seconds: int | None = None
    lower_bound: int | None = None
    upper_bound: int | None = None
    message: str | None = None
    confidence: Literal["medium", "low"] | None = None


class WaitingOn(Shown):
    """One thing that keeps a job from running now."""

    reason: Literal[
        "daily_window",
        "room",
        "paused",
        "provider_paused",
        "earlier_phase",
        "user_limit",
        "project_limit",
        "group_limit",
        "global_limit",
        "no_worker",
        "behind",
        "confirmation",
    ]
    message: str
    group: str | None = None
    limit: int | None = None
    active: int | None = None
    since: AwareDatetime | None = None


class Iterations(Shown):
    """How many cycles a job has used, and how many it may."""

    used: int
    batch: int
    cap: int
    confirmations: int


class Usage(Shown):
    """How much of a day, and of a job, a user has used."""

    jobs_used: int
    jobs_remaining: int
    iterations_used: int
    iterations_remaining: int
    daily_limit_resets_at: AwareDatetime


class Upgrade(Shown):
    """What the next tier would change."""

    message: str
    url: str


class JobError(Shown):
    """Why a job failed."""

    summary: str
    detail: str
    debug_id: str


class ShownJob(Shown):
    """A job, as its owner sees it."""

    id: str
    status: Status
    project_id: str
    user_id: str
    tier: Tier
    priority: Priority
    pool: str
    pipeline: str
    attempt: int
    created_at: AwareDatetime
    updated_at: AwareDatetime
    message: str
    queue: QueuePart | None
    waiting_on: tuple[WaitingOn, ...]
    scheduled_for: AwareDatetime | None
    iterations: Iterations
    usage: Usage
    upgrade: Upgrade | None
    error: JobError | None
    result_url: str | None
    workflow: str | None
    labels: dict[str, str]
    debug_id: str


def shown_event(data: JobData) -> dict[str, Any]:
    """An event as the job's owner may see it: of other users' jobs that it passed, only how many there were."""
    shown = {"event": data.EVENT.value, **data.model_dump(mode="json", by_alias=True)}
    return shown | {"passed": len(data.passed)} if isinstance(data, JobQueued) else shown

"""What Headgate tells about jobs, as values. What a newer one says besides is kept; words that may grow are text."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

ENDS: Final = frozenset({"ready", "failed", "cancelled"})


class Value(BaseModel):
    """Something that Headgate told."""

    model_config = ConfigDict(frozen=True, extra="allow")

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: all that was said, and nothing else."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class QueuePlace(Value):
    """Where a queued job stands."""

    position: int
    position_message: str
    position_original: int | None = None
    passed_by: int = 0
    estimate_seconds: int | None = None
    lower_bound: int | None = None
    upper_bound: int | None = None
    message: str | None = None
    confidence: str | None = None


class Hindrance(Value):
    """One thing that keeps a job from running now; `message` says it in words."""

    reason: str
    message: str
    group: str | None = None
    limit: int | None = None
    active: int | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    by: str | None = None
    jobs: tuple[str, ...] = ()


class IterationsUsed(Value):
    """How many a job has used, and how many it may."""

    used: int
    batch: int
    cap: int
    confirmations: int = 0


class UsageOfDay(Value):
    """How much of a day, and of a job, a user has used."""

    jobs_used: int
    jobs_remaining: int
    iterations_used: int
    iterations_remaining: int
    daily_limit_resets_at: AwareDatetime


class JobFault(Value):
    """Why a job failed."""

    summary: str
    detail: str
    debug_id: str


class StageProgress(Value):
    """How far the stage is that a job is in, from 0 to 1, by its own account."""

    fraction: float
    message: str = ""


class FailedWork(Value):
    """What was not good enough, in words."""

    summary: str
    detail: str = ""


class Question(Value):
    """What a job asks its user, until `expires_at`: whether to go on (`kind` is "continue"), or what a stage wants to
    know ("ask"). An answer is one of the `choices`, or what the JSON Schema in `answer_schema` wants, or a text where
    there is neither."""

    id: str
    kind: str
    text: str
    choices: tuple[str, ...] = ()
    answer_schema: Annotated[Mapping[str, Any] | None, Field(alias="schema")] = None
    reason: FailedWork | None = None
    expires_at: AwareDatetime


class StageTitle(Value):
    """A stage of the job's pipeline, as its author names it, and what people are told while it runs."""

    name: str
    title: str


class StageModelUsage(Value):
    """What a stage has asked of one model of a provider. `cached_tokens` are among `input_tokens`."""

    stage: str | None = None
    provider: str
    model: str
    calls: int
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    took_ms: int = 0


class JobModelUsage(Value):
    """What a job has asked of models, in all and by stage."""

    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    took_ms: int
    stages: tuple[StageModelUsage, ...] = ()


class JobState(Value):
    """A job as it stood when it was asked for."""

    id: str
    status: str
    project_id: str
    user_id: str
    tier: str
    priority: str
    pool: str
    pipeline: str
    attempt: int
    created_at: AwareDatetime
    updated_at: AwareDatetime
    message: str
    iterations: IterationsUsed
    stage: str | None = None  # the one that it is in, or has ended in
    stages: tuple[StageTitle, ...] = ()  # all, in order, once a worker has told them
    progress: StageProgress | None = None
    question: Question | None = None
    queue: QueuePlace | None = None
    waiting_on: tuple[Hindrance, ...] = ()
    scheduled_for: AwareDatetime | None = None
    title: str | None = None
    usage: UsageOfDay | None = None
    model_usage: JobModelUsage | None = None
    upgrade: Mapping[str, str] | None = None
    error: JobFault | None = None
    result_url: str | None = None
    workflow: str | None = None
    labels: Mapping[str, str] = {}
    debug_id: str = ""

    @property
    def has_ended(self) -> bool:
        return self.status in ENDS


class WorkflowState(Value):
    """A workflow: its phases in order."""

    id: str
    project_id: str
    user_id: str
    priority: str
    status: str
    phases: tuple[JobState, ...]


class StageStart(Value):
    """A stage from which a job can be run again, or why it cannot."""

    stage: str
    title: str
    can_start: bool
    why_not: str = ""


class StageStarts(Value):
    """From where a job that has ended can be run again: its stages, in order."""

    job_id: str
    stages: tuple[StageStart, ...]


class ResultFile(Value):
    """One file of a result. `type` is one of few that are safe to show."""

    path: str
    size: int
    type: str


class ResultFiles(Value):
    """What a result holds, by path; `bytes` is the size of all of it unpacked."""

    job_id: str
    bytes: int
    files: tuple[ResultFile, ...]


class HistoryEvent(Value):
    """One event of a job's history. What it says beside this is there under the event's own names."""

    seq: int
    at: AwareDatetime
    event: str
    job_id: str
    user_id: str
    project_id: str
    status: str
    attempt: int


class Explanation(Value):
    """Why a job waits, and what would let it run."""

    id: str
    status: str
    message: str
    queue: QueuePlace | None = None
    waiting_on: tuple[Hindrance, ...]
    would_run: tuple[str, ...]
    may_wait_s: float | None = None


class JobWait(Value):
    """A piece of a job's waits, and what held it then. Null as `until`: it still does. `after`: how it came to wait."""

    since: AwareDatetime
    until: AwareDatetime | None = None
    reason: str
    message: str
    group: str | None = None
    limit: int | None = None
    by: str | None = None
    after: str | None = None


class JobWaits(Value):
    """A job's waits so far, oldest first."""

    job_id: str
    waits: tuple[JobWait, ...]


class JobNumbers(Value):
    """How many jobs there are: kind → name → jobs."""

    counts: Mapping[str, Mapping[str, int]]


class ItemAnswer(Value):
    """What became of one of many: the job, or the problem in its place."""

    status: int
    job: JobState | None = None
    problem: Mapping[str, Any] | None = None


class ItemAnswers(Value):
    """What became of each, in the order in which they were asked for."""

    results: tuple[ItemAnswer, ...]


class OwnPosition(Value):
    """Where one of one's own jobs stands."""

    job_id: str
    position: int


class PausedScope(Value):
    """A scope in which nothing is started."""

    scope: str
    by: str
    reason: str
    since: AwareDatetime


class PipelineState(Value):
    """A pipeline that jobs can be submitted for, in its pool; built in and not announced yet where it has none."""

    name: str
    pool: str | None = None
    version: str | None = None
    stages: tuple[StageTitle, ...] = ()
    input_schema: dict[str, Any] | None = None


class QueueLine(Value):
    """One job of the queue, as operators see it."""

    position: int
    job_id: str
    user_id: str
    project_id: str
    tier: str
    priority: str
    pool: str
    pipeline: str
    queued_at: AwareDatetime
    title: str | None = None
    estimate_seconds: int | None = None
    passed_by: int = 0
    workflow: str | None = None
    waiting_on: tuple[Hindrance, ...] = ()
    labels: Mapping[str, str] = {}


class QueueState(Value):
    """The queue: every job in order for operators, its length and one's own places for users."""

    length: int
    cap: int
    paused: tuple[PausedScope, ...] = ()
    jobs: tuple[QueueLine, ...] | None = None
    own: tuple[OwnPosition, ...] = ()

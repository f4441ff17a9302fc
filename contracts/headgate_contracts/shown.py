"""The bodies that the HTTP API shows. They may grow: a client ignores what it does not know."""

from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from headgate_contracts.events import JobData, JobDispatched, JobError, JobQueued, StageTitle, Tried
from headgate_contracts.questions import AnswerSchema, FailedWork
from headgate_contracts.records import OpenStatus, OpenTier
from headgate_contracts.usage import StageUsage
from headgate_contracts.vocabulary import Priority, QuestionKind


class Shown(BaseModel):
    """A body that a client is shown."""

    model_config = ConfigDict(frozen=True)


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
    confidence: Literal["high", "medium", "low"] | None = None


REASONS: Final = (
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
    "retry",
)
MORE_REASONS: Final = f"{', '.join(REASONS)}. More may come: `message` says each in words."


class WaitingOn(Shown):
    """One thing that keeps a job from running now. `jobs` hold the slots: a user is told of their own ones alone."""

    reason: Annotated[str, Field(description=MORE_REASONS)]
    message: str
    group: str | None = None
    limit: int | None = None
    active: int | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    by: str | None = None
    jobs: tuple[str, ...] = ()


PAST_REASONS: Final = (
    "daily_window, room, paused, provider_paused, earlier_phase, user_limit, project_limit, group_limit, global_limit, "
    "pool_full, confirmation, retry; turn: nothing that is in the log. More may come: `message` says each in words."
)


class ShownWait(Shown):
    """A piece of a job's waits, and what held it then: the first of it, in the order of `waiting_on`. Null as `until`:
    it still does.

    `after`: how the job came to the queue (`submitted`, `released`, `phase_ready`, `confirmed`, `answered`), or why it
    came back (`lost`, `drained`, `provider`, `outage`, `forced`, `retry`).
    """

    since: AwareDatetime
    until: AwareDatetime | None = None
    reason: Annotated[str, Field(description=PAST_REASONS)]
    message: str
    group: str | None = None
    limit: int | None = None
    by: str | None = None
    after: str | None = None


class ShownWaits(Shown):
    """A job's waits so far, oldest first."""

    job_id: str
    waits: tuple[ShownWait, ...]


class Iterations(Shown):
    """How many iterations a job has used, and how many it may."""

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


class ShownQuestion(Shown):
    """What a job asks its user, until `expires_at`: whether to go on (`continue`), or what a stage wants to know
    (`ask`). An answer is one of the `choices`, or what the JSON Schema wants, or a text where there is neither.
    `reason`: what was not good enough."""

    model_config = ConfigDict(serialize_by_alias=True, populate_by_name=True)

    id: str
    kind: QuestionKind
    text: str
    choices: tuple[str, ...] = ()
    schema_: Annotated[AnswerSchema | None, Field(alias="schema")] = None
    reason: FailedWork | None = None
    expires_at: AwareDatetime


class ShownProgress(Shown):
    """How far the stage is that the job is in, from 0 to 1, by its own account."""

    fraction: float
    message: str


class ShownModelUsage(Shown):
    """What a job has asked of models, in all and by `stages`: each provider and model of each, over all iterations and
    attempts. What the stage that runs has asked comes with its end."""

    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    took_ms: int
    stages: tuple[StageUsage, ...]


class ShownJob(Shown):
    """A job, as its owner sees it. `stages` are those of its pipeline, in order, once a worker has told them;
    `stage` is the one that it is in, or has ended in: those before it are done. `tried`: how often that, or the one
    that it goes on with, has failed and is run again. `question` is what it asks, as long as it waits for the
    answer. `title` is null where none was given or found, and where it was erased, `model_usage` where it has asked
    no model. `trace_url` is where its trace is read, for operators where policy says so (`tracing.url_template`).
    """

    id: str
    title: str | None = None
    status: OpenStatus
    project_id: str
    user_id: str
    tier: OpenTier
    priority: Priority
    pool: str
    pipeline: str
    attempt: int
    stage: str | None = None
    stages: tuple[StageTitle, ...] = ()
    tried: Tried | None = None
    created_at: AwareDatetime
    updated_at: AwareDatetime
    message: str
    progress: ShownProgress | None = None
    question: ShownQuestion | None = None
    model_usage: ShownModelUsage | None = None
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
    trace_url: str | None = None


class JobCounts(Shown):
    """How many jobs there are: kind (`status`, `project`, …) → name → jobs."""

    counts: dict[str, dict[str, int]]


class Refusal(Shown):
    """A problem (RFC 9457), as it would stand in a reply of its own."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str
    title: str
    status: int
    detail: str
    debug_id: str


class ItemOutcome(Shown):
    """What became of one of many: the job, or the problem in its place."""

    status: int
    job: ShownJob | None = None
    problem: Refusal | None = None


class Outcomes(Shown):
    """What became of each, in the order in which they were asked for."""

    results: tuple[ItemOutcome, ...]


class ShownWorkflow(Shown):
    """A workflow: its phases in order."""

    id: str
    project_id: str
    user_id: str
    priority: Priority
    status: OpenStatus
    phases: tuple[ShownJob, ...]


class ShownFile(Shown):
    """One file of a result. `type` is one of few that are safe to show; what is not known is octets."""

    path: str
    size: int
    type: str


class ShownFiles(Shown):
    """What a result holds, by path; `bytes` is the size of all of it unpacked."""

    job_id: str
    bytes: int
    files: tuple[ShownFile, ...]


class ShownStart(Shown):
    """A stage from which a job can be run again, or why it cannot."""

    stage: str
    title: str
    can_start: bool
    why_not: str = ""


class ShownStarts(Shown):
    """From where a job that has ended can be run again: its stages, in order."""

    job_id: str
    stages: tuple[ShownStart, ...]


class HistoryEntry(Shown):
    """One event of a job's history: what every event says. What this one says besides stands beside it under the names
    that the events have; of the jobs that it passed it tells how many."""

    model_config = ConfigDict(frozen=True, extra="allow")

    seq: int
    at: AwareDatetime
    event: Annotated[str, Field(description="as in the types of events: `queued`, `stage`, …; more may come")]
    job_id: str
    user_id: str
    project_id: str
    status: OpenStatus
    attempt: int


class Explanation(Shown):
    """Why a job waits, and what would let it run."""

    id: str
    status: OpenStatus
    message: str
    queue: QueuePart | None
    waiting_on: tuple[WaitingOn, ...]
    would_run: tuple[str, ...]
    may_wait_s: float | None = None  # for its first start, then it fails; pauses and what is away do not count


class QueueLine(Shown):
    """One job of the queue, as operators see it."""

    position: int
    job_id: str
    title: str | None = None
    user_id: str
    project_id: str
    tier: OpenTier
    priority: Priority
    pool: str
    pipeline: str
    workflow: str | None
    queued_at: AwareDatetime
    passed_by: int
    estimate_seconds: int | None
    waiting_on: tuple[WaitingOn, ...]
    labels: dict[str, str]


class ShownPause(Shown):
    """A scope in which nothing is started."""

    scope: str
    by: str
    reason: str
    since: AwareDatetime


class OwnPosition(Shown):
    """Where one of one's own jobs stands."""

    job_id: str
    position: int


class ShownQueue(Shown):
    """The queue: every job in order for operators, its length and one's own positions for users."""

    length: int
    cap: int
    paused: tuple[ShownPause, ...] = ()
    jobs: tuple[QueueLine, ...] | None = None
    own: tuple[OwnPosition, ...] = ()


class Waits(Shown):
    """How long the jobs of one priority and tier waited for their first start, in seconds."""

    priority: Priority
    tier: OpenTier
    count: int
    mean: float
    p50: float
    p90: float
    p99: float


class HitRate(Shown):
    """How often the real wait lay inside the interval that was shown; `error` is the mean absolute error in seconds.
    Of jobs of a tier, or of those that were shown it in a class."""

    tier: OpenTier | None
    priority: Priority | None = None
    count: int
    hit_rate: float
    error: float


class Refused(Shown):
    """How many submissions were refused in the hour that began at `hour`, for this reason (the problem's slug)."""

    hour: AwareDatetime
    reason: str
    count: int


class Analytics(Shown):
    """Waits by priority and tier, and what the forecasts were worth, over the starts since `since`; what was refused
    in the last 24 hours. `forecast` begins with that of all and goes on by tier; `by_class` has one for each class."""

    since: AwareDatetime | None
    waits: tuple[Waits, ...]
    forecast: tuple[HitRate, ...]
    by_class: tuple[HitRate, ...] = ()
    refused: tuple[Refused, ...] = ()


class StatsLine(Shown):
    """One line of a chart: a number for each moment, null where nobody knows it. `queued` and `running` are how many
    there were at the end of the step; `wait_p50` and `wait_p90` are seconds; all else is how many came in the step.
    `of`: of which pool, provider or reason."""

    name: Annotated[str, Field(description="more may come")]
    of: str | None = None
    values: tuple[float | None, ...]


class ShownStats(Shown):
    """Figures over time, in steps that begin at `times`. `unknown`: what cannot be told, and why."""

    since: AwareDatetime
    until: AwareDatetime
    step_s: int
    times: tuple[AwareDatetime, ...]
    lines: tuple[StatsLine, ...]
    unknown: tuple[str, ...]


class WorkerAttempt(Shown):
    """What a worker took up, and what became of it: a status, or why it was given back; null while it runs."""

    job_id: str
    attempt: int
    worker: str
    pool: str
    began_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    end: str | None = None


class ShownHolder(Shown):
    """Who has a slot. Without a job it was asked for outside any, by `user_id`."""

    lease: str
    user_id: str | None = None
    job_id: str | None
    title: str | None = None
    attempt: int | None
    worker: str | None
    since: AwareDatetime | None
    expires_at: AwareDatetime


class ShownLease(Shown):
    """A slot that is held outside any job, for `ttl_s` from when it was asked for at least."""

    group: str
    lease: str
    ttl_s: float
    expires_at: AwareDatetime


class ShownGroup(Shown):
    """A group's slots."""

    group: str
    limit: int
    active: int
    waiting: int
    shut_until: AwareDatetime | None = None
    holders: tuple[ShownHolder, ...]


class ShownWorker(Shown):
    """A worker that is heard of."""

    worker: str
    pool: str
    slots: int
    jobs: tuple[str, ...]
    heard_at: AwareDatetime
    draining: bool


class StreamTicket(Shown):
    """Opens one stream, once, as `?ticket=`."""

    ticket: str
    expires_at: AwareDatetime


class AuditEntry(Shown):
    """What somebody did to others' jobs or to the queue, and why."""

    seq: int
    at: AwareDatetime
    act: str
    by: str
    reason: str
    about: str
    details: dict[str, Any]


class ScopeChange(Shown):
    """What came of a pause or a resume. Where nothing was to change, nothing was written. `paused`: all that is now."""

    scope: str
    changed: bool
    message: str
    paused: tuple[ShownPause, ...]


class ShownPolicy(Shown):
    """The policy in force: since when, by whom and why, or null where it is the file that the services started with.
    `version` is a digest of the numbers that a reload may change, so two replicas with the same numbers tell the same
    one; in quotes it is the ETag. `changed` names what this request has changed, number by number."""

    policy: dict[str, Any]
    version: str
    since: AwareDatetime | None = None
    by: str | None = None
    reason: str = ""
    changed: tuple[str, ...] = ()


class LeaseRelease(Shown):
    """What came of a forced release: a lease outside jobs ends with it, a running job's slot when it is given back."""

    group: str
    lease: str
    job_id: str | None
    attempt: int | None
    message: str


class ShownPipeline(Shown):
    """A pipeline that jobs can be submitted for in its pool. `input_schema` is the JSON Schema of a job's input, where
    its author has given one. Without a `pool` it is built in, and no worker has announced it yet."""

    name: str
    pool: str | None = None
    version: str | None = None
    stages: tuple[StageTitle, ...] = ()
    input_schema: dict[str, Any] | None = None


class RemovedPipeline(Shown):
    """A pipeline for which no job is taken in any more."""

    name: str
    pool: str
    message: str


class TokenRevocation(Shown):
    """A token that lets nobody in. `until`: no token can be good for longer; `changed`: an act was written."""

    jti: str
    until: AwareDatetime
    changed: bool
    message: str


class Erasure(Shown):
    """What was erased of a user. As long as jobs are `unfinished`, their workers may still write: erase again then."""

    user_id: str
    jobs: int
    cancelled: tuple[str, ...]
    unfinished: tuple[str, ...]
    message: str


def shown_event(data: JobData) -> dict[str, Any]:
    """An event as the job's owner may see it: of other users' jobs that it passed, only how many there were, and
    nothing of how the scheduler keeps its log."""
    hidden = {"alone"} if isinstance(data, JobDispatched) else None
    shown = {"event": data.EVENT.value, **data.model_dump(mode="json", by_alias=True, exclude=hidden)}
    return shown | {"passed": len(data.passed)} if isinstance(data, JobQueued) else shown

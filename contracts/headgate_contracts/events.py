"""The data of every event, as other teams read it.

Owns names, types and bounds. Refuses rules about order: who may write what, and when, is `lifecycle`.
Writers are exact, readers are tolerant: a field that a reader does not know is ignored.
"""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from headgate_contracts.questions import MOST_ANSWERS, KeptAnswer, Question
from headgate_contracts.records import (
    Amount,
    Count,
    Digest,
    GroupName,
    HeldGroups,
    LabelKey,
    LabelValue,
    Note,
    OpenStatus,
    OpenTier,
    PolicyKey,
    Rank,
    Record,
    Scope,
    StageTitle,
    TokenId,
    Url,
    Who,
)
from headgate_contracts.subjects import JobSubject, OpsSubject, SchedSubject
from headgate_contracts.tokens import JobId, Token
from headgate_contracts.vocabulary import (
    BUILD_STAGES,
    MOST_MODELS,
    MOST_STAGES,
    ActName,
    ChangeReason,
    EventName,
    Fault,
    GivenBackReason,
    Priority,
    QueuedWhy,
)

Traceparent = Annotated[str, StringConstraints(pattern=r"^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")]
Tracestate = Annotated[str, StringConstraints(min_length=1, max_length=512)]
KeptAnswers = Annotated[tuple[KeptAnswer, ...], Field(max_length=MOST_ANSWERS)]
ModelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:/@+-]{1,100}$")]
StageNames = Annotated[tuple[Token, ...], Field(max_length=MOST_STAGES)]
StageTitles = Annotated[tuple[StageTitle, ...], Field(max_length=MOST_STAGES)]


class ModelUsage(Record):
    """What calls to one model of a provider came to: no word of them, only their numbers.

    `cached_tokens` are those of `input_tokens` that the provider still had. What it did not count is 0. `took_ms` is
    how long all calls took together.
    """

    provider: Token
    model: ModelName
    calls: Count
    input_tokens: Amount = 0
    output_tokens: Amount = 0
    cached_tokens: Amount = 0
    took_ms: Amount = 0


ModelUsages = Annotated[tuple[ModelUsage, ...], Field(max_length=MOST_MODELS)]


class Group(Record):
    """A named group that a job needs a slot of, and the limit to set where none is set."""

    name: GroupName
    limit: Count | None = None


class Estimate(Record):
    """The forecast that was shown when the job entered the queue: seconds until its start. None is of `high` yet."""

    estimate_seconds: Amount
    lower_bound: Amount
    upper_bound: Amount
    confidence: Literal["high", "medium", "low"]


class Submission(Record):
    """What was asked for. It stands in the first event of a job and never changes.

    `project_name` is what the client called its project, where that is no token and `project_id` says another thing.
    `shared`: the project is that of all who share the name, and not its user's own.
    `phases` is how many the workflow has. `input_bytes` is the size of its input, 0 where nobody has said it.
    A job submitted again (`retry_of`) begins with the `finished_stages` of the first iteration that the other one left
    in its `checkpoint`; `retry_from` is the stage from which somebody wanted it to run again.
    `traceparent` and `tracestate` (W3C) are those of the request: the job's trace is its request's.
    """

    tier: OpenTier
    priority: Priority = Priority.NORMAL
    project_name: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    shared: bool = False
    pool: Token = "default"
    pipeline: Token = "build"
    groups: Annotated[tuple[Group, ...], Field(max_length=16)] = ()
    workflow: Token | None = None
    phase: Count | None = None
    phases: Count | None = None
    submitted_at: AwareDatetime
    run_at: AwareDatetime | None = None
    queue_ttl_s: Count | None = None
    run_timeout_s: Count | None = None
    notify_url: Url | None = None
    labels: Mapping[LabelKey, LabelValue] = Field(default_factory=dict[str, str], max_length=16)
    input_digest: Digest
    input_bytes: Amount = 0
    retry_of: JobId | None = None
    retry_from: Token | None = None
    finished_stages: StageNames = ()
    checkpoint: Token | None = None
    traceparent: Traceparent | None = None
    tracestate: Tracestate | None = None


class JobData(Record):
    """What every event of a job says. `status` and `attempt` are those after the event."""

    EVENT: ClassVar[EventName]

    job_id: JobId
    user_id: Token
    project_id: Token
    status: OpenStatus
    attempt: Amount

    @classmethod
    def type_name(cls) -> str:
        return f"dev.headgate.job.{cls.EVENT.value}.v1"

    def about(self) -> str:
        return self.job_id

    def route(self) -> JobSubject:
        return JobSubject(self.job_id, self.user_id, self.project_id, self.EVENT)


class AttemptData(JobData):
    """What every event may say by which an attempt goes on or ends.

    `usage`: what the attempt has asked of models since its event before this one, so each call stands in the log once.
    It is of the stage that the job was in until then. Where its worker was lost, or its slot forced free, what it asked
    after its last event is in none.
    """

    usage: ModelUsages = ()


class JobQueued(JobData):
    """The job entered the queue, at this place.

    `quota_day` is the day of which it has a place, `quota_cap` how many that day had when this was decided.
    """

    EVENT = EventName.QUEUED

    why: QueuedWhy
    arrival: Rank
    place: Rank
    passed: Annotated[tuple[JobId, ...], Field(max_length=100)] = ()
    position_original: Count
    quota_day: date | None = None
    quota_cap: Count | None = None
    estimate: Estimate | None = None
    submission: Submission | None = None


class JobScheduled(JobData):
    """The job was accepted for a later day: it enters the queue at `scheduled_for`.

    `quota_day` is the day of which it has a place, `quota_cap` how many that day had when this was decided.
    """

    EVENT = EventName.SCHEDULED

    scheduled_for: AwareDatetime
    quota_day: date | None = None
    quota_cap: Count | None = None
    submission: Submission | None = None


class JobWaiting(JobData):
    """The job is a later phase of a workflow and waits for the one before it."""

    EVENT = EventName.WAITING

    workflow: Token
    phase: Annotated[Count, Field(ge=2)]
    submission: Submission | None = None


class Tried(Record):
    """How often a stage has failed by what its author takes for passing: `tries` of at most `most`, the last one with
    these words, and from when on it is run again."""

    stage: Token
    iteration: Count
    tries: Count
    most: Count
    summary: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    detail: Annotated[str, StringConstraints(max_length=4096)] = ""
    again_at: AwareDatetime


class EarlierWork(Record):
    """What an attempt goes on from: how far the job has come, and how long earlier attempts had it.

    `cycle_over`: the next stage opens another iteration. `granted`: by confirmations, beside what its tier gives.
    `tried`: how often the stage that it goes on with has failed already. `answers`: what its user has answered.
    """

    iteration: Amount = 0
    cycle_over: bool = True
    finished_stages: StageNames = ()
    checkpoint: Token | None = None
    granted: Amount = 0
    worked_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    tried: Tried | None = None
    answers: KeptAnswers = ()


class LoneStart(Record):
    """What a link would have said of a start that was written without one.

    It stands right behind record `over`: all up to there was counted, and nothing else. `link` is the last link of the
    chain up to there, of this `leader` itself. `limits` are those of the start's groups, in their order, `slots` those
    of its pool.
    """

    leader: Token
    link: Rank
    over: Rank
    limits: Annotated[tuple[Count, ...], Field(max_length=32)]
    slots: Amount


class JobDispatched(JobData):
    """A worker of the pool may claim the job. It holds a slot in each of these groups from here on.

    It says all that a worker needs, so that none has to read the job before it claims it: what was asked for
    (`pipeline`, `shared`, `input_digest`), its trace, what there is already (`earlier`, null where there is nothing),
    and whether somebody has asked for its end. `starved` marks a start that its class was owed: nothing of it had been
    started for long. `tier` is its user's now, which a newer submission of theirs may have changed. `alone` is null
    where a link of the scheduler's chain names it.
    """

    EVENT = EventName.DISPATCHED

    pool: Token
    groups: HeldGroups
    deadline: AwareDatetime | None = None
    starved: bool = False
    tier: OpenTier
    pipeline: Token
    shared: bool = False
    input_digest: Digest
    traceparent: Traceparent | None = None
    tracestate: Tracestate | None = None
    earlier: EarlierWork | None = None
    cancel_requested_by: Who | None = None
    alone: LoneStart | None = None

    def route(self) -> JobSubject:
        return JobSubject(self.job_id, self.user_id, self.project_id, self.EVENT, self.pool)


class JobStarted(JobData):
    """This worker claimed the attempt.

    `stages` are those of the job's pipeline, in order; none where the worker has no such pipeline, and those of `build`
    where nothing is said. A new iteration begins again at `again_at`, or at the first of them. What follows in the log
    can be read by this alone.
    """

    EVENT = EventName.STARTED

    worker: Token
    stages: StageTitles = tuple(StageTitle(name=name, title=name.capitalize()) for name in BUILD_STAGES)
    again_at: Token | None = None


class JobStage(AttemptData):
    """A stage began, so the one before it is finished; `checkpoint` holds its work.

    `restored` marks a stage that an earlier attempt finished: the job passes through it without running it again. The
    first of an attempt says again what all its `stages` are, for readers of one event at a time.
    """

    EVENT = EventName.STAGE

    stage: Token
    stages: StageTitles | None = None
    iteration: Count
    checkpoint: Token | None = None
    restored: bool = False


class JobTryFailed(AttemptData):
    """The stage failed by what its author takes for passing, and is run again: in this attempt, or in a later one where
    `given_back` follows."""

    EVENT = EventName.TRY_FAILED

    tried: Tried


class JobAwaitingConfirmation(AttemptData):
    """The job gave its slots back and asks its user: whether to go on, as the iterations granted so far are used up, or
    what a stage wants to know. That stage begins again once it is answered.

    `next_batch`: how many iterations a yes grants. Without a `question` it is "Continue?", as an older writer asked it.
    """

    EVENT = EventName.AWAITING_CONFIRMATION

    question: Question | None = None
    iterations_used: Count
    next_batch: Count | None = None
    expires_at: AwareDatetime
    checkpoint: Token | None = None


class JobConfirmationReminder(JobData):
    """The question is still open."""

    EVENT = EventName.CONFIRMATION_REMINDER

    hours_left: Amount


class JobConfirmed(JobData):
    """The user granted another batch of iterations: the job is back at its old place."""

    EVENT = EventName.CONFIRMED

    by: Who
    batch: Count


class JobAnswered(JobData):
    """The user answered this question of a stage: the job is back at its old place. What was answered is content, kept
    under the name `answer` where the job's input is."""

    EVENT = EventName.ANSWERED

    question: Token
    answer: Token
    by: Who


class JobGivenBack(AttemptData):
    """The attempt is over without an end: the job is back at its old place with its finished stages.

    `provider` is the one it waits for, where that is the reason. Where it is to be tried again later (`retry`), it is
    scheduled for `until` and enters the queue then.
    """

    EVENT = EventName.GIVEN_BACK

    reason: GivenBackReason
    provider: Token | None = None
    until: AwareDatetime | None = None
    finished_stages: StageNames = ()
    checkpoint: Token | None = None


class JobCancelRequested(JobData):
    """Somebody asked for the end of a running job; its worker will write `cancelled`."""

    EVENT = EventName.CANCEL_REQUESTED

    by: Who
    reason: Note = ""


class JobCancelled(AttemptData):
    """The job ended because somebody asked for it, or because an earlier phase failed."""

    EVENT = EventName.CANCELLED

    by: Who
    reason: Note = ""


class _PlaceChange(JobData):
    from_: Annotated[Priority, Field(alias="from")]
    to: Priority
    place: Rank | None = None
    by: Who
    reason: ChangeReason
    note: Note = ""


class JobReprioritized(_PlaceChange):
    """The job changed its class. `place` is null where it is not in the queue yet."""

    EVENT = EventName.REPRIORITIZED


class JobMoved(_PlaceChange):
    """The job changed its place."""

    EVENT = EventName.MOVED


class JobReady(AttemptData):
    """The job ended well."""

    EVENT = EventName.READY

    result: Token | None = None
    duration_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    iterations: Count


class JobError(Record):
    """Why a job failed."""

    summary: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    detail: Annotated[str, StringConstraints(max_length=4096)]
    debug_id: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class JobFailed(JobError, AttemptData):
    """The job ended badly. `summary` and `detail` are fit for its user's eyes."""

    EVENT = EventName.FAILED

    detail: Annotated[str, StringConstraints(max_length=4096)] = ""
    fault: Fault


class ActData(Record):
    """What an operator did, and who it was."""

    ACT: ClassVar[ActName]

    by: Who
    reason: Note = ""

    @classmethod
    def type_name(cls) -> str:
        return f"dev.headgate.ops.{cls.ACT.value}.v1"

    def route(self) -> OpsSubject:
        return OpsSubject(self.ACT)


class _ScopeAct(ActData):
    scope: Scope

    def about(self) -> str:
        return self.scope


class QueuePaused(_ScopeAct):
    """Nothing in this scope is started until it is resumed."""

    ACT = ActName.PAUSED


class QueueResumed(_ScopeAct):
    """The scope may start again."""

    ACT = ActName.RESUMED


class _GroupAct(ActData):
    group: GroupName

    def about(self) -> str:
        return self.group


class LimitSet(_GroupAct):
    """The group has this many slots from here on."""

    ACT = ActName.LIMIT_SET

    limit: Count


class LimitUnset(_GroupAct):
    """What an operator has set is no longer so: the group has the slots that its jobs bring, or that policy says."""

    ACT = ActName.LIMIT_UNSET


class LeaseReleased(_GroupAct):
    """This lease was forced free."""

    ACT = ActName.LEASE_RELEASED

    lease: Annotated[str, StringConstraints(min_length=1, max_length=160)]


class GroupLeased(_GroupAct):
    """Slots of this group are held outside jobs, for a day from here. `limit`: as many as were asked for, where nobody
    has set it."""

    ACT = ActName.GROUP_LEASED

    limit: Count | None = None


class ContentErased(ActData):
    """What this user's jobs were made from, made and said is gone: inputs, workspaces, results, logs."""

    ACT = ActName.CONTENT_ERASED

    user_id: Token

    def about(self) -> str:
        return self.user_id


class TokenRevoked(ActData):
    """The token with this `jti` lets nobody in any more. `until`: no token can be good for longer than that."""

    ACT = ActName.TOKEN_REVOKED

    jti: TokenId
    until: AwareDatetime

    def about(self) -> str:
        return self.jti


class PipelineRemoved(ActData):
    """No job of this pipeline is taken in for the pool, until a worker that has it announces it again."""

    ACT = ActName.PIPELINE_REMOVED

    pipeline: Token
    pool: Token

    def about(self) -> str:
        return self.pipeline


class PolicyReloaded(ActData):
    """These sections of the policy hold from here on, checked, each with all of its numbers. `changed`: those numbers
    that were others before, by the path of their key."""

    ACT = ActName.POLICY_RELOADED

    sections: Annotated[Mapping[Token, Mapping[str, Any]], Field(max_length=64)]
    changed: Annotated[tuple[PolicyKey, ...], Field(max_length=1000)] = ()

    def about(self) -> str:
        return "policy"


class SchedulerCommitted(Record):
    """One link of the scheduler's chain: what it wrote in this batch, and the limits it counted with.

    One that names no job begins what its leader writes: from here on nothing is stored that another leader has sent.
    """

    shard: Token
    leader: Token
    jobs: Annotated[tuple[JobId, ...], Field(max_length=50)]
    limits: Mapping[GroupName, Count] = Field(default_factory=dict[str, int])
    slots: Mapping[Token, Amount] = Field(default_factory=dict[str, int])

    @classmethod
    def type_name(cls) -> str:
        return "dev.headgate.sched.committed.v1"

    def about(self) -> str:
        return self.shard

    def route(self) -> SchedSubject:
        return SchedSubject(self.shard)


JOB_DATA: tuple[type[JobData], ...] = (
    JobQueued,
    JobScheduled,
    JobWaiting,
    JobDispatched,
    JobStarted,
    JobStage,
    JobTryFailed,
    JobAwaitingConfirmation,
    JobConfirmationReminder,
    JobConfirmed,
    JobAnswered,
    JobGivenBack,
    JobCancelRequested,
    JobCancelled,
    JobReprioritized,
    JobMoved,
    JobReady,
    JobFailed,
)
Act = (
    QueuePaused
    | QueueResumed
    | LimitSet
    | LimitUnset
    | LeaseReleased
    | GroupLeased
    | ContentErased
    | TokenRevoked
    | PipelineRemoved
    | PolicyReloaded
)
ACT_DATA: tuple[type[Act], ...] = (
    QueuePaused,
    QueueResumed,
    LimitSet,
    LimitUnset,
    LeaseReleased,
    GroupLeased,
    ContentErased,
    TokenRevoked,
    PipelineRemoved,
    PolicyReloaded,
)
Data = JobData | Act | SchedulerCommitted

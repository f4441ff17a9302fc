"""What the events of one job add up to.

Owns the folded job as a value. How it changes is `lifecycle.advance`; nobody else makes one.
"""

from datetime import date

from pydantic import AwareDatetime

from headgate_contracts.events import Estimate, JobError, StageTitle, Submission, Tried
from headgate_contracts.holder import Holder
from headgate_contracts.questions import KeptAnswer, Question
from headgate_contracts.records import OpenTier, Record
from headgate_contracts.tokens import JobId, Token, project_scope
from headgate_contracts.usage import StageUsage
from headgate_contracts.vocabulary import Priority, Status, Tier


class Standing(Record):
    """The job's place in the queue: given once, kept while it runs, so that it can return to it."""

    arrival: int
    place: int
    position_original: int
    estimate: Estimate | None = None
    entered_at: AwareDatetime


class Job(Record):
    """A job, folded. `sequence` is its n-th event, `seq` that event's sequence in the log and
    `first_seq` that of its first event (0 outside a log). `aged_at`: since when it has waited in its class, where it
    came back to the queue or was given another class. `users_tier`: that of its user when it was last started.
    `stages` are those of its pipeline, known since a worker first claimed it; `stage` is the one that it is in, or
    has ended in; `tried`: how often that, or the one it goes on with, has failed and is run again. `question` is
    open until `expires_at`; `answers` are those to the questions of stages before it. `worked_s`: how long workers
    had it in earlier attempts, by the log's clock; this one has had it since `claimed_at`. `model_usage` is what
    its stages have asked of models, as far as events tell: what the stage that runs has asked comes with the event
    after it.
    """

    id: JobId
    user_id: Token
    project_id: Token
    submission: Submission

    status: Status
    priority: Priority
    sequence: int
    seq: int = 0
    first_seq: int = 0
    created_at: AwareDatetime
    updated_at: AwareDatetime

    standing: Standing | None = None
    quota_day: date | None = None
    scheduled_for: AwareDatetime | None = None
    aged_at: AwareDatetime | None = None

    attempt: int = 0
    groups: tuple[str, ...] = ()
    users_tier: OpenTier | None = None
    dispatched_at: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    deadline: AwareDatetime | None = None
    worker: str | None = None
    claimed_at: AwareDatetime | None = None
    worked_s: float = 0
    provider: str | None = None
    lost: int = 0

    stages: tuple[StageTitle, ...] = ()
    again_at: str | None = None
    stage: str | None = None
    iteration: int = 0
    tried: Tried | None = None
    cycle_over: bool = True
    finished_stages: tuple[str, ...] = ()
    checkpoint: str | None = None
    confirmations: int = 0
    granted: int = 0
    question: Question | None = None
    answers: tuple[KeptAnswer, ...] = ()
    expires_at: AwareDatetime | None = None
    reminders: int = 0

    model_usage: tuple[StageUsage, ...] = ()

    cancel_requested_by: str | None = None
    result: str | None = None
    duration_s: float | None = None
    failure: JobError | None = None

    @property
    def tier(self) -> Tier:
        """Whose iterations and cap the job has: that of its user's newest submission when it was last started."""
        return self.users_tier or self.submission.tier

    @property
    def stage_names(self) -> tuple[str, ...]:
        return tuple(stage.name for stage in self.stages)

    @property
    def project_scope(self) -> str:
        """The project whose slots it counts for: everybody's of that name, or its user's own."""
        return project_scope(self.user_id, self.project_id, shared=self.submission.shared)

    @property
    def holder(self) -> str | None:
        """The name under which the job holds its slots, while it does."""
        return str(Holder(self.id, self.attempt)) if self.status.is_running else None

"""The words of the contracts: every closed set of names that an event, a job or a rule may use.

Owns the spelling. Refuses numbers that an operator may change: those are policy.
"""

from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """Where a job stands. The stages of `build` are statuses of their own; a job whose pipeline names its stages
    otherwise is `running` in all of them."""

    QUEUED = "queued"
    SCHEDULED = "scheduled"
    WAITING = "waiting"
    STARTING = "starting"
    SCAFFOLD = "scaffold"
    CODE = "code"
    DEPS = "deps"
    CHECKS = "checks"
    RUNNING = "running"
    AWAITING_CONFIRMATION = "awaiting_confirmation"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_end(self) -> bool:
        return self in ENDS

    @property
    def is_running(self) -> bool:
        """A worker has it, or is about to claim it: it holds its slots."""
        return self in RUNNING


BUILD_STAGES: Final = (Status.SCAFFOLD, Status.CODE, Status.DEPS, Status.CHECKS)
MAX_INPUT_BYTES: Final = 64 * 1024  # of a job, as JSON
MOST_STAGES: Final = 20  # of one pipeline
MOST_MODELS: Final = 8  # that one event tells the usage of; what else there was is one of them, by the name OTHER
OTHER: Final = "other"
ENDS = frozenset({Status.READY, Status.FAILED, Status.CANCELLED})
RUNNING = frozenset({Status.STARTING, *BUILD_STAGES, Status.RUNNING})
UNSTARTED = frozenset({Status.SCHEDULED, Status.WAITING, Status.QUEUED})


class EventName(StrEnum):
    """What can happen to a job: the token of its subject, and the middle of its CloudEvents type."""

    QUEUED = "queued"
    SCHEDULED = "scheduled"
    WAITING = "waiting"
    DISPATCHED = "dispatched"
    STARTED = "started"
    STAGE = "stage"
    TRY_FAILED = "try_failed"
    AWAITING_CONFIRMATION = "awaiting_confirmation"
    CONFIRMATION_REMINDER = "confirmation_reminder"
    CONFIRMED = "confirmed"
    ANSWERED = "answered"
    GIVEN_BACK = "given_back"
    CANCEL_REQUESTED = "cancel_requested"
    CANCELLED = "cancelled"
    REPRIORITIZED = "reprioritized"
    MOVED = "moved"
    READY = "ready"
    FAILED = "failed"


class ActName(StrEnum):
    """What an operator can do to the queue as a whole."""

    PAUSED = "paused"
    RESUMED = "resumed"
    LIMIT_SET = "limit_set"
    LIMIT_UNSET = "limit_unset"
    LEASE_RELEASED = "lease_released"
    GROUP_LEASED = "group_leased"
    CONTENT_ERASED = "content_erased"
    TOKEN_REVOKED = "token_revoked"
    PIPELINE_REMOVED = "pipeline_removed"
    POLICY_RELOADED = "policy_reloaded"


class Writer(StrEnum):
    """The services that write about jobs."""

    ADMISSION = "admission"
    SCHEDULER = "scheduler"
    WORKER = "worker"


class Tier(StrEnum):
    """What a user has bought, lowest first."""

    BOOTSTRAPPER = "bootstrapper"
    PARTNER = "partner"
    CTO_SCALE = "cto_scale"


class Priority(StrEnum):
    """The classes of the queue. A lower number always goes first."""

    URGENT = "urgent"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    BACKGROUND = "background"

    @property
    def class_number(self) -> int:
        return CLASS_NUMBERS[self]


CLASS_NUMBERS = {
    Priority.URGENT: 10,
    Priority.HIGH: 20,
    Priority.NORMAL: 50,
    Priority.LOW: 70,
    Priority.BACKGROUND: 90,
}
PRIORITY_OF_CLASS = {number: priority for priority, number in CLASS_NUMBERS.items()}


class QueuedWhy(StrEnum):
    """Why a job entered the queue."""

    SUBMITTED = "submitted"
    RELEASED = "released"
    PHASE_READY = "phase_ready"


class GivenBackReason(StrEnum):
    """Why a running job returned to the queue. Only `lost` counts towards the limit of lost workers."""

    LOST = "lost"
    DRAINED = "drained"
    PROVIDER = "provider"
    OUTAGE = "outage"
    FORCED = "forced"
    RETRY = "retry"


class QuestionKind(StrEnum):
    """What a job asks its user: whether to go on after a batch of iterations, or what a stage wants to know."""

    CONTINUE = "continue"
    ASK = "ask"


class ChangeReason(StrEnum):
    """Why a job's priority or place changed."""

    OPERATOR = "operator"
    USER = "user"
    AGED = "aged"
    SPACED = "spaced"


class Fault(StrEnum):
    """Whose fault a failure was. Only a `system` fault gives the day's place back."""

    JOB = "job"
    SYSTEM = "system"
    LIMIT = "limit"
    TIMEOUT = "timeout"

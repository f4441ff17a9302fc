"""What may come of what admission was asked for. Values only: `problems` has the words for refusals."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate_contracts import Job
from libs.capacity.answers import Outlook
from services.admission.limits import NotAllowed


@dataclass(frozen=True, slots=True)
class Accepted:
    """It is in the log: the job, or each phase of a workflow in order. `again`: it was there before. `titles`: what was
    written of them just now; null: it has to be looked up."""

    jobs: tuple[Job, ...]
    again: bool = False
    titles: Mapping[str, str] | None = field(default=None, compare=False)

    @property
    def job(self) -> Job:
        return self.jobs[0]


@dataclass(frozen=True, slots=True)
class Previewed:
    """What would have been accepted, and what would hold the first of the jobs back. Nothing was kept of it."""

    jobs: tuple[Job, ...]
    outlook: Outlook
    used_today: int


# ── why nothing was taken in ──────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The key stands for another request."""

    job_id: str


@dataclass(frozen=True, slots=True)
class SystemBusy:
    """The queue is full."""

    minutes: int


@dataclass(frozen=True, slots=True)
class TooOften:
    """The user submits faster than one user may."""

    per_minute: int
    bytes_per_minute: int
    retry_ms: int


@dataclass(frozen=True, slots=True)
class OverShare:
    """The user holds as many places of the queue as one user may."""

    held: int


@dataclass(frozen=True, slots=True)
class OverBytes:
    """The user holds `held` bytes of inputs and may hold `most`. `retry_ms`: when the first of them goes, if known."""

    held: int
    most: int
    retry_ms: int | None


@dataclass(frozen=True, slots=True)
class NoDayLeft:
    """Every day up to the horizon is taken; at midnight there is one more."""

    last_day: int
    retry_s: int


NotTaken = KeyReused | SystemBusy | TooOften | OverShare | OverBytes | NoDayLeft
SubmitOutcome = Accepted | NotAllowed | NotTaken
PreviewOutcome = Accepted | Previewed | NotAllowed | NotTaken


@dataclass(frozen=True, slots=True)
class NotOver:
    """Only what failed or was cancelled can be submitted again; from a named stage, what has ended."""

    job: Job
    with_stage: bool = False


@dataclass(frozen=True, slots=True)
class InputGone:
    """What the job was made from is no longer kept."""

    job: Job


@dataclass(frozen=True, slots=True)
class NoStart:
    """The job cannot be run again from there."""

    stage: str
    why: str
    possible: tuple[str, ...]


NotRetried = NotOver | InputGone | NoStart
RetryOutcome = SubmitOutcome | NotRetried


# ── why nothing was changed ───────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Ended:
    """The job has ended already."""

    job: Job


@dataclass(frozen=True, slots=True)
class NotAsked:
    """The job does not wait for an answer."""

    job: Job


@dataclass(frozen=True, slots=True)
class Underway:
    """The job has left the queue: its class and place mean nothing any more."""

    job: Job


@dataclass(frozen=True, slots=True)
class Changed:
    """The job is not as the client last saw it."""

    job: Job


@dataclass(frozen=True, slots=True)
class NeighbourGone:
    """Whom the job was to stand next to is not in the queue."""

    job_id: str


@dataclass(frozen=True, slots=True)
class NoRoomBetween:
    """The two neighbours stand on consecutive numbers until the scheduler has spread them."""


@dataclass(frozen=True, slots=True)
class TooManyChanges:
    """The user changes jobs faster than one user may."""

    per_minute: int
    retry_ms: int


NotChanged = Ended | NotAsked | Underway | Changed | NeighbourGone | NoRoomBetween | TooManyChanges

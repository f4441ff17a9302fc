"""The subjects of the log: built here, parsed here, and nowhere else.

    headgate.jobs.v1.<job>.<user>.<project>.<event>            what happened to a job
    headgate.jobs.v1.<job>.<user>.<project>.dispatched.<pool>  the pool as one more token: workers filter by it
    headgate.sched.v1.<shard>                                  the scheduler's chain
    headgate.ops.v1.<act>                                      what operators did

The job comes first, so that a reader who knows a job's id can name its filter.
"""

from dataclasses import dataclass
from typing import TypeVar

from headgate_contracts.errors import InvalidToken
from headgate_contracts.tokens import check_token
from headgate_contracts.vocabulary import ActName, EventName

JOBS_PREFIX = "headgate.jobs.v1"
SCHED_PREFIX = "headgate.sched.v1"
OPS_PREFIX = "headgate.ops.v1"
LOG_SUBJECTS = (f"{JOBS_PREFIX}.>", f"{SCHED_PREFIX}.>", f"{OPS_PREFIX}.>")


@dataclass(frozen=True, slots=True)
class JobSubject:
    """Where an event of a job is published."""

    job_id: str
    user_id: str
    project_id: str
    event: EventName
    pool: str | None = None

    def __str__(self) -> str:
        tokens = (
            check_token("job_id", self.job_id),
            check_token("user_id", self.user_id),
            check_token("project_id", self.project_id),
            self.event.value,
        )
        base = f"{JOBS_PREFIX}.{'.'.join(tokens)}"
        if (self.event is EventName.DISPATCHED) != (self.pool is not None):
            raise InvalidToken("pool", "a dispatched event has a pool in its subject, and no other has one")
        return base if self.pool is None else f"{base}.{check_token('pool', self.pool)}"


@dataclass(frozen=True, slots=True)
class SchedSubject:
    """The chain of one shard's scheduler."""

    shard: str

    def __str__(self) -> str:
        return f"{SCHED_PREFIX}.{check_token('shard', self.shard)}"


@dataclass(frozen=True, slots=True)
class OpsSubject:
    """Where an operator's act is published."""

    act: ActName

    def __str__(self) -> str:
        return f"{OPS_PREFIX}.{self.act.value}"


Subject = JobSubject | SchedSubject | OpsSubject


def parse_subject(subject: str) -> Subject:
    """Read a subject of the log back; a token that no contract of today knows is refused by name."""
    match subject.split("."):
        case ["headgate", "jobs", "v1", job, user, project, event, *pool] if len(pool) <= 1:
            parsed: Subject = JobSubject(job, user, project, _known("event", event, EventName), *pool)
        case ["headgate", "sched", "v1", shard]:
            parsed = SchedSubject(shard)
        case ["headgate", "ops", "v1", act]:
            parsed = OpsSubject(_known("act", act, ActName))
        case _:
            raise InvalidToken("subject", f"{subject!r} is no subject of the log")
    str(parsed)  # every token is checked where it is built
    return parsed


def job_and_user(subject: str) -> tuple[str, str] | None:
    """The job and the user that a subject of the log names, whatever happened and however new its word is; null where
    it is of no job. Nothing else is looked at: this is asked of every record, by who decides whether to read it."""
    match subject.split(".", 6):
        case ["headgate", "jobs", "v1", job_id, user_id, _, _]:
            return job_id, user_id
        case _:
            return None


def job_filter(job_id: str) -> str:
    """Every event of one job. The log's expectations use exactly this text and no other."""
    return f"{JOBS_PREFIX}.{check_token('job_id', job_id)}.>"


def consumer_filter(
    *,
    user_id: str | None = None,
    project_id: str | None = None,
    event: EventName | None = None,
    pool: str | None = None,
) -> str:
    """A filter for a consumer: what is not named matches anything. Only `dispatched` has a pool."""
    if pool is not None and event is not EventName.DISPATCHED:
        raise InvalidToken("pool", "only a dispatched event has a pool in its subject")
    tokens = [
        "*",
        "*" if user_id is None else check_token("user_id", user_id),
        "*" if project_id is None else check_token("project_id", project_id),
        ">" if event is None else event.value,
    ]
    if event is EventName.DISPATCHED:
        tokens.append("*" if pool is None else check_token("pool", pool))
    return f"{JOBS_PREFIX}.{'.'.join(tokens)}"


W = TypeVar("W", EventName, ActName)


def _known(field: str, token: str, words: type[W]) -> W:
    if token not in words.__members__.values():
        raise InvalidToken(field, f"{token!r} is not one of {', '.join(sorted(words))}")
    return words(token)

"""The bodies that clients of the HTTP API send. They are exact: an unknown field is an error that names it."""

import json
import re
from typing import Annotated, Any, Final, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    field_validator,
    model_validator,
)

from headgate_contracts.records import LabelKey, LabelValue, Note, TokenId, Url
from headgate_contracts.titles import MOST_TITLE
from headgate_contracts.tokens import JobId, Token
from headgate_contracts.vocabulary import MAX_INPUT_BYTES, Priority

# What others will read on a terminal or in a page: one line, and no control (C0, C1) in it.
ONE_LINE: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"
LABEL: Final = r"^[A-Za-z0-9_./-]{1,64}=[^\x00-\x1f\x7f-\x9f]{0,128}$"
DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
NO_MOMENT: Final = "write a moment and its time zone, as in 2030-01-31T06:00:00Z"
ForeignId = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=ONE_LINE)]
Reason = Annotated[Note, StringConstraints(pattern=ONE_LINE)]
ForeignScope = Annotated[
    str,
    StringConstraints(
        pattern=r"^(all|priority:(urgent|high|normal|low|background)"
        r"|(pool|workflow):[A-Za-z0-9_-]{1,64}|user:[^\x00-\x1f\x7f-\x9f]{1,256}|project:[^\x00-\x1f\x7f-\x9f]{1,513})$"
    ),
]


# The draft's key is a quoted string (RFC 8941, 3.3.3); most clients send it as it is.
QUOTED_KEY: Final = r'"((?:[ !#-\[\]-~]|\\["\\]){1,255})"'
PLAIN_KEY: Final = r"[!#-~](?:[!-~]{0,253}[!#-~])?"
KEY: Final = f"^(?:{QUOTED_KEY}|{PLAIN_KEY})$"
# A group, with users and projects as they sign in: `group:<project>:<name>`, `user:<user>`, `llm:openai`.
FOREIGN_GROUP: Final = (
    r"^(?:(?:user|project):[^\x00-\x1f\x7f-\x9f]+|group:[^\x00-\x1f\x7f-\x9f]+:[A-Za-z0-9_-]{1,64}"
    r"|[a-z]+(?::[A-Za-z0-9_-]{1,64}){0,3})$"
)
ULID: Final = r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
HELD_LEASE: Final = r"^[A-Za-z0-9_-]{1,64}(?::[0-9]{1,9})?$"  # a lease, or a running job's own slot: `<job>:<attempt>`


def _dated(value: object) -> object:
    """pydantic takes seconds for a moment too, `0.5` as well, though the schema says `date-time`."""
    if isinstance(value, int | float) or (isinstance(value, str) and not DATE.match(value)):
        raise ValueError(NO_MOMENT)
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_dated)]
Seconds = Annotated[int, Field(ge=1, lt=2**31)]
NotifyUrl = Annotated[
    Url, Field(description="called for questions, reminders and ends, signed. It stands in events: put no secret in it")
]
Title = Annotated[
    str,
    StringConstraints(max_length=MOST_TITLE, pattern=ONE_LINE, strip_whitespace=True),
    Field(description="what lists call it; without one the first line of the prompt. It is content: in no event"),
]
Labels = Annotated[dict[LabelKey, Annotated[LabelValue, StringConstraints(pattern=ONE_LINE)]], Field(max_length=16)]


class Asked(BaseModel):
    """A body that a client sends."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def bounded_input(value: dict[str, Any]) -> dict[str, Any]:
    """The same, where it is not too large."""
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > MAX_INPUT_BYTES:
        raise ValueError(f"{size} bytes as JSON, at most {MAX_INPUT_BYTES} are taken")
    return value


class JobOrder(Asked):
    """What a job, and each phase of a workflow, may ask for."""

    input: dict[str, Any]
    title: Title | None = None
    pipeline: Token = "build"
    pool: Token = "default"
    concurrency_group: Token | None = None
    concurrency_limit: Annotated[int, Field(ge=1, le=10_000)] | None = None
    run_timeout_s: Seconds | None = None

    @field_validator("input")
    @classmethod
    def _fits(cls, value: dict[str, Any]) -> dict[str, Any]:
        return bounded_input(value)


class SubmitJob(JobOrder):
    """What to run, for which project."""

    project_id: ForeignId
    priority: Priority = Priority.NORMAL
    queue_ttl_s: Seconds | None = None
    run_at: Moment | None = None
    notify_url: NotifyUrl | None = None
    labels: Labels = {}


class SubmitWorkflow(Asked):
    """Phases in order: each is queued when the one before it is ready. All of them are accepted, or none."""

    project_id: ForeignId
    phases: Annotated[tuple[JobOrder, ...], Field(min_length=1)]
    priority: Priority = Priority.NORMAL
    run_at: Moment | None = None
    notify_url: NotifyUrl | None = None
    labels: Labels = {}


class SubmitBatch(Asked):
    """Jobs that are taken or refused one by one."""

    jobs: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=100)]


class RetryJob(Asked):
    """Once more: with the work that its finished stages left or, with `from`, from a stage that ran, on the workspace
    that it began with. `input` takes the place of the first one's."""

    from_: Annotated[Token | None, Field(alias="from")] = None
    input: dict[str, Any] | None = None

    @field_validator("input")
    @classmethod
    def _fits(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        return value if value is None else bounded_input(value)


class CancelJob(Asked):
    """Why a job should end."""

    reason: Reason = ""


class AnswerQuestion(Asked):
    """The answer to what a job asks, by the question's id: one of its choices, what its schema wants, or a text."""

    question: Token
    answer: JsonValue


class CancelJobs(Asked):
    """Which of one's jobs should end: name one of project, workflow and label (`key=value`)."""

    project: ForeignId | None = None
    workflow: Token | None = None
    label: Annotated[str, StringConstraints(pattern=LABEL)] | None = None
    reason: Reason = ""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if sum(each is not None for each in (self.project, self.workflow, self.label)) != 1:
            raise ValueError("name exactly one of project, workflow and label")
        return self


class ChangePriority(Asked):
    """Another class for a job that has not started."""

    priority: Priority
    reason: Reason = ""


class ChangeScope(Asked):
    """What is to be paused or resumed, and why. Users and projects may be named by any id that they sign in with.
    `project:shop` is the shared project of that name, `project:ann:shop` is ann's own."""

    scope: ForeignScope
    reason: Reason = ""


class MoveJob(Asked):
    """Where a queued job should stand: right before or right after another."""

    job_id: JobId
    before: JobId | None = None
    after: JobId | None = None
    reason: Reason = ""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.before is None) is (self.after is None):
            raise ValueError("name exactly one of before and after")
        return self


class RevokeToken(Asked):
    """The token that is taken back, by its claim `jti`, and why."""

    jti: TokenId
    reason: Reason = ""


class ExtendLease(Asked):
    """For how long from now, in seconds; left out: as long as a lease may be. `held_until`: what was told last."""

    ttl_s: Annotated[int, Field(ge=1, le=86_400)] | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] | None = None
    held_until: Moment | None = None


class TakeLease(Asked):
    """A slot: under which name (a ULID), for how long, and for how long to wait for one. `limit`: how many slots the
    group has where nobody has set it."""

    lease: Annotated[str, StringConstraints(pattern=ULID)]
    ttl_s: Annotated[int, Field(ge=1, le=86_400)] | None = None
    wait_s: Annotated[int, Field(ge=0, le=60)] = 30
    limit: Annotated[int, Field(ge=1, le=10_000)] | None = None


class ReloadPolicy(Asked):
    """A policy file, as its TOML is in JSON. What it does not name has its default."""

    policy: dict[str, Any]
    reason: Reason = ""


class SetGroupLimit(Asked):
    """How many slots a group has from now on."""

    limit: Annotated[int, Field(ge=1, le=10_000)]
    reason: Reason = ""

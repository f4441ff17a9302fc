"""What a job asks its user: whether to go on, or what the author of a stage wants to know.

    awaiting_confirmation   the question, whole: who follows the log alone can show it
    confirmed               yes to "Continue?"
    answered                that there is an answer and under which name it is kept; what it says is content

Owns the shape and the bounds of a question, and how it is named: an attempt ends with the question it asks, so its
number is the question's too. Refuses to know what a good answer is: that is `services`' to check.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, StringConstraints

from headgate_contracts.records import Record
from headgate_contracts.tokens import Token
from headgate_contracts.vocabulary import QuestionKind

MOST_CHOICES: Final = 20
MOST_SCHEMA_BYTES: Final = 8192  # as JSON
MOST_ANSWER_BYTES: Final = 16_384  # as JSON
MOST_ANSWERS: Final = 50  # of one job: each dispatch names them all
YES, NO = "yes", "no"

Choice = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Choices = Annotated[tuple[Choice, ...], Field(max_length=MOST_CHOICES)]
AnswerSchema = Mapping[str, Any]


class FailedWork(Record):
    """What was not good enough, in words for the job's user."""

    summary: Annotated[str, StringConstraints(max_length=500)]
    detail: Annotated[str, StringConstraints(max_length=4096)] = ""


class Question(Record):
    """What a job asks. `key` is the name that its author gave it: the same key has the same answer. An answer is one of
    the `choices`, or what the JSON Schema wants, or a text where there is neither. `reason`: why the job cannot go on
    by itself."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: Token
    kind: QuestionKind
    text: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    key: Token | None = None
    choices: Choices = ()
    schema_: Annotated[AnswerSchema | None, Field(alias="schema")] = None
    reason: FailedWork | None = None


class KeptAnswer(Record):
    """An answer that was given: to the question of this key, kept under this name."""

    key: Token
    name: Token


def question_id(attempt: int) -> str:
    """That of the question with which the attempt ends."""
    return f"q{attempt}"


def whether_to_continue(attempt: int, *, batch: int | None = None, reason: FailedWork | None = None) -> Question:
    """The question after a batch of iterations."""
    return Question(
        id=question_id(attempt),
        kind=QuestionKind.CONTINUE,
        text=f"Continue for {batch} more?" if batch else "Continue?",
        choices=(YES, NO),
        reason=reason,
    )


def answer_name(job_id: str, event_id: str) -> str:
    """Under which an answer is kept beside its job's input: another name for each time that one is given."""
    return f"{job_id}-{hashlib.sha256(f'answer {event_id}'.encode()).hexdigest()[:22]}"

"""What the stages of an attempt ask: answered by what its user has answered before, or else with that it ends.

    Ask ─► is there an answer under its key that it still takes? ─► told at once
                  └─ no ─► `open`: the stage ends, and the attempt with `awaiting_confirmation`

Owns how a question is cleared of secrets, as it stands in an event, and what of it cannot be asked. The stage is told
the choice that its author wrote, whatever of it was masked. When it is reminded of and given up: `timers_of` in
`libs/capacity/projection.py`; who answers too late: `services/admission/answering.py`.
"""

import json
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from headgate_contracts import Job
from headgate_contracts.questions import MOST_ANSWERS, Question, question_id
from headgate_contracts.vocabulary import QuestionKind
from libs.eventlog.ports import Inputs
from libs.runtime.clock import Clock
from services.worker.attempt.patience import insist
from services.worker.attempt.secrets import Mask, for_users
from services.worker.child.messages import AnswerNotice, Ask


class AttemptQuestions:
    """The questions that one attempt's stages ask."""

    def __init__(self, job: Job, *, inputs: Inputs, clock: Clock, secrets: Iterable[str]) -> None:
        self.open: Question | None = None  # with which the attempt is to end
        self._job = job
        self._inputs = inputs
        self._clock = clock
        self._secrets = tuple(secrets)
        self._names = {each.key: each.name for each in job.answers}

    async def answer(self, asked: Ask) -> AnswerNotice:
        """What the stage hears."""
        question, wrong = self._question(asked)
        if wrong is not None:
            return AnswerNotice(number=asked.number, state="wrong", words=wrong)
        known, answer = await self._answer(question)
        if not known:
            self.open = question
            return AnswerNotice(number=asked.number, state="open")
        if answer in question.choices:
            answer = asked.choices[question.choices.index(answer)]
        return AnswerNotice(number=asked.number, state="answered", words=json.dumps(answer))

    async def _answer(self, question: Question) -> tuple[bool, Any]:
        """Whether there is one that the question takes: a pipeline may have changed since. And which."""
        name = self._names.get(question.key or "")
        if name is None:
            return False, None
        content = await insist(lambda: self._inputs.get(name), self._clock, about=f"answer {name}")
        if content is None:
            return False, None
        answer = json.loads(content)
        return _schemas().wrong_answer(answer, question) is None, answer

    def _question(self, asked: Ask) -> tuple[Question, str | None]:
        """As it may stand in an event, and why it cannot be asked."""
        schema, wrong = _read(asked.answer_schema)
        question = Question(
            id=question_id(self._job.attempt),
            kind=QuestionKind.ASK,
            text=for_users(asked.text, known=self._secrets)[:500] or "?",
            key=asked.key,
            choices=tuple(map(self._masked, asked.choices)),
            schema_=schema if schema is None else self._masked(schema),
        )
        if wrong is None and len(set(question.choices)) < len(asked.choices):
            wrong = "two of its choices read the same once secrets are taken out"
        if wrong is None and asked.key not in self._names and len(self._names) >= MOST_ANSWERS:
            wrong = f"a job may ask {MOST_ANSWERS} questions"
        if wrong is None and question.schema_ is not None:
            wrong = _schemas().wrong_schema(question.schema_)
        return question, wrong

    def _masked(self, value: Any) -> Any:
        """Each text in it without secrets."""
        match value:
            case str():
                return Mask(self._secrets).line(value)[:200] if value else value
            case list():
                return [self._masked(each) for each in value]
            case dict():
                return {name: self._masked(each) for name, each in value.items()}
            case _:
                return value


def _schemas() -> ModuleType:
    """3 MB, which a worker is spared until a stage asks."""
    from libs.runtime import schemas  # noqa: PLC0415

    return schemas


def _read(text: str) -> tuple[dict[str, Any] | None, str | None]:
    if not text:
        return None, None
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return None, "its schema is no JSON"
    return (schema, None) if isinstance(schema, dict) else (None, "its schema is no object")

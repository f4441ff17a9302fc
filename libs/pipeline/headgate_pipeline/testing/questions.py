"""The user of a pipeline in a test: what a stage asks, and what the test has them answer."""

from dataclasses import dataclass, field
from typing import Any

from headgate_pipeline.questions import StageQuestion
from headgate_pipeline.testing.record import PipelineRun


@dataclass(slots=True)
class AnsweringUser:
    """`open`: a question that the stage has just asked, so that it ends."""

    answers: dict[str, Any]
    told: PipelineRun
    open: StageQuestion | None = None
    _given: dict[str, Any] = field(default_factory=dict[str, Any])

    def asked(self, question: StageQuestion) -> tuple[bool, Any]:
        """Whether it was answered before, and how. Else the stage ends, as at a worker, and begins again."""
        if question.key in self._given:
            return True, self._given[question.key]
        self.open = question
        return False, None

    def answer(self) -> bool:
        """Whether the test has an answer to what was asked; then the stage may begin again."""
        question, self.open = self.open, None
        if question is None:
            raise AssertionError("a stage that has asked nothing is not answered")
        self.told.questions.append(question.text)
        name = next((name for name in (question.key, question.text) if name in self.answers), None)
        if name is None:
            return False
        answer = self.answers[name]
        if question.choices and answer not in question.choices:
            raise AssertionError(
                f"{answer!r} is none of the choices of {question.text!r}: {', '.join(question.choices)}"
            )
        self._given[question.key] = answer
        return True

"""Whether an answer is what a question asks for. Pure: the same for who takes it and for the stage that is given it."""

from __future__ import annotations

import json
from typing import Any

from headgate_contracts.questions import MOST_ANSWER_BYTES, Question
from libs.runtime.schemas import wrong_value


def answer_bytes(answer: Any) -> bytes:
    """As it is kept."""
    return json.dumps(answer, ensure_ascii=False, allow_nan=False).encode()


def wrong_answer(answer: Any, question: Question) -> str | None:
    """What is wrong with it; null where it answers the question."""
    try:
        size = len(answer_bytes(answer))
    except ValueError:  # NaN, or half a character
        return "it holds what JSON cannot write"
    if size > MOST_ANSWER_BYTES:
        return f"{size} bytes as JSON, at most {MOST_ANSWER_BYTES} are taken"
    if question.choices:
        return None if answer in question.choices else f"choose one of: {', '.join(question.choices)}"
    if question.schema_ is not None:
        return wrong_value(answer, question.schema_)
    return None if isinstance(answer, str) and answer.strip() else "answer by a text"

"""JSON Schemas of others: whether one is a schema that can be used, and what about a value is not as it wants.

What stands in a schema is a stranger's word, so nothing of it is fetched, and its patterns are matched in a time in
proportion to the text. Owns the words of a refusal.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from jsonschema_rs import Draft202012Validator, ReferencingError, RegexOptions, ValidationError

from headgate_contracts.questions import MOST_ANSWER_BYTES, Question

MOST_SAID: Final = 300


def wrong_schema(schema: Mapping[str, Any]) -> str | None:
    """Why nothing can be checked by this schema; null where it is one."""
    try:
        validator_of(schema)
    except (ValidationError, ReferencingError, ValueError) as wrong:
        return _said(wrong)
    return None


def wrong_value(value: object, schema: Mapping[str, Any]) -> str | None:
    """What about the value is not as the schema wants: the first thing, by the path to it."""
    for wrong in validator_of(schema).iter_errors(value):
        path = ".".join(str(part) for part in wrong.instance_path)
        return f"{path}: {_said(wrong)}" if path else _said(wrong)
    return None


def validator_of(schema: Mapping[str, Any]) -> Draft202012Validator:
    """For a schema of which `wrong_schema` has nothing to say."""
    return Draft202012Validator(dict(schema), pattern_options=RegexOptions(), offline=True)


def _said(wrong: ValidationError | ReferencingError | ValueError) -> str:
    text = wrong.message if isinstance(wrong, ValidationError) else str(wrong)
    return text.splitlines()[0][:MOST_SAID] if text else "it is no JSON Schema"


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

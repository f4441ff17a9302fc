"""What a stage asks its job's user, as its author writes it."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from headgate_contracts.questions import MOST_CHOICES, MOST_SCHEMA_BYTES

KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,48}")
MOST_TEXT: Final = 500
MOST_CHOICE: Final = 200
AnswerShape = Mapping[str, Any] | type[BaseModel]


@dataclass(frozen=True, slots=True)
class StageQuestion:
    """One that can be asked. `schema` is JSON; empty where any text is an answer."""

    key: str
    text: str
    choices: tuple[str, ...] = ()
    schema: str = ""


def stage_question(
    text: str, *, choices: Sequence[str] | None, schema: AnswerShape | None, key: str | None
) -> StageQuestion:
    """Raises ValueError where nobody could answer it. Without a key its words are one: another wording is another
    question."""
    offered, wanted = tuple(choices or ()), _schema_text(schema)
    if not 1 <= len(text.strip()) <= MOST_TEXT:
        raise ValueError(f"a question has 1 to {MOST_TEXT} characters, this one {len(text)}")
    if choices is not None and schema is not None:
        raise ValueError("a question has choices or a schema, not both")
    if choices is not None and not _can_be_chosen(offered):
        raise ValueError(f"choices are 1 to {MOST_CHOICES} different texts of 1 to {MOST_CHOICE} characters")
    if len(wanted.encode()) > MOST_SCHEMA_BYTES:
        raise ValueError(f"the schema of a question has at most {MOST_SCHEMA_BYTES} bytes as JSON")
    if key is not None and not KEY.fullmatch(key):
        raise ValueError(f"{key!r} is no key of a question: use 1 to 48 of A-Z a-z 0-9 _ -")
    return StageQuestion(key or _key_of(text, offered, wanted), text, offered, wanted)


def _can_be_chosen(offered: Sequence[str]) -> bool:
    named = all(isinstance(each, str) and 1 <= len(each) <= MOST_CHOICE for each in offered)  # pyright: ignore[reportUnnecessaryIsInstance] - of an author's
    return named and 1 <= len(set(offered)) == len(offered) <= MOST_CHOICES


def _schema_text(schema: AnswerShape | None) -> str:
    if schema is None:
        return ""
    return json.dumps(dict(schema) if isinstance(schema, Mapping) else schema.model_json_schema())


def _key_of(text: str, choices: tuple[str, ...], schema: str) -> str:
    return hashlib.sha256(json.dumps([text, choices, schema]).encode()).hexdigest()[:32]

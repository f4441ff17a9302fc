"""Whether an answer is what a question asks for, by strangers' schemas too."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headgate_contracts.questions import Question
from headgate_contracts.vocabulary import QuestionKind
from libs.runtime.schemas import wrong_answer, wrong_schema

PORT = {"type": "object", "properties": {"port": {"type": "integer", "maximum": 65535}}, "required": ["port"]}


def asked(**more: Any) -> Question:
    return Question(id="q1", kind=QuestionKind.ASK, text="Which?", key="which", **more)


@pytest.mark.parametrize(
    ("question", "answer", "wrong"),
    [
        (asked(choices=("MIT", "BSD")), "MIT", None),
        (asked(choices=("MIT", "BSD")), "GPL", "choose one of: MIT, BSD"),
        (asked(choices=("1", "2")), 1, "choose one of: 1, 2"),
        (asked(schema_=PORT), {"port": 80}, None),
        (asked(schema_=PORT), {"port": "80"}, 'port: "80" is not of type "integer"'),
        (asked(schema_=PORT), {}, '"port" is a required property'),
        (asked(), "anything", None),
        (asked(), "  ", "answer by a text"),
        (asked(), 7, "answer by a text"),
        (asked(schema_={}), math.nan, "it holds what JSON cannot write"),
        (asked(), "x" * 17_000, "17002 bytes as JSON, at most 16384 are taken"),
    ],
)
def test_an_answer_is_one_of_the_choices_or_what_the_schema_wants_or_a_text(
    question: Question, answer: object, wrong: str | None
) -> None:
    assert wrong_answer(answer, question) == wrong


@pytest.mark.parametrize(
    ("schema", "is_wrong"),
    [
        (PORT, False),
        ({"type": "stone"}, True),
        ({"pattern": "("}, True),
        ({"$ref": "http://127.0.0.1:1/schema.json"}, True),
        ({"$ref": "file:///etc/passwd"}, True),
        ({"$ref": "#"}, False),
    ],
)
def test_a_schema_that_cannot_be_used_is_known_before_anybody_is_asked(
    schema: dict[str, Any],
    is_wrong: bool,  # noqa: FBT001 - a row of the table
) -> None:
    assert (wrong_schema(schema) is not None) is is_wrong


def test_a_pattern_that_others_would_search_for_ever_is_decided_at_once() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}

    assert wrong_answer("a" * 5000 + "!", asked(schema_=schema)) is not None


def test_a_schema_that_refers_to_itself_ends() -> None:
    deep: Any = []
    for _ in range(200):
        deep = [deep]

    assert wrong_answer(deep, asked(schema_={"items": {"$ref": "#"}})) is None
    assert wrong_answer("x", asked(schema_={"$ref": "#"})) is None

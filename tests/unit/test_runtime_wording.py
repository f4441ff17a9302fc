"""What is wrong with a field, said so that it can be mended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from headgate_contracts.asked import ForeignScope, NotifyUrl, SubmitJob
from headgate_contracts.openapi import openapi_document
from headgate_contracts.records import LabelKey
from headgate_contracts.tokens import Token
from libs.runtime.wording import form_of, worded


def said(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as fault:
        TypeAdapter(kind).validate_python(value)
    return worded(fault.value.errors()[0])


def patterns(part: Any) -> Iterator[str]:
    match part:
        case {"pattern": str(pattern)}:
            yield pattern
        case dict():
            for each in part.values():
                yield from patterns(each)
        case list():
            for each in part:
                yield from patterns(each)
        case _:
            pass


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Token, "no token!", "use 1 to 64 letters, digits, - and _"),
        (ForeignScope, "everything", "write all, priority:NAME, pool:NAME, user:ID, project:ID or workflow:ID"),
        (NotifyUrl, "ftp://host", "write a URL that begins with http:// or https://"),
        (LabelKey, "a b", "use 1 to 64 letters, digits, dots, slashes, - and _"),
        (AwareDatetime, "tomorrow", "write a moment and its time zone, as in 2030-01-31T06:00:00Z"),
        (AwareDatetime, "2030-01-31T06:00:00", "add the time zone, as in 2030-01-31T06:00:00Z"),
        (dict[str, Any], "text", "write an object"),
        (SubmitJob, [], "write an object"),
        (bool, "maybe", "write true or false"),
        (int, "x", "write a whole number"),
        (SubmitJob, {"project_id": "shop"}, "it is missing"),
        (Annotated[int, Field(ge=1)], 0, "write 1 or more"),
        (Annotated[str, Field(max_length=2)], "abc", "write 2 characters at most"),
        (Annotated[list[int], Field(min_length=1)], [], "write 1 item or more"),
        (Literal["low", "high"], "hihg", "write 'low' or 'high'"),
    ],
)
def test_each_field_says_what_to_write(kind: Any, value: object, words: str) -> None:
    assert said(kind, value) == words


def test_a_check_of_our_own_is_said_in_its_words() -> None:
    too_much = {"project_id": "shop", "input": {"prompt": "x" * 70_000}}

    assert said(SubmitJob, too_much).endswith("bytes as JSON, at most 65536 are taken")
    assert "error" not in said(SubmitJob, too_much)


def test_no_pattern_of_the_api_is_without_words() -> None:
    assert [each for each in patterns(openapi_document()) if form_of(each) is None] == []

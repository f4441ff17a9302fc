"""What is wrong with a field, in words that say what to write instead. Pure.

Owns the sentences for what a reader of JSON could not know otherwise: a pattern, a moment, a kind of value. Everything
else is said well by the check itself. And how a number of things is said, in every sentence.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

NAME: Final = re.compile(r"\^\[A-Za-z0-9_-]\{1,(\d+)}\$")
FORMS: Final = {
    "^(all|priority:": "write all, priority:NAME, pool:NAME, user:ID, project:ID or workflow:ID",
    "^(?:(?:user|project):": "write a group: user:ID, project:ID, group:PROJECT:NAME, pool:NAME or llm:PROVIDER",
    '^(?:"((?:[ !#': "use 1 to 255 printable ASCII characters, as they are or between double quotes",
    "^[0-9A-Z]{26}-[0-9]": "it is the id of an event, as a stream gave it",
    "^[A-Za-z0-9._:/@+-]{1,100}$": "use 1 to 100 letters, digits and . _ : / @ + -",
    "^[A-Za-z0-9_-]{1,64}(?::": "write a job's id, or JOB:ATTEMPT",
    "^[^\\x00-": "write one line, without control characters",
    "^https?://": "write a URL that begins with http:// or https://",
    "^[A-Za-z0-9_./-]{1,64}=": "write NAME=VALUE",
    "^[A-Za-z0-9_./-]{1,64}$": "use 1 to 64 letters, digits, dots, slashes, - and _",
    "^[!-~]{1,256}$": "use 1 to 256 printable ASCII characters, without spaces",
    "^[0-7][0-9A-HJKMNP-TV-Z]{25}$": "use a ULID: 26 of 0-9 and A-Z without I, L, O and U, from 0 to 7 at first",
    "^[A-Za-z0-9_-]{43}$": "it is 43 letters, digits, - and _, as they were given",
}
KINDS: Final = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field",
    "dict_type": "write an object",
    "model_type": "write an object",
    "model_attributes_type": "write an object",  # the same, where FastAPI reads it
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "int_parsing": "write a whole number",
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "string_type": "write a text",
    "datetime_parsing": "write a moment and its time zone, as in 2030-01-31T06:00:00Z",
    "datetime_from_date_parsing": "write a moment and its time zone, as in 2030-01-31T06:00:00Z",
    "timezone_aware": "add the time zone, as in 2030-01-31T06:00:00Z",
}
SIZES: Final = {  # by what their context says
    "too_short": ("min_length", "write {} or more", "item"),
    "too_long": ("max_length", "write {} at most", "item"),
    "string_too_short": ("min_length", "write {} or more", "character"),
    "string_too_long": ("max_length", "write {} at most", "character"),
    "greater_than_equal": ("ge", "write {} or more", ""),
    "less_than_equal": ("le", "write {} or less", ""),
}
EXPECTED: Final = "Input should be "  # a list of words, which pydantic writes well


def counted(count: int, unit: str) -> str:
    """`1 day`, `2 days`."""
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def worded(error: Mapping[str, Any]) -> str:
    """One error of pydantic's, without what was in the field."""
    kind, said = error["type"], str(error["msg"])
    if kind == "string_pattern_mismatch":
        return form_of(error["ctx"]["pattern"]) or said
    if kind in SIZES:
        name, words, unit = SIZES[kind]
        bound = error["ctx"][name]
        return words.format(counted(bound, unit) if unit else bound)
    if kind in ("enum", "literal_error"):
        return f"write {said.removeprefix(EXPECTED)}"
    return KINDS.get(kind) or said.removeprefix("Value error, ")


def form_of(pattern: str) -> str | None:
    """What fits the pattern, in words; null for one that has none."""
    name = NAME.fullmatch(pattern)
    if name is not None:
        return f"use 1 to {name[1]} letters, digits, - and _"
    return next((words for start, words in FORMS.items() if pattern.startswith(start)), None)

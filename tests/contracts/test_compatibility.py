"""The gate itself: every kind of change to a message, and whether it may be made."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from headgate_contracts.compatibility import breaches, readable

Schema = dict[str, Any]
RELEASED: Schema = {
    "type": "object",
    "$defs": {
        "Reason": {"enum": ["lost", "drained"], "type": "string"},
        "Group": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z]+$"},
                "limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
            },
            "required": ["name"],
        },
        "Priority": {"enum": ["high", "low"], "type": "string", "default": "low"},
        "Tree": {
            "type": "object",
            "properties": {
                "word": {"type": "string"},
                "next": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}], "default": None},
                "more": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            },
        },
        "Node": {
            "type": "object",
            "properties": {"word": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}},
            "required": ["word"],
        },
    },
    "properties": {
        "id": {"type": "string", "maxLength": 40},
        "kind": {"const": "queued"},
        "attempt": {"type": "integer", "minimum": 0, "maximum": 9},
        "share": {"type": "number"},
        "reason": {"$ref": "#/$defs/Reason"},
        "note": {"type": "string", "default": ""},
        "groups": {"type": "array", "items": {"$ref": "#/$defs/Group"}, "maxItems": 16},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 8}},
        "limits": {"type": "object", "patternProperties": {"^[a-z]+$": {"type": "integer", "minimum": 1}}},
        "priority": {"$ref": "#/$defs/Priority"},
        "parent": {"anyOf": [{"$ref": "#/$defs/Group"}, {"type": "null"}], "default": None},
        "tree": {"$ref": "#/$defs/Tree"},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        "value": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "chain": {"$ref": "#/$defs/Node"},
        "at": {"type": "string", "format": "date-time"},
    },
    "required": ["id", "kind", "attempt", "reason"],
}
Change = Callable[[Schema], None]


def _set(path: str, value: object) -> Change:
    def change(schema: Schema) -> None:
        *parents, last = path.split("/")
        for name in parents:
            schema = schema[name]
        schema[last] = value

    return change


def _drop(path: str) -> Change:
    def change(schema: Schema) -> None:
        *parents, last = path.split("/")
        for name in parents:
            schema = schema[name]
        del schema[last]

    return change


def _both(*changes: Change) -> Change:
    def change(schema: Schema) -> None:
        for each in changes:
            each(schema)

    return change


def _require(name: str) -> Change:
    return lambda schema: schema["required"].append(name)


def _release(name: str) -> Change:
    return lambda schema: schema["required"].remove(name)


ALLOWED: dict[str, Change] = {
    "nothing": lambda schema: None,
    "an optional field is added": _set("properties/by", {"type": "string"}),
    "an optional field of a nested object is added": _set("$defs/Group/properties/colour", {"type": "string"}),
    "it is marked as deprecated": _set("deprecated", value=True),
    "a description is added": _set("properties/note/description", "what was said"),
    "a definition that nothing uses is added": _set("$defs/Unused", {"type": "null"}),
    "a definition is written where it was referred to": _set("properties/reason", RELEASED["$defs"]["Reason"]),
    "a definition is called otherwise": _both(
        _set("$defs/Cause", RELEASED["$defs"]["Reason"]), _set("properties/reason", {"$ref": "#/$defs/Cause"})
    ),
    "an optional field is added to what refers to itself": _set("$defs/Tree/properties/leaf", {"type": "boolean"}),
    "a closed set of one is said as a constant": _set("properties/kind", {"enum": ["queued"]}),
    "null is said in a list of types": _set(
        "properties/parent", {"anyOf": [{"$ref": "#/$defs/Group"}, {"type": ["null"]}], "default": None}
    ),
    "alternatives in another order": _set("properties/value/anyOf", [{"type": "integer"}, {"type": "string"}]),
    "alternatives in alternatives": _set(
        "properties/value/anyOf", [{"anyOf": RELEASED["properties"]["value"]["anyOf"]}]
    ),
}

REFUSED: dict[str, tuple[Change, str, str]] = {
    "removed, required": (_both(_drop("properties/attempt"), _release("attempt")), "attempt", "gone"),
    "removed, optional": (_drop("properties/note"), "note", "gone"),
    "removed, nested": (_drop("$defs/Group/properties/limit"), "groups.[].limit", "gone"),
    "renamed": (
        _both(_drop("properties/note"), _set("properties/remark", {"type": "string", "default": ""})),
        "note",
        "gone",
    ),
    "retyped": (_set("properties/attempt", {"type": "string"}), "attempt", "type"),
    "retyped, nested": (_set("$defs/Group/properties/name", {"type": "integer"}), "groups.[].name", "type"),
    "widened to any number": (_set("properties/attempt", {"type": "number"}), "attempt", "type"),
    "narrowed to integers": (_set("properties/share", {"type": "integer"}), "share", "type"),
    "narrowed by a bound": (_set("properties/attempt/maximum", 5), "attempt", "maximum"),
    "widened by a bound": (_set("properties/attempt/maximum", 50), "attempt", "maximum"),
    "a bound taken away": (_drop("properties/attempt/minimum"), "attempt", "minimum"),
    "a longer text": (_set("properties/id/maxLength", 64), "id", "maxLength"),
    "another pattern": (_set("$defs/Group/properties/name/pattern", "^[a-z0-9]+$"), "groups.[].name", "pattern"),
    "another format": (_set("properties/at/format", "date"), "at", "format"),
    "more items": (_set("properties/groups/maxItems", 32), "groups", "maxItems"),
    "made required": (_require("note"), "note", "requires"),
    "made required, nested": (lambda schema: schema["$defs"]["Group"]["required"].append("limit"), "limit", "requires"),
    "made optional": (_release("attempt"), "attempt", "requires"),
    "added and required": (
        _both(_set("properties/by", {"type": "string"}), _require("by")),
        "by",
        "requires",
    ),
    "enum widened": (_set("$defs/Reason/enum", ["lost", "drained", "forced"]), "reason", "forced"),
    "enum narrowed": (_set("$defs/Reason/enum", ["lost"]), "reason", "drained"),
    "enum became any text": (_set("$defs/Reason", {"type": "string"}), "reason", "closed set"),
    "const changed": (_set("properties/kind/const", "scheduled"), "kind", "closed set"),
    "union widened": (
        _set("properties/value/anyOf", [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]),
        "value",
        "alternatives",
    ),
    "union narrowed": (_set("properties/value/anyOf", [{"type": "string"}]), "value", "type"),
    "null no longer allowed": (
        _set("$defs/Group/properties/limit", {"type": "integer", "minimum": 1, "default": None}),
        "groups.[].limit",
        "type",
    ),
    "null newly allowed": (
        _set("properties/note", {"anyOf": [{"type": "string"}, {"type": "null"}], "default": ""}),
        "note",
        "type",
    ),
    "default changed": (_set("properties/note/default", "none"), "note", "left out"),
    "default changed, nested": (_set("$defs/Group/properties/limit/default", 1), "groups.[].limit", "left out"),
    "values of a map retyped": (
        _set("properties/labels/additionalProperties", {"type": "integer"}),
        "labels.*",
        "type",
    ),
    "values of a map longer": (
        _set("properties/labels/additionalProperties/maxLength", 9),
        "labels.*",
        "maxLength",
    ),
    "retyped in what refers to itself": (_set("$defs/Node/properties/word/type", "integer"), "chain.word", "type"),
    "values under a pattern retyped": (
        _set("properties/limits/patternProperties", {"^[a-z]+$": {"type": "string"}}),
        "limits.*",
        "type",
    ),
    "values under a pattern bounded": (
        _set("properties/limits/patternProperties", {"^[a-z]+$": {"type": "integer", "minimum": 2}}),
        "limits.*",
        "minimum",
    ),
    "another pattern of names": (
        _set("properties/limits/patternProperties", {"^[a-z:]+$": {"type": "integer", "minimum": 1}}),
        "limits.(names)",
        "pattern",
    ),
    "default changed where it is referred to": (_set("$defs/Priority/default", "high"), "priority", "left out"),
    "default taken away where it is referred to": (_drop("$defs/Priority/default"), "priority", "left out"),
    "removed, of what may be null, and called otherwise": (
        _both(
            _set(
                "$defs/Parent",
                {
                    "type": "object",
                    "properties": {"name": RELEASED["$defs"]["Group"]["properties"]["name"]},
                    "required": ["name"],
                },
            ),
            _set("properties/parent/anyOf", [{"$ref": "#/$defs/Parent"}, {"type": "null"}]),
        ),
        "parent.limit",
        "gone",
    ),
    "retyped in what refers to itself through a choice": (
        _set("$defs/Tree/properties/word/type", "integer"),
        "tree.word",
        "type",
    ),
    "removed from what refers to itself through a choice": (_drop("$defs/Tree/properties/word"), "tree.word", "gone"),
    "retyped at one position": (
        _set("properties/pair/prefixItems", [{"type": "string"}, {"type": "string"}]),
        "pair.[1]",
        "type",
    ),
    "a position taken away": (_set("properties/pair/prefixItems", [{"type": "string"}]), "pair.[1]", "type"),
    "a condition that the gate cannot judge": (
        _set("properties/note/not", {"const": "x"}),
        "note",
        "does not know not",
    ),
    "allOf": (_set("properties/note/allOf", [{"maxLength": 3}]), "note", "does not know allOf"),
    "what stands beside a reference contradicts it": (
        _set("properties/reason/enum", ["lost"]),
        "reason",
        "beside a reference",
    ),
    "a bound inside an alternative": (
        _set("$defs/Group/properties/limit/anyOf", [{"type": "integer", "minimum": 0}, {"type": "null"}]),
        "groups.[].limit",
        "minimum",
    ),
}


@pytest.mark.parametrize("change", ALLOWED.values(), ids=list(ALLOWED))
def test_what_only_adds_may_be_done(change: Change) -> None:
    assert breaches({"m": RELEASED}, {"m": _changed(change)}) == []


@pytest.mark.parametrize(("change", "field", "rule"), REFUSED.values(), ids=list(REFUSED))
def test_what_a_reader_of_today_or_of_then_would_stumble_over_is_named(change: Change, field: str, rule: str) -> None:
    found = breaches({"m": RELEASED}, {"m": _changed(change)})

    assert any(each.field.endswith(field) and rule in f"{each.rule}" for each in found), [*map(str, found)]


TEXT: Schema = {"type": "string"}
A_B: Schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a", "b"]}
ONE_WAY: dict[str, tuple[Schema, Schema, bool]] = {
    "a word of a closed set is longer than the reader takes": ({"enum": ["ab", "abc"]}, TEXT | {"maxLength": 2}, False),
    "every word of a closed set fits": ({"enum": ["ab", "abc"]}, TEXT | {"maxLength": 3}, True),
    "a word of a closed set does not match": ({"enum": ["ab", "a-b"]}, TEXT | {"pattern": "^[a-z]+$"}, False),
    "a constant is one of a closed set": ({"const": "a"}, {"enum": ["a", "b"]}, True),
    "true is not 1": ({"const": True}, {"enum": [1]}, False),
    "a constant of another type": ({"const": 1}, TEXT, False),
    "a choice within a choice": (
        {"anyOf": [{"anyOf": [TEXT, {"type": "null"}]}, {"type": "integer"}]},
        {"type": ["integer", "string", "null"]},
        True,
    ),
    "a closed set in a choice grew": (
        {"anyOf": [{"enum": ["a", "b", "c"]}, {"type": "null"}]},
        {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]},
        False,
    ),
    "an open set takes new words": ({"anyOf": [{"enum": ["a", "b"]}, TEXT]}, {"anyOf": [{"enum": ["a"]}, TEXT]}, True),
    "objects of a choice are told apart": (
        {"anyOf": [A_B, {"type": "null"}]},
        {"anyOf": [{"type": "null"}, {**A_B, "required": ["a"]}]},
        True,
    ),
    "a field into a map of another type": (A_B, {"type": "object", "additionalProperties": {"type": "integer"}}, False),
    "fields into a map": (A_B, {"type": "object", "additionalProperties": TEXT}, True),
    "a map into a field of another type": (
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        False,
    ),
    "any object into a field": ({"type": "object"}, {"type": "object", "properties": {"a": TEXT}}, False),
    "a field under a pattern": (A_B, {"type": "object", "patternProperties": {"^a": {"type": "integer"}}}, False),
    "a map to whom no name is known": (
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "additionalProperties": False},
        False,
    ),
    "anything into nothing": (TEXT, {"anyOf": [{"type": "integer"}], "oneOf": [TEXT]}, False),
    "anything into a false schema": ({"type": "array", "items": TEXT}, {"type": "array", "items": False}, False),
    "anything into a true schema": ({"type": "array", "items": TEXT}, {"type": "array", "items": True}, True),
    "positions into items": (
        {"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "items": TEXT},
        {"type": "array", "items": TEXT},
        False,
    ),
    "numbers into integers": ({"type": "number"}, {"type": "integer"}, False),
    "integers into numbers": ({"type": "integer"}, {"type": "number"}, True),
    "a bound of another type": (TEXT, TEXT | {"minimum": 3}, True),
    "the root refers to itself": (
        {"type": "object", "properties": {"next": {"$ref": "#"}, "a": TEXT}},
        {"type": "object", "properties": {"next": {"$ref": "#"}, "a": {"type": "null"}}},
        False,
    ),
}


@pytest.mark.parametrize(("writer", "reader", "is_readable"), ONE_WAY.values(), ids=list(ONE_WAY))
def test_a_reader_takes_what_a_writer_writes_or_does_not(writer: Schema, reader: Schema, *, is_readable: bool) -> None:
    assert (readable(writer, reader) == []) is is_readable


def test_what_refers_to_itself_in_many_ways_is_read_in_no_time() -> None:
    arms = {f"arm-{number}": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]} for number in range(30)}
    schema: Schema = {"$defs": {"Tree": {"type": "object", "properties": arms}}, "$ref": "#/$defs/Tree"}

    assert breaches({"m": schema}, {"m": copy.deepcopy(schema)}) == []


@pytest.mark.parametrize("target", ["urn:elsewhere#/a", "#/$defs/Loop"])
def test_a_reference_that_leads_nowhere_is_an_error_and_no_verdict(target: str) -> None:
    schema: Schema = {"$ref": target, "$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}

    with pytest.raises(ValueError, match=r"points out|nothing but itself"):
        breaches({"m": schema}, {"m": schema})


def test_a_message_that_is_gone_is_named_and_a_new_one_breaks_nothing() -> None:
    found = breaches({"old": RELEASED, "kept": RELEASED}, {"kept": RELEASED, "new": RELEASED})

    assert [*map(str, found)] == ["old: the message: the message is gone"]


def test_a_reader_that_refuses_what_it_does_not_know_breaks_with_what_was_released_beside_it() -> None:
    closed = _changed(_both(_set("additionalProperties", False), _drop("properties/note")))

    found = breaches({"m": RELEASED}, {"m": closed})

    assert any(each.field == "note" and "refuses fields" in each.rule for each in found)


def _changed(change: Change) -> Schema:
    schema = copy.deepcopy(RELEASED)
    change(schema)
    return schema

"""The words of JSON Schema that the gate compares, and what each means for one schema.

Owns the list of what is known. A word that is on no list here is `strange`, and the gate refuses what uses it: a word
that is skipped in silence would let a breach through.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

Schema = Mapping[str, Any]
Part = Schema | bool  # `true` takes everything, `false` nothing

AT_LEAST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
AT_MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
ALIKE: Final = ("pattern", "format", "multipleOf", "uniqueItems")
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_OF_OBJECTS: Final = ("properties", "required", "additionalProperties", "patternProperties", "propertyNames")
_OF_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OF_STRINGS: Final = ("minLength", "maxLength", "pattern", "format")
_OF_ARRAYS: Final = ("minItems", "maxItems", "uniqueItems", "items", "prefixItems")
_ABOUT_SCHEMAS: Final = ("$comment", "$schema", "$id", "$defs", "discriminator")
_NOTES: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", *_ABOUT_SCHEMAS)
)
_KIND_OF_WORD: Final = {
    **{word: {"integer", "number"} for word in _OF_NUMBERS},
    **{word: {"string"} for word in _OF_STRINGS},
    **{word: {"array"} for word in _OF_ARRAYS},
    **{word: {"object"} for word in (*_OF_OBJECTS, "minProperties", "maxProperties")},
}
_KNOWN: Final = _NOTES.union(_KIND_OF_WORD, _ALTERNATIVES, ("type", "enum", "const", "$ref"))
_EVERY_KIND: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_EVERYTHING: Final[Schema] = {}
_NOTHING: Final[Schema] = {"enum": []}
_CLASH: Final = "what is said beside a reference or a choice and within it"


def as_schema(part: Part) -> Schema:
    if isinstance(part, Mapping):
        return part
    return _EVERYTHING if part else _NOTHING


def strange_words(schema: Schema) -> set[str]:
    """What the gate cannot judge."""
    return {word for word in schema if word not in _KNOWN}


def resolved(schema: Schema, root: Schema, *, alone: bool = False) -> Schema:
    """What a reference points to, with what stands beside the reference; `alone`: without that."""
    beside: Schema = {}
    met: set[str] = set()
    while "$ref" in schema:
        name = str(schema["$ref"])
        if name in met:
            raise ValueError(f"{name} refers to nothing but itself")
        met.add(name)
        beside = _both({word: value for word, value in schema.items() if word != "$ref"}, beside)
        schema = _pointed(name, root)
    return schema if alone or not beside else _both(schema, beside)


def alternatives(schema: Schema, root: Schema) -> list[Schema]:
    """Each thing that the schema may be, itself without a choice: nested choices and lists of types are taken apart."""
    schema = resolved(schema, root)
    choices = [word for word in _ALTERNATIVES if word in schema]
    if len(choices) == 1:
        beside = {word: value for word, value in schema.items() if word != choices[0] and word not in _NOTES}
        return [
            _both(part, beside) if beside else part
            for each in schema[choices[0]]
            for part in alternatives(as_schema(each), root)
        ]
    if choices:
        return [{_CLASH: choices}]
    if isinstance(schema.get("type"), list):
        return [{**schema, "type": kind} for kind in schema["type"]]
    return [schema]


def kinds(schema: Schema) -> frozenset[str]:
    """The types that a value of it may have."""
    named = schema.get("type")
    values = values_of(schema)
    if named is None:
        return _EVERY_KIND if values is None else frozenset(kind for value in values for kind in _kinds_of(value))
    found = {named} if isinstance(named, str) else set(cast("list[str]", named))
    return frozenset(found | ({"integer"} if "number" in found else set()))


def fits(word: str, schema: Schema) -> bool:
    """Whether the word says anything about values of this schema."""
    return bool(_KIND_OF_WORD[word] & kinds(schema))


def values_of(schema: Schema) -> list[Any] | None:
    """The closed set of its values, where it is one."""
    if "const" in schema:
        return [schema["const"]]
    return list(schema["enum"]) if "enum" in schema else None


def properties_of(schema: Schema) -> Mapping[str, Schema]:
    return schema.get("properties", {})


def members_of(schema: Schema, name: str) -> list[Schema]:
    """Every schema that the value under this name must follow."""
    own = [properties_of(schema)[name]] if name in properties_of(schema) else []
    patterns: Schema = schema.get("patternProperties", {})
    found = own + [each for pattern, each in patterns.items() if re.search(pattern, name)]
    rest = schema.get("additionalProperties")
    return found or ([cast("Schema", rest)] if isinstance(rest, Mapping) else [])


def holds(word: str, bound: Any, value: Any) -> bool:
    """Whether one value keeps a bound. What cannot be told here (a format) does not."""
    if not _KIND_OF_WORD[word] & set(_kinds_of(value)):
        return True
    match word:
        case "minimum" | "exclusiveMinimum":
            return value > bound or (value == bound and word == "minimum")
        case "maximum" | "exclusiveMaximum":
            return value < bound or (value == bound and word == "maximum")
        case "minLength" | "minItems" | "minProperties":
            return len(value) >= bound
        case "maxLength" | "maxItems" | "maxProperties":
            return len(value) <= bound
        case "pattern":
            return re.search(bound, value) is not None
        case _:
            return False


def is_same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)


def spelled(schema: Schema) -> str:
    named = schema.get("type", "anything" if values_of(schema) is None else "/".join(sorted(kinds(schema))))
    return named if isinstance(named, str) else "/".join(named)


def _both(schema: Schema, beside: Schema) -> Schema:
    """Two that hold together. Where both say the same word in two ways, nobody here works out what that means."""
    clashes = [word for word in schema.keys() & beside.keys() - _NOTES if schema[word] != beside[word]]
    merged = {**schema, **beside}
    return {**merged, _CLASH: clashes} if clashes else merged


def _pointed(name: str, root: Schema) -> Schema:
    if not name.startswith("#"):
        raise ValueError(f"{name} points out of the document: the gate reads one document at a time")
    target: Any = root
    for part in name.removeprefix("#").split("/")[1:]:
        target = target[part.replace("~1", "/").replace("~0", "~")]
    return target


def _kinds_of(value: Any) -> tuple[str, ...]:
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case int():
            return ("integer",)
        case float():
            return ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
        case _:
            return ("object",)

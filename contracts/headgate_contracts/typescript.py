"""The schemas as TypeScript: one interface for each object, one union for each closed set, nothing that runs.

Owns the small part of JSON Schema that these contracts use; what it has not met yet is an error, never `any` by chance.
What a reader may find missing is optional, and what may be null says so. Unknown fields are allowed by the language.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

Schema = Mapping[str, Any]

_SIMPLE: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_WIDTH: Final = 120


def module(definitions: Mapping[str, Schema], *, title: str) -> str:
    """One file: every definition, in the order of its name."""
    head = f"/* {title} */\n"
    return "\n".join((head, *(declaration(name, definitions[name]) for name in sorted(definitions))))


def declaration(name: str, schema: Schema) -> str:
    """One exported type."""
    comment = _comment(schema.get("description"), indent="")
    if schema.get("type") == "object" and "properties" in schema:
        return f"{comment}export interface {name} {_members(schema)}\n"
    return f"{comment}export type {name} = {expression(schema)};\n"


def expression(schema: Schema) -> str:
    """The type of one value."""
    match schema:
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return _union(json.dumps(value) for value in values)
        case {"anyOf": alternatives} | {"oneOf": alternatives}:
            return _union(expression(each) for each in alternatives)
        case {"type": str(kind)} if kind in _SIMPLE:
            return _SIMPLE[kind]
        case _:
            return _container(schema)


def _container(schema: Schema) -> str:
    match schema:
        case {"type": "array"}:
            return f"ReadonlyArray<{expression(schema.get('items', {}))}>"
        case {"type": "object", "properties": _}:
            return _members(schema)
        case {"type": "object"}:
            return f"Readonly<Record<string, {_entries(schema)}>>"
        case _ if not set(schema) - {"default", "description", "title"}:
            return "unknown"
        case _:
            raise ValueError(f"no TypeScript for the schema {json.dumps(schema)}")


def _entries(schema: Schema) -> str:
    """What a map holds: a pattern of its names is beyond the language, the type of its values is not."""
    values = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
    known = [expression(cast("Schema", each)) for each in values if isinstance(each, Mapping)]
    return _union(known) if known else "unknown"


def _members(schema: Schema) -> str:
    required = set(schema.get("required", ()))
    lines = (_member(name, value, required=name in required) for name, value in schema["properties"].items())
    return "{\n" + "".join(lines) + "}"


def _member(name: str, schema: Schema, *, required: bool) -> str:
    written = name if name.isidentifier() else json.dumps(name)
    comment = _comment(schema.get("description"), indent="  ")
    return f"{comment}  readonly {written}{'' if required else '?'}: {expression(schema)};\n"


def _union(parts: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def _comment(text: str | None, *, indent: str) -> str:
    if not text:
        return ""
    lines = [line.strip().replace("*/", "* /") for line in text.strip().splitlines()]
    if len(lines) == 1 and len(lines[0]) < _WIDTH - 10:
        return f"{indent}/** {lines[0]} */\n"
    body = "".join(f"{indent} *{' ' if line else ''}{line}\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"

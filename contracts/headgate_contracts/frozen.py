"""What of a release is frozen, as files of one folder, and whether the folder is as it was frozen.

    schemas/ examples/   each event's schema and golden example
    commands.json        the schemas of what services ask each other: replicas of two releases run side by side
    openapi.json         the HTTP API
    subjects.json        where each event is published
    table.json           who writes what, from which status, and the status then
    SHA256SUMS           of all of it: a released set is never changed

Owns the list. What a difference means is for the gate.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from headgate_contracts import commands
from headgate_contracts.asyncapi import addresses
from headgate_contracts.envelope import ENVELOPES
from headgate_contracts.generate import artifacts, models_in, schema_of
from headgate_contracts.openapi import openapi_document
from headgate_contracts.records import Record
from headgate_contracts.table import TABLE

SUMS: Final = "SHA256SUMS"
_OF_ARTIFACTS: Final = ("schemas/", "examples/")


def files() -> dict[str, str]:
    """Today's set: the name of each file and its text."""
    kept = {name: text for name, text in artifacts().items() if name.startswith(_OF_ARTIFACTS)}
    said = {
        "commands.json": commands_schema(),
        "openapi.json": openapi_document(),
        "subjects.json": addresses(),
        "table.json": table(),
    }
    made = kept | {name: json.dumps(each, indent=1, ensure_ascii=False) + "\n" for name, each in said.items()}
    return made | {SUMS: "".join(f"{_sum(text.encode())}  {name}\n" for name, text in sorted(made.items()))}


def commands_schema() -> dict[str, Any]:
    """All messages as the fields of one object, so that what they are made of stands there once."""
    models = models_in(commands, Record)
    _, schema = models_json_schema([(each, "validation") for each in models])
    fields = {model.__name__: {"$ref": f"#/$defs/{model.__name__}"} for model in models}
    return {"type": "object", "properties": fields, "$defs": schema["$defs"]}


def event_schemas() -> dict[str, Any]:
    return {name: schema_of(name) for name in ENVELOPES}


def table() -> list[str]:
    """Each transition as a line of its own."""
    return sorted(
        f"{row.writer.value} writes {row.event.value}{f' ({cause.value})' if cause else ''}"
        f" from {source.value if source else 'nothing'}: {row.then.value if row.then else 'unchanged'}"
        for row in TABLE
        for source in row.sources
        for cause in (row.causes or (None,))
    )


def altered(folder: Path) -> Iterator[tuple[str, str]]:
    """The files of a released set that are not as they were frozen, and what is wrong with each."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    wanted = MappingProxyType({name: digest for digest, _, name in (line.partition("  ") for line in lines)})
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted((wanted.keys() | there.keys()) - {SUMS}):
        if name not in there:
            yield name, "it is missing"
        elif name not in wanted:
            yield name, "it was not released"
        elif _sum(there[name].read_bytes()) != wanted[name]:
            yield name, "it was changed after its release"


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

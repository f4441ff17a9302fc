"""Writes what other teams read from what this package says: `python -m headgate_contracts.generate [--check] [--api]`.

Owns every generated file under `contracts/`, as one list, `artifacts()`: path → text. What is generated is checked in,
so that a change of the contract is seen where it is reviewed. `--check` writes nothing, names each file that is stale,
missing or surplus, and exits with 1. The HTTP API is what the services' routes say: `--api` reads that from the
standard input, a document of each service on a line of its own; without it the API's files are left as they are.

Refuses to run on an installed package: the files belong to the source tree. Refuses to import a service.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from headgate_contracts import asked, shown
from headgate_contracts.asyncapi import document
from headgate_contracts.envelope import DATA_BY_TYPE, ENVELOPES, schema_id
from headgate_contracts.examples import examples
from headgate_contracts.openapi import whole
from headgate_contracts.table import TABLE, Row
from headgate_contracts.typescript import module
from headgate_contracts.vocabulary import Status
from headgate_contracts.yaml_text import yaml_text

HERE: Final = Path(__file__).resolve().parents[1]
OWNED: Final = ("schemas", "examples", "typescript", "asyncapi.yaml")  # every file in them is one of ours
VERSION: Final = "1.0.0"
_WRITERS: Final = re.compile(
    r"(?<=^\| event \| by \| from \| status then \|\n\|---\|---\|---\|---\|\n)(?:\|.*\n)*", re.MULTILINE
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m headgate_contracts.generate", description="Generate contracts/.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 where a file is out of date")
    parser.add_argument("--api", action="store_true", help="the API too: services' documents on the standard input")
    parser.add_argument("--root", type=Path, default=HERE, help="the folder contracts/ (default: %(default)s)")
    options = parser.parse_args(argv)
    if not (options.root / "pyproject.toml").is_file():
        parser.error(f"{options.root} is not the source tree of the contracts: name it with --root")
    expected = artifacts() | (api_artifacts(map(json.loads, sys.stdin)) if options.api else {})
    found = differences(options.root, expected)
    if options.check:
        print("\n".join(f"{word}: {path}" for path, word in found.items()) or "contracts are up to date")
        return 1 if found else 0
    write(options.root, found, expected)
    return 0


def artifacts() -> dict[str, str]:
    """Every file that is generated from this package: its path under `contracts/` and its text."""
    schemas = {f"schemas/{name}.json": _text(schema_of(name)) for name in ENVELOPES}
    golden = {f"examples/{event.type}.json": _text(json.loads(event.encode())) for event in examples()}
    return {**schemas, **golden, **_typescript(), "asyncapi.yaml": _asyncapi(), "README.md": _readme()}


def api_artifacts(parts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The same of the HTTP API: for people, and for the package, from which admission serves it."""
    api = whole(parts)
    packed = json.dumps(api, ensure_ascii=False, separators=(",", ":")) + "\n"
    return {"openapi.yaml": yaml_text(api), "headgate_contracts/openapi.json": packed}


def _readme() -> str:
    """The README with its table of who writes what; the rest of it is written by hand."""
    return _WRITERS.sub("".join(map(_line_of, TABLE)), (HERE / "README.md").read_text(encoding="utf-8"))


def _line_of(row: Row) -> str:
    causes = f" ({', '.join(sorted(row.causes))})" if row.causes else ""
    sources = ["(new)"] * (None in row.sources) + [status.value for status in Status if status in row.sources]
    then = row.then.value if row.then else "unchanged"
    return f"| `{row.event.value}`{causes} | {row.writer.value} | {', '.join(sources)} | {then} |\n"


def definitions() -> dict[str, Any]:
    """Every schema by its name: the events, and all that they are made of."""
    found: dict[str, Any] = {}
    for name, envelope in ENVELOPES.items():
        schema = schema_of(name)
        del schema["$schema"], schema["$id"]
        found |= schema.pop("$defs")
        found[envelope.__name__] = schema
    return found


def _typescript() -> dict[str, str]:
    events = definitions()
    bodies = _bodies()
    union = " | ".join(sorted(envelope.__name__ for envelope in ENVELOPES.values()))
    either = f"\n/** Any event of the log; `type` tells which. */\nexport type HeadgateEvent = {union};\n"
    return {
        "typescript/events.ts": module(events, title="Headgate's events, version 1") + either,
        "typescript/api.ts": module(bodies, title="The bodies of Headgate's HTTP API, version 1"),
    }


def _bodies() -> dict[str, Any]:
    models = [*models_in(asked, asked.Asked), *models_in(shown, shown.Shown)]
    _, schema = models_json_schema([(each, "validation") for each in models], schema_generator=_Untitled)
    return schema["$defs"]


def models_in(place: ModuleType, base: type[BaseModel]) -> list[type[BaseModel]]:
    """The models that a module itself defines, in its order."""
    found = (each for each in vars(place).values() if isinstance(each, type) and issubclass(each, base))
    return [each for each in found if each.__module__ == place.__name__ and each is not base]


def _asyncapi() -> str:
    return yaml_text(document(definitions(), version=VERSION))


def differences(root: Path, expected: Mapping[str, str]) -> dict[str, str]:
    """The files that are not as they should be: path → stale, missing or surplus."""
    places = {*OWNED, *expected}
    present = {path.relative_to(root).as_posix(): path for place in places for path in _files(root / place)}
    surplus = dict.fromkeys(present.keys() - expected.keys(), "surplus")
    missing = dict.fromkeys(expected.keys() - present.keys(), "missing")
    stale = {name: "stale" for name in expected.keys() & present.keys() if _read(present[name]) != expected[name]}
    return dict(sorted({**surplus, **missing, **stale}.items()))


def write(root: Path, found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """Bring the found files up to date; a surplus one is removed."""
    for name, word in found.items():
        path = root / name
        if word == "surplus":
            path.unlink()
            print(f"removed {name}")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(expected[name], encoding="utf-8", newline="\n")
        print(f"wrote {name}")


def schema_of(name: str) -> dict[str, Any]:
    """The schema of a whole event. `dataschema` points into it, to that of the data."""
    schema = ENVELOPES[name].model_json_schema(schema_generator=_Untitled)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": schema_id(DATA_BY_TYPE[name]), **schema}


class _Untitled(GenerateJsonSchema):
    """Without a title for each field: generators of types make a name of each."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def _files(place: Path) -> list[Path]:
    return [path for path in (place, *place.rglob("*")) if path.is_file()]


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())

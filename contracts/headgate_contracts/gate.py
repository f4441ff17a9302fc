"""The gate: today's code reads what was released, and a reader of a release reads what is written today.

    python -m headgate_contracts.gate                 exit 1, and each field and rule that is broken
    python -m headgate_contracts.gate --freeze 1.0    keep today's set as released, for ever

Events and commands are held in both directions, the HTTP API as its clients see it, and with them subjects and
transitions. Owns `contracts/released/`. A released set is never changed: freezing over one is refused, and a file that
was changed is named. Refuses to run on an installed package, like the generator.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headgate_contracts.asyncapi import addresses
from headgate_contracts.compatibility import Schema, breaches
from headgate_contracts.compatibility_http import http_breaches
from headgate_contracts.envelope import Event, parse_event
from headgate_contracts.errors import ContractError
from headgate_contracts.frozen import altered, commands_schema, event_schemas, files, table
from headgate_contracts.generate import HERE
from headgate_contracts.openapi import openapi_document


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m headgate_contracts.gate", description="Protect what was released.")
    parser.add_argument("--freeze", metavar="VERSION", help="keep what there is today as this version")
    parser.add_argument("--root", type=Path, default=HERE, help="the folder contracts/ (default: %(default)s)")
    options = parser.parse_args(argv)
    if options.freeze:
        return freeze(options.root / "released" / options.freeze)
    found = list(broken(options.root / "released"))
    print("\n".join(found) or f"nothing that was released is broken: {', '.join(versions(options.root / 'released'))}")
    return 1 if found else 0


def versions(released: Path) -> list[str]:
    """What was released, oldest first."""
    return sorted((path.name for path in released.iterdir()), key=_numbers) if released.is_dir() else []


def broken(released: Path) -> Iterator[str]:
    """Every way in which today breaks a released set."""
    if not versions(released):
        yield f"{released}: there is no released set: freeze one"
    for version in versions(released):
        yield from (f"{version}: {told}" for told in _broken(released / version))


def schemas_in(folder: Path) -> dict[str, Schema]:
    """The schemas of a released set, by type."""
    return {path.name.removesuffix(".json"): _json(path) for path in sorted((folder / "schemas").glob("*.json"))}


def freeze(folder: Path) -> int:
    """Today's set as a released one."""
    if folder.exists():
        print(f"{folder} is released already and never changes: use another version", file=sys.stderr)
        return 1
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    print(f"released {folder.name}")
    return 0


def _broken(folder: Path) -> Iterator[str]:
    yield from (f"{name}: {what}" for name, what in altered(folder))
    yield from map(str, breaches(schemas_in(folder), event_schemas()))
    yield from map(str, breaches({"commands": _json(folder / "commands.json")}, {"commands": commands_schema()}))
    yield from map(str, http_breaches(_json(folder / "openapi.json"), openapi_document()))
    yield from _moved(_json(folder / "subjects.json"))
    yield from _retold(_json(folder / "table.json"), types=schemas_in(folder))
    yield from _unread(folder)


def _moved(released: dict[str, str]) -> Iterator[str]:
    today = addresses()
    for name, address in released.items():
        if name in today and today[name] != address:
            yield f"{name}: the subject {address} became {today[name]}: no filter of then finds it"


def _retold(released: list[str], *, types: dict[str, Schema]) -> Iterator[str]:
    """A reader folds by the table that it has. One that was released does not know the events that are new."""
    known = {name.split(".")[3] for name in types if name.startswith("dev.headgate.job.")}
    for line in sorted(set(released) - set(table())):
        yield f"{line}: the transition is gone, so what was written then cannot be folded today"
    for line in sorted(set(table()) - set(released)):
        if line.split()[2] in known:
            yield f"{line}: the transition is new, so a released reader refuses the job: make it an event of its own"


def _unread(folder: Path) -> Iterator[str]:
    """Released examples that today's reader does not read as what they are."""
    for path in sorted((folder / "examples").glob("*.json")):
        try:
            event = parse_event(path.read_bytes())
        except ContractError as error:
            yield f"{path.name}: today's reader refuses it: {error}"
        else:
            if not isinstance(event, Event):
                yield f"{path.name}: today's reader does not know it any more"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())

"""What other teams read: the schemas and the golden examples are up to date, and they agree with the code."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from headgate_contracts import Event, parse_event
from headgate_contracts.envelope import DATA_BY_TYPE
from headgate_contracts.events import Data, JobData
from headgate_contracts.examples import examples
from headgate_contracts.generate import HERE, artifacts, main
from tests.fixtures.records import events

TYPES = list(DATA_BY_TYPE)
SCHEMAS = {name: json.loads((HERE / "schemas" / f"{name}.json").read_text()) for name in TYPES}
VALIDATORS = {name: Draft202012Validator(schema, format_checker=FormatChecker()) for name, schema in SCHEMAS.items()}


def test_what_is_checked_in_is_what_the_code_generates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", TYPES)
def test_a_schema_is_one(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])

    assert SCHEMAS[name]["$id"] == f"urn:headgate:schema:{name}"
    assert SCHEMAS[name]["properties"]["type"] == {"const": name, "type": "string"}
    assert ("sequence" in SCHEMAS[name]["required"]) is issubclass(DATA_BY_TYPE[name], JobData)


@pytest.mark.parametrize("name", TYPES)
def test_a_golden_example_is_read_as_the_event_it_was_made_from(name: str) -> None:
    golden = (HERE / "examples" / f"{name}.json").read_bytes()

    event = parse_event(golden)

    assert isinstance(event, Event)
    assert event in examples()
    assert (event.type, json.loads(event.encode())) == (name, json.loads(golden))


@pytest.mark.parametrize("name", TYPES)
def test_a_golden_example_follows_its_schema(name: str) -> None:
    VALIDATORS[name].validate(json.loads((HERE / "examples" / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_event_follows_its_schema(name: str, data: st.DataObject) -> None:
    event = data.draw(events(DATA_BY_TYPE[name]))

    VALIDATORS[name].validate(json.loads(event.encode()))


@pytest.mark.parametrize("event", examples(), ids=lambda event: event.type)
def test_what_dataschema_names_is_the_schema_of_the_data(event: Event[Data]) -> None:
    document = json.loads(event.encode())
    registry = Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values())
    validator = Draft202012Validator({"$ref": document["dataschema"]}, registry=registry)

    validator.validate(document["data"])

    assert not validator.is_valid({})


@pytest.mark.parametrize("event", examples(), ids=lambda event: event.type)
def test_a_schema_refuses_what_the_reader_refuses(event: Event[Data]) -> None:
    document = json.loads(event.encode())
    wrong: list[dict[str, Any]] = [
        {**document, "type": "dev.headgate.job.rehearsed.v1"},
        {**document, "id": "7"},
        {**document, "source": "/headgate/notifier"},
        {**document, "data": {}},
        {name: value for name, value in document.items() if name != "specversion"},
        *({**document, "data": {**document["data"], name: [[]]}} for name in document["data"]),
    ]

    assert [VALIDATORS[event.type].is_valid(each) for each in wrong] == [False] * len(wrong)


def test_each_file_that_is_out_of_date_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = _generated(tmp_path)
    (root / "schemas/dev.headgate.job.queued.v1.json").write_text("{}")
    (root / "examples/dev.headgate.job.ready.v1.json").unlink()
    (root / "schemas/dev.headgate.job.queued.v0.json").write_text("{}")
    capsys.readouterr()

    assert main(["--check", "--root", str(root)]) == 1

    assert capsys.readouterr().out.splitlines() == [
        "missing: examples/dev.headgate.job.ready.v1.json",
        "surplus: schemas/dev.headgate.job.queued.v0.json",
        "stale: schemas/dev.headgate.job.queued.v1.json",
    ]


def test_generating_again_brings_everything_up_to_date(tmp_path: Path) -> None:
    root = _generated(tmp_path)
    (root / "schemas/dev.headgate.job.queued.v1.json").write_text("{}")
    (root / "examples/dev.headgate.job.ready.v1.json").unlink()
    (root / "schemas/dev.headgate.job.queued.v0.json").write_text("{}")

    main(["--root", str(root)])

    assert main(["--check", "--root", str(root)]) == 0
    assert {path.relative_to(root).as_posix() for path in root.rglob("*.json")} == set(artifacts())


def test_nothing_is_generated_where_the_source_tree_is_not(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--root", str(tmp_path)])

    assert refused.value.code == 2
    assert not list(tmp_path.iterdir())


def _generated(root: Path) -> Path:
    (root / "pyproject.toml").touch()
    assert main(["--root", str(root)]) == 0
    return root

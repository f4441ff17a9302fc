"""What other teams read: the schemas and the golden examples are up to date, and they agree with the code."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from headgate_contracts import Event, parse_event
from headgate_contracts.asyncapi import OWN_CONSUMERS, document
from headgate_contracts.envelope import DATA_BY_TYPE
from headgate_contracts.events import Data, JobData
from headgate_contracts.examples import examples
from headgate_contracts.generate import HERE, VERSION, artifacts, definitions, main
from headgate_contracts.vocabulary import ActName
from libs.eventlog import LogSettings
from libs.eventlog.api import EPOCH_KEY
from libs.eventlog.streams import JOBS, streams
from libs.local.errors import TeamRefused
from libs.local.permissions import READER, nats_users
from libs.local.teams import new_team
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


def test_the_asyncapi_document_says_what_the_code_says() -> None:
    written = yaml.safe_load((HERE / "asyncapi.yaml").read_text())

    assert written == json.loads(json.dumps(document(definitions(), version=VERSION)))
    assert {each["address"].replace("{", "*").split("*")[0] for each in written["channels"].values()} == {
        "headgate.jobs.v1.",
        "headgate.sched.v1.",
        *(f"headgate.ops.v1.{act.value}" for act in ActName),
    }
    assert {name for channel in written["channels"].values() for name in _messages(channel)} == set(TYPES)


def test_the_asyncapi_document_says_of_the_stream_what_migrate_makes() -> None:
    said = document(definitions(), version=VERSION)["info"]["x-jetstream"]["stream"]
    jobs = next(stream for stream in streams(LogSettings()) if stream.name == JOBS)

    alike = {name: jobs.settings[_snake(name)] for name in said if _snake(name) in jobs.settings}

    assert len(alike) == 7
    assert alike == {name: said[name] for name in alike}
    assert (said["name"], said["epoch"]) == (JOBS, EPOCH_KEY)
    assert said["maxAgeDays"] * 86_400_000_000_000 == jobs.settings["max_age"]


def test_the_asyncapi_document_says_which_names_of_consumers_are_refused() -> None:
    consumer = nats_users({READER: "secret"}, shard="main", pools=("gpu",))[READER]

    for name in (each.replace("<pool>", "gpu") for each in OWN_CONSUMERS):
        assert f"$JS.API.CONSUMER.CREATE.JOBS.{name}" in consumer.refused
        with pytest.raises(TeamRefused):
            new_team(name, password="secret", purposes=(), filters=())


def test_every_parameter_of_an_address_is_described() -> None:
    for channel in document(definitions(), version=VERSION)["channels"].values():
        assert set(re.findall(r"{(\w+)}", channel["address"])) == set(channel.get("parameters", {}))


def test_an_address_is_where_the_event_is_published() -> None:
    channels = document(definitions(), version=VERSION)["channels"].values()
    addresses = {name: channel["address"] for channel in channels for name in _messages(channel)}

    for event in examples():
        assert re.fullmatch(re.sub(r"{\w+}", r"[A-Za-z0-9_-]+", addresses[event.type]), event.subject)


@pytest.mark.parametrize("name", TYPES)
def test_the_official_reader_of_cloudevents_reads_a_golden_example(name: str) -> None:
    golden = (HERE / "examples" / f"{name}.json").read_bytes()

    event = JSONFormat().read(None, golden)

    told = json.loads(golden)
    assert isinstance(event, CloudEvent)
    assert (event.get_id(), event.get_type(), event.get_source()) == (told["id"], name, told["source"])
    assert (event.get_subject(), event.get_data()) == (told["subject"], told["data"])
    assert (event.get_datacontenttype(), event.get_dataschema()) == (told["datacontenttype"], told["dataschema"])
    assert event.get_extension("sequence") == told.get("sequence")


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


def _messages(channel: dict[str, Any]) -> list[str]:
    return [each["$ref"].rpartition("/")[2] for each in channel["messages"].values()]


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
    written = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert written == {"pyproject.toml", *artifacts()}


def test_nothing_is_generated_where_the_source_tree_is_not(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--root", str(tmp_path)])

    assert refused.value.code == 2
    assert not list(tmp_path.iterdir())


def _generated(root: Path) -> Path:
    (root / "pyproject.toml").touch()
    assert main(["--root", str(root)]) == 0
    return root

"""The gate over the released sets, and how a second version of an event is brought in beside the first."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from headgate_contracts import Event, IllegalTransition, JobEvent, UnknownEvent, fold, parse_event
from headgate_contracts.compatibility import breaches
from headgate_contracts.envelope import ENVELOPES
from headgate_contracts.examples import examples
from headgate_contracts.frozen import SUMS, altered, commands_schema
from headgate_contracts.gate import broken, freeze, main, schemas_in, versions
from headgate_contracts.generate import HERE, schema_of
from headgate_contracts.openapi import openapi_document
from tests.fixtures.lives import life_of

RELEASED = HERE / "released"
READY = "schemas/dev.headgate.job.ready.v1.json"
V2 = "dev.headgate.job.stage.v2"


@cache
def today() -> dict[str, Any]:
    return {name: schema_of(name) for name in ENVELOPES}


def test_nothing_that_was_released_is_broken() -> None:
    assert versions(RELEASED)
    assert list(broken(RELEASED)) == []


@pytest.mark.parametrize("version", versions(RELEASED))
def test_what_is_written_today_follows_every_released_schema_of_its_type(version: str) -> None:
    released = schemas_in(RELEASED / version)

    for event in examples():
        if event.type in released:
            Draft202012Validator(released[event.type]).validate(json.loads(event.encode()))


def test_each_breach_names_the_version_the_field_and_the_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _root(tmp_path)
    _change(tmp_path, READY, lambda schema: schema["$defs"]["JobReady"]["required"].append("cost"))
    capsys.readouterr()

    assert main(["--root", str(tmp_path)]) == 1

    [told] = capsys.readouterr().out.splitlines()
    assert told == (
        "1.0: dev.headgate.job.ready.v1: data.cost: the reader requires it, and it is not written "
        "(today's message, read as released)"
    )


def test_an_example_that_is_read_no_more_is_named(tmp_path: Path) -> None:
    _root(tmp_path)
    _change(tmp_path, "examples/dev.headgate.job.ready.v1.json", lambda event: event["data"].update(attempt="1"))

    [told] = broken(tmp_path / "released")

    assert told.startswith("1.0: dev.headgate.job.ready.v1.json: today's reader refuses it: data.attempt")


def test_what_replicas_ask_each_other_is_held_too(tmp_path: Path) -> None:
    _root(tmp_path)
    _change(tmp_path, "commands.json", lambda schema: schema["$defs"]["BeatReply"]["properties"].update(pace={}))

    [told] = broken(tmp_path / "released")

    assert told == "1.0: commands: BeatReply.pace: the field is gone"


def test_a_subject_that_moved_is_named(tmp_path: Path) -> None:
    _root(tmp_path)
    _change(tmp_path, "subjects.json", lambda known: known.update({"dev.headgate.job.ready.v1": "headgate.jobs.{job}"}))

    [told] = broken(tmp_path / "released")

    assert told.startswith(
        "1.0: dev.headgate.job.ready.v1: the subject headgate.jobs.{job} became headgate.jobs.v1.{job}"
    )


def test_a_transition_that_is_new_or_gone_is_named(tmp_path: Path) -> None:
    _root(tmp_path)
    _change(tmp_path, "table.json", lambda lines: lines.append("worker writes ready from code: ready"))
    _change(tmp_path, "table.json", lambda lines: lines.remove("worker writes ready from checks: ready"))

    told = list(broken(tmp_path / "released"))

    assert [line.partition(", so")[0] for line in told] == [
        "1.0: worker writes ready from code: ready: the transition is gone",
        "1.0: worker writes ready from checks: ready: the transition is new",
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder: (folder / "table.json").unlink(), "table.json: it is missing"),
        (lambda folder: (folder / "more.json").write_text("{}"), "more.json: it was not released"),
        (lambda folder: (folder / READY).write_text((HERE / READY).read_text() + "\n"), f"{READY}: it was changed"),
    ],
)
def test_a_released_set_that_was_touched_is_named(tmp_path: Path, change: Callable[[Path], None], told: str) -> None:
    _root(tmp_path)
    change(tmp_path / "released" / "1.0")

    [line] = (f"{name}: {what}" for name, what in altered(tmp_path / "released" / "1.0"))
    assert line.startswith(told)


def test_versions_stand_in_their_order(tmp_path: Path) -> None:
    for version in ("1.10", "1.9", "2.0"):
        (tmp_path / version).mkdir()

    assert versions(tmp_path) == ["1.9", "1.10", "2.0"]


def test_a_released_set_is_never_written_over(tmp_path: Path) -> None:
    assert freeze(tmp_path / "released" / "1.0") == 0

    assert freeze(tmp_path / "released" / "1.0") == 1


def test_without_any_released_set_the_gate_is_shut(tmp_path: Path) -> None:
    assert main(["--root", str(tmp_path)]) == 1


# ── words that may come ───────────────────────────────────────────────────────


@pytest.mark.parametrize(("word", "other"), [(b'"partner"', '"cto_scale"'), (b'"queued"', '"awaiting_confirmation"')])
def test_a_word_that_is_new_in_an_open_set_breaks_nobody(word: bytes, other: str) -> None:
    document = json.loads(life_of(story="queued")[0].encode().replace(word, b'"studio"'))
    shown = {name: schema for name, schema in openapi_document()["components"]["schemas"].items() if name != "Status"}
    schemas = (*today().values(), shown, commands_schema())  # by a `Status` one may ask for jobs

    Draft202012Validator(schemas_in(RELEASED / "1.0")[document["type"]]).validate(document)

    assert [other in json.dumps(schema) for schema in schemas] == [False] * len(schemas)


def test_a_tier_that_a_reader_does_not_know_is_read_as_a_text() -> None:
    first, *_ = life_of(story="queued")

    told = parse_event(first.encode().replace(b'"partner"', b'"studio"'))

    assert isinstance(told, Event)
    assert fold([cast("JobEvent", told)]).submission.tier == "studio"


def test_a_status_that_a_reader_does_not_know_is_an_unknown_event() -> None:
    first, *_ = life_of(story="queued")

    told = parse_event(first.encode().replace(b'"queued"', b'"warming_up"'))

    assert isinstance(told, UnknownEvent)
    assert (told.job_id, told.status, told.sequence) == (first.data.job_id, "warming_up", 1)


# ── a second version beside the first ─────────────────────────────────────────


def test_a_second_version_of_an_event_is_an_addition() -> None:
    assert breaches(today(), today() | {V2: _second_version()}) == []


def test_the_first_version_may_not_go_when_the_second_comes() -> None:
    renamed = {V2 if name == "dev.headgate.job.stage.v1" else name: schema for name, schema in today().items()}

    assert [str(each) for each in breaches(today(), renamed)] == [
        "dev.headgate.job.stage.v1: the message: the message is gone"
    ]


def test_a_reader_of_the_first_version_still_knows_where_a_job_stands() -> None:
    """Writers have gone over to the second: what the reader does not know it steps over, and folds the same status."""
    life = life_of(story="queued dispatched started scaffold code")
    told = [parse_event(_as_second_version(event)) for event in life]

    known = fold(cast("list[JobEvent | UnknownEvent]", told))

    assert [type(each).__name__ for each in told] == ["Event", "Event", "Event", "UnknownEvent", "UnknownEvent"]
    assert (known.status, known.attempt, known.sequence) == ("code", 1, 5)


def test_a_job_whose_first_event_is_of_a_later_version_cannot_be_folded_but_says_where_it_stands() -> None:
    first, *_ = life_of(story="queued dispatched")
    document = json.loads(first.encode())
    document["type"] = "dev.headgate.job.queued.v2"

    told = parse_event(json.dumps(document).encode())

    assert isinstance(told, UnknownEvent)
    assert (told.job_id, told.status, told.attempt, told.sequence) == (first.data.job_id, "queued", 0, 1)
    with pytest.raises(IllegalTransition, match=r"cannot begin with dev\.headgate\.job\.queued\.v2"):
        fold([told])


def _as_second_version(event: Event[Any]) -> bytes:
    """As a writer of the second version would: another shape of the data, the same promises of every event."""
    document = json.loads(event.encode())
    if document["type"] == "dev.headgate.job.stage.v1":
        data = document["data"]
        document["type"], document["dataschema"] = V2, f"urn:headgate:schema:{V2}#/$defs/JobStage"
        data["step"] = {"name": data.pop("stage"), "number": data.pop("iteration")}
    return json.dumps(document).encode()


def _second_version() -> dict[str, Any]:
    schema = json.loads(json.dumps(today()["dev.headgate.job.stage.v1"]))
    schema["properties"]["type"] = {"const": V2, "type": "string"}
    data = _data(schema, "JobStage")
    del data["properties"]["stage"]
    data["properties"]["step"] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    data["required"] = ["step", *(name for name in data["required"] if name != "stage")]
    return schema


def _root(folder: Path) -> None:
    assert freeze(folder / "released" / "1.0") == 0


def _change(root: Path, name: str, change: Callable[[Any], object]) -> None:
    """As if that had been released: another document, and the sum of it."""
    folder = root / "released" / "1.0"
    before = (folder / name).read_bytes()
    document = json.loads(before)
    change(document)
    (folder / name).write_text(json.dumps(document))
    sums = (folder / SUMS).read_text()
    (folder / SUMS).write_text(
        sums.replace(sha256(before).hexdigest(), sha256((folder / name).read_bytes()).hexdigest())
    )


def _data(schema: dict[str, Any], model: str) -> dict[str, Any]:
    return schema["$defs"][model]

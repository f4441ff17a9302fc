"""The document of the HTTP API: made of what each service says of its own routes, and of nothing else."""

import io
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from headgate_contracts.generate import HERE, main
from headgate_contracts.openapi import openapi_document, whole
from libs.runtime.openapi import DescribedApp, part
from services.admission.openapi import routers as of_admission
from services.notifier.openapi import routers as of_the_notifier
from services.notifier.openapi import said as said_by_the_notifier

FILES = ("openapi.yaml", "headgate_contracts/openapi.json")


@cache
def said() -> tuple[str, str]:
    """What admission and the notifier say of their routes."""
    return part(of_admission()), said_by_the_notifier()


def test_it_is_what_the_services_routes_say() -> None:
    parts = [json.loads(each) for each in said()]

    assert whole(parts) == openapi_document()
    assert openapi_document()["paths"].keys() == parts[0]["paths"].keys() | parts[1]["paths"].keys()
    assert not parts[0]["paths"].keys() & parts[1]["paths"].keys()


def test_who_speaks_for_others_shows_the_whole_though_it_has_routes_of_its_own() -> None:
    app = DescribedApp()
    app.speaks_for = openapi_document
    for router in of_the_notifier():
        app.include_router(router)

    assert app.openapi() == openapi_document()


def test_two_services_may_not_mean_different_things_by_one_name() -> None:
    other: dict[str, Any] = json.loads(said()[1])
    other["components"]["schemas"]["Problem"] = {"type": "string"}

    with pytest.raises(ValueError, match="different things of Problem"):
        whole([json.loads(said()[0]), other])


def test_a_document_that_is_out_of_date_is_named_and_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    main(["--root", str(tmp_path)])
    (tmp_path / "openapi.yaml").write_text("openapi: 3.1.0")
    capsys.readouterr()

    assert _generated(monkeypatch, "--check", "--root", str(tmp_path)) == 1
    told = capsys.readouterr().out
    assert _generated(monkeypatch, "--root", str(tmp_path)) == 0

    assert told.splitlines() == ["missing: headgate_contracts/openapi.json", "stale: openapi.yaml"]
    assert [(tmp_path / name).read_text() for name in FILES] == [(HERE / name).read_text() for name in FILES]


def _generated(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(said())))
    return main(["--api", *words])


def test_each_operation_has_a_name_that_a_generated_client_can_use() -> None:
    operations = [each for path in openapi_document()["paths"].values() for each in path.values()]
    names = [operation["operationId"] for operation in operations]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]+([A-Z][a-z]+)*", name) for name in names), names
    assert {"submitJob", "listJobs", "getResult", "streamJob"} <= set(names)
    assert {tag["name"] for tag in openapi_document()["tags"]} == {tag for each in operations for tag in each["tags"]}

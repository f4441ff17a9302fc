"""The gate over the HTTP API: every kind of change to a route, and whether it may be made."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from headgate_contracts.compatibility_http import http_breaches
from headgate_contracts.openapi import openapi_document

Schema = dict[str, Any]
Change = Callable[[Schema], object]
TEXT = {"type": "string"}
JSON = "application/json"
RELEASED: Schema = {
    "paths": {
        "/jobs": {
            "post": {
                "parameters": [
                    {
                        "name": "dry_run",
                        "in": "query",
                        "required": False,
                        "schema": {"type": "boolean", "default": False},
                    },
                    {"name": "Idempotency-Key", "in": "header", "required": False, "schema": TEXT},
                ],
                "requestBody": {
                    "required": True,
                    "content": {JSON: {"schema": {"$ref": "#/components/schemas/Order"}}},
                },
                "responses": {
                    "202": {"content": {JSON: {"schema": {"$ref": "#/components/schemas/Job"}}}},
                    "204": {"description": "nothing"},
                },
            },
            "get": {"responses": {"200": {"content": {JSON: {"schema": {"$ref": "#/components/schemas/Job"}}}}}},
        },
    },
    "components": {
        "schemas": {
            "Order": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"project": TEXT | {"maxLength": 9}, "priority": TEXT | {"default": "normal"}},
                "required": ["project"],
            },
            "Job": {
                "type": "object",
                "properties": {"id": TEXT, "status": {"enum": ["queued", "ready"]}, "note": TEXT},
                "required": ["id", "status"],
            },
        }
    },
}


def _post(document: Schema) -> Schema:
    return document["paths"]["/jobs"]["post"]


def _order(document: Schema) -> Schema:
    return document["components"]["schemas"]["Order"]


def _job(document: Schema) -> Schema:
    return document["components"]["schemas"]["Job"]


ALLOWED: dict[str, Change] = {
    "nothing": lambda api: None,
    "a route is added": lambda api: api["paths"].update({"/queue": api["paths"]["/jobs"]}),
    "an optional parameter is added": lambda api: _post(api)["parameters"].append(
        {"name": "why", "in": "query", "schema": TEXT}
    ),
    "an answer is added": lambda api: _post(api)["responses"].update({"200": {}}),
    "an optional field may be sent": lambda api: _order(api)["properties"].update(pool=TEXT),
    "a longer text may be sent": lambda api: _order(api)["properties"]["project"].update(maxLength=99),
    "what had to be sent may be left out": lambda api: _order(api).update(required=[]),
    "a field is shown": lambda api: _job(api)["properties"].update(pool=TEXT),
    "a field is always shown": lambda api: _job(api)["required"].append("note"),
    "a word is shown no more": lambda api: _job(api)["properties"]["status"].update(enum=["queued"]),
}
REFUSED: dict[str, tuple[Change, str, str]] = {
    "a route is gone": (lambda api: api["paths"]["/jobs"].pop("get"), "GET /jobs", "the route is gone"),
    "a parameter is gone": (lambda api: _post(api)["parameters"].pop(), "header Idempotency-Key", "gone"),
    "a parameter is required": (
        lambda api: _post(api)["parameters"][0].update(required=True),
        "query dry_run",
        "may be missing",
    ),
    "a parameter means something else": (
        lambda api: _post(api)["parameters"][0]["schema"].update(default=True),
        "query dry_run",
        "left out it meant",
    ),
    "a new parameter is required": (
        lambda api: _post(api)["parameters"].append({"name": "why", "in": "query", "required": True, "schema": TEXT}),
        "query why",
        "is not written",
    ),
    "a field of the body is gone": (lambda api: _order(api)["properties"].pop("priority"), "priority", "gone"),
    "a field of the body is required": (lambda api: _order(api)["required"].append("priority"), "priority", "missing"),
    "a new field of the body is required": (
        lambda api: (_order(api)["properties"].update(pool=TEXT), _order(api)["required"].append("pool")),
        "pool",
        "is not written",
    ),
    "a shorter text may be sent": (
        lambda api: _order(api)["properties"]["project"].update(maxLength=8),
        "project",
        "maxLength",
    ),
    "a field left out means something else": (
        lambda api: _order(api)["properties"]["priority"].update(default="low"),
        "priority",
        "left out it meant",
    ),
    "another type of body": (
        lambda api: _post(api)["requestBody"].update(content={"text/plain": {"schema": TEXT}}),
        "body application/json",
        "gone",
    ),
    "an answer is gone": (lambda api: _post(api)["responses"].pop("204"), "204", "gone"),
    "a shown field is gone": (lambda api: _job(api)["properties"].pop("note"), "note", "gone"),
    "a shown field is retyped": (lambda api: _job(api)["properties"].update(note={"type": "integer"}), "note", "type"),
    "a shown field may be missing": (lambda api: _job(api)["required"].remove("id"), "id", "may be missing"),
    "a new word is shown": (
        lambda api: _job(api)["properties"]["status"].update(enum=["queued", "ready", "lost"]),
        "status",
        "lost is not in the closed set",
    ),
}


@pytest.mark.parametrize("change", ALLOWED.values(), ids=list(ALLOWED))
def test_what_no_client_notices_may_be_done(change: Change) -> None:
    assert http_breaches(RELEASED, _changed(change)) == []


@pytest.mark.parametrize(("change", "where", "rule"), REFUSED.values(), ids=list(REFUSED))
def test_what_a_client_would_stumble_over_is_named(change: Change, where: str, rule: str) -> None:
    told = [str(each) for each in http_breaches(RELEASED, _changed(change))]

    assert any(where in each and rule in each for each in told), told


def test_our_own_api_does_not_break_itself() -> None:
    assert http_breaches(openapi_document(), openapi_document()) == []


def _changed(change: Change) -> Schema:
    api = copy.deepcopy(RELEASED)
    change(api)
    return api

"""The client and the document of the API: it asks for everything that is there, and reads what is said."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from headgate import fetching, following, happenings, leasing, operating, overseen, values, verbs, waiting
from headgate.exchange import AskTerms, Open, Patience, Request, Send, Terms
from headgate_contracts.generate import HERE
from tests.fixtures.scripted import JOB

DOCUMENT: Final = json.loads((HERE / "headgate_contracts" / "openapi.json").read_text())
SCHEMAS: Final = DOCUMENT["components"]["schemas"]
FOR_PAGES: Final = {"POST /v1/stream-tickets"}  # browsers alone cannot send headers with a stream
ASKED: Final[dict[str, tuple[Any, ...]]] = {
    "batch": ([],),
    "submit_workflow": (["a"],),
    "pause": ("all",),
    "set_limit": ("workflows", 3),
    "release": ("workflows", "j1:1"),
    "reprioritize": ("j1", "high"),
}
READS: Final[dict[type[values.Value], str]] = {
    values.JobState: "ShownJob",
    values.StageTitle: "StageTitle",
    values.QueuePlace: "QueuePart",
    values.Hindrance: "WaitingOn",
    values.IterationsUsed: "Iterations",
    values.UsageOfDay: "Usage",
    values.JobFault: "JobError",
    values.StageModelUsage: "StageUsage",
    values.JobModelUsage: "ShownModelUsage",
    values.Question: "ShownQuestion",
    values.StageProgress: "ShownProgress",
    values.FailedWork: "FailedWork",
    values.WorkflowState: "ShownWorkflow",
    values.StageStart: "ShownStart",
    values.StageStarts: "ShownStarts",
    values.ResultFile: "ShownFile",
    values.ResultFiles: "ShownFiles",
    values.HistoryEvent: "HistoryEntry",
    values.Explanation: "Explanation",
    values.ItemAnswer: "ItemOutcome",
    values.ItemAnswers: "Outcomes",
    values.JobWait: "ShownWait",
    values.JobWaits: "ShownWaits",
    values.JobNumbers: "JobCounts",
    values.OwnPosition: "OwnPosition",
    values.PausedScope: "ShownPause",
    values.QueueLine: "QueueLine",
    values.PipelineState: "ShownPipeline",
    values.QueueState: "ShownQueue",
    overseen.SlotHolder: "ShownHolder",
    overseen.LeaseState: "ShownLease",
    overseen.GroupState: "ShownGroup",
    overseen.WorkerState: "ShownWorker",
    overseen.PipelineRemoved: "RemovedPipeline",
    overseen.WaitsOf: "Waits",
    overseen.ForecastHits: "HitRate",
    overseen.RefusalsOfHour: "Refused",
    overseen.QueueAnalytics: "Analytics",
    overseen.ChartLine: "StatsLine",
    overseen.Charts: "ShownStats",
    overseen.AttemptOfWorker: "WorkerAttempt",
    overseen.AuditRecord: "AuditEntry",
    overseen.ScopeChanged: "ScopeChange",
    overseen.LeaseFreed: "LeaseRelease",
    overseen.TokenRevoked: "TokenRevocation",
    overseen.PolicyState: "ShownPolicy",
    overseen.ContentErased: "Erasure",
}


def test_every_value_is_compared() -> None:
    known = {kind for module in (values, overseen) for kind in vars(module).values() if inspect.isclass(kind)}

    assert {kind for kind in known if issubclass(kind, values.Value)} - {values.Value} == set(READS)


@pytest.mark.parametrize("kind", READS, ids=lambda kind: kind.__name__)
def test_a_value_names_fields_that_are_said_and_relies_on_none_that_may_be_missing(kind: type[values.Value]) -> None:
    schema = SCHEMAS[READS[kind]]

    named = {field.alias or name: field for name, field in kind.model_fields.items()}
    assert set(named) <= set(schema["properties"])
    assert {name for name, field in named.items() if field.is_required()} <= set(schema["required"])


def test_every_operation_has_a_verb() -> None:
    operations = {
        f"{method.upper()} {re.sub(r'{[^}]*}', '*', path)}"
        for path, methods in DOCUMENT["paths"].items()
        for method in methods
        if path.startswith("/v1") and method in {"get", "post", "put", "patch", "delete"}
    }
    scripts = [each for module in (verbs, waiting, operating, fetching, leasing) for each in _public(module)] + [
        following.lines
    ]

    assert {_first(script) for script in scripts} | FOR_PAGES == operations, "give the client a verb for it"


@pytest.mark.parametrize("name", ["snapshot", "status", "position", "confirmation", "log", "resync", "end"])
def test_every_kind_of_event_of_the_document_is_known(name: str) -> None:
    told = DOCUMENT["paths"]["/v1/jobs/{job_id}/stream"]["get"]["responses"]["200"]["description"]

    assert name in told
    assert name in happenings.KINDS


def _public(module: Any) -> list[Callable[..., Any]]:
    """Its scripts that take no file, no folder and no request."""
    found = [each for each in vars(module).values() if inspect.isgeneratorfunction(each)]
    return [
        each
        for each in found
        if each.__module__ == module.__name__
        and not each.__name__.startswith("_")
        and not {"file", "path", "folder", "request"} & set(inspect.signature(each).parameters)
    ]


def _first(script: Callable[..., Any]) -> str:
    """The operation that it begins with."""
    needed = [each for each in inspect.signature(script).parameters.values() if each.default is each.empty]
    given = ASKED.get(script.__name__) or ("j1",) * sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in needed)
    named = {"project": "shop"} if any(each.name == "project" for each in needed) else {}
    named |= {"question": "q1"} if script is verbs.answer else {}  # without one it asks which is open
    run = script(*given, **named)
    terms = Terms(patience=Patience(), now_s=lambda: 0.0, random=lambda: 0.0, new_key=lambda: "k")
    effect = run.send(None)
    while isinstance(effect, AskTerms) or not isinstance(effect, Send | Open):
        effect = run.send(terms if isinstance(effect, AskTerms) else 0)
    return _operation(effect.request)


def _operation(request: Request) -> str:
    variable = {"j1", "workflows", "j1:1", "j1%3A1", "group%3Ashop%3Aj1"}
    first, *parts = request.path.removeprefix("/v1/").split("/")
    return "/".join([f"{request.method} /v1/{first}", *("*" if part in variable else part for part in parts)])


def test_a_job_of_the_tests_is_one_of_the_document() -> None:
    assert set(JOB) <= set(SCHEMAS["ShownJob"]["properties"])

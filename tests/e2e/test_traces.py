"""Each job has a trace of its own, from admission to the first delivery, and its `debug_id` finds it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, format_trace_id

from headgate_contracts import Tier
from libs.local.servers import NatsServer, ValkeyServer
from libs.runtime.eventually import eventually
from libs.runtime.telemetry import job_trace
from tests.fixtures.installation import installed
from tests.fixtures.otlp import Receiver
from tests.fixtures.quartet import Quartet, a_quartet
from tests.fixtures.sources import running

CALLER = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")  # a trace and a span of the client's
TRACEPARENT = f"00-{'-'.join(CALLER)}-01"
STAGES = ["scaffold", "code", "deps", "checks"]
INPUT = {"stages": dict.fromkeys(STAGES, 0.02), "provider": "ollama"}
DISPATCHED = "headgate.jobs.v1.{job}.{user}.{project}.dispatched.{pool}"
METRICS = {
    "admission": {"http_server_request_duration_seconds"},
    "scheduler": {
        "headgate_concurrency_slots_active",
        "headgate_concurrency_slots_limit",
        "headgate_concurrency_acquisition_total",
        "headgate_concurrency_wait_seconds",
        "headgate_llm_in_flight",
        "headgate_queue_length",
        "headgate_inputs_bytes",
        "headgate_scheduler_leads",
        "headgate_scheduler_cycle_seconds",
        "headgate_scheduler_events_total",
        "headgate_scheduler_dispatched_total",
        "headgate_scheduler_command_seconds",
    },
    "worker": {"headgate_worker_jobs_running", "headgate_worker_stage_seconds", "headgate_worker_attempts_total"},
    "notifier": {"headgate_notifier_streams"},
}


@dataclass(frozen=True)
class Followed:
    """One job, submitted with a `traceparent` and followed to its end."""

    quartet: Quartet
    job: dict[str, Any]
    spans: tuple[ReadableSpan, ...]

    @property
    def of_job(self) -> dict[str, list[ReadableSpan]]:
        """The spans of the job's own trace, by service and name."""
        found: defaultdict[str, list[ReadableSpan]] = defaultdict(list)
        for span in self.spans:
            if ids(span)[0] == job_trace(self.job["id"]).trace_id:
                found[f"{service(span)}: {span.name}"].append(span)
        return found

    def one(self, name: str) -> ReadableSpan:
        [span] = self.of_job[name]
        return span


@pytest_asyncio.fixture(scope="module")
async def followed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Followed]:
    """It fails in its last stage, so that the client is told a `debug_id`. All tests look at the same one."""
    folder, exporter = tmp_path_factory.mktemp("quartet"), InMemorySpanExporter()
    nats, valkey = NatsServer(folder / "nats"), ValkeyServer(folder / "valkey")
    async with running(nats), running(valkey), a_quartet(nats.url, valkey.url, folder, exporter) as quartet:
        async with quartet.client("ann") as ann:
            job = await submit(ann, quartet.urls["admission"], INPUT | {"fail_at": "checks"})
            await stream_to_end(ann, f"{quartet.urls['notifier']}/v1/jobs/{job}/stream")
            shown = await ann.get(f"{quartet.urls['admission']}/v1/jobs/{job}")
        name = f"stage {STAGES[-1]}"
        await eventually(lambda: {name, "deliver"} <= {span.name for span in exporter.get_finished_spans()})
        yield Followed(quartet, shown.json(), exporter.get_finished_spans())


async def test_a_request_goes_on_with_its_callers_trace_and_the_job_begins_its_own(followed: Followed) -> None:
    [request] = [span for span in followed.spans if format_trace_id(ids(span)[0]) == CALLER[0]]
    root = followed.one("admission: accept")

    assert (service(request), request.kind, request.name) == ("admission", SpanKind.SERVER, "POST /v1/jobs")
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == CALLER[1]
    assert root.parent is None
    assert [link_ids(link) for link in root.links] == [ids(request)]


async def test_the_debug_id_that_a_client_is_told_is_the_jobs_trace(followed: Followed) -> None:
    assert followed.job["status"] == "failed"
    assert followed.job["error"]["debug_id"] == format_trace_id(ids(followed.one("admission: accept"))[0])


async def test_every_step_in_every_service_is_a_child_of_the_jobs_root(followed: Followed) -> None:
    root = ids(followed.one("admission: accept"))

    assert sorted(followed.of_job) == sorted(
        [
            "admission: accept",
            "scheduler: decide dispatched",
            f"worker: process {DISPATCHED}",
            *(f"worker: stage {stage}" for stage in STAGES),
            "notifier: deliver",
        ]
    )
    others = [span for spans in followed.of_job.values() for span in spans if span.name != "accept"]
    assert {(span.parent.trace_id, span.parent.span_id) for span in others if span.parent} == {root}
    assert all(span.parent for span in others)


async def test_what_was_handed_over_as_a_message_is_linked_to_where_it_came_from(followed: Followed) -> None:
    decided, processed = followed.one("scheduler: decide dispatched"), followed.one(f"worker: process {DISPATCHED}")
    delivered = followed.one("notifier: deliver")
    [asked] = [span for span in followed.spans if span.name == "GET /v1/jobs/{job_id}/stream"]

    assert [link_ids(link) for link in processed.links] == [ids(decided)]
    assert processed.kind is SpanKind.CONSUMER
    assert ids(asked) in [link_ids(link) for link in delivered.links]
    assert any(link_ids(link)[0] == ids(delivered)[0] for link in delivered.links), "the writer of what it shows"


async def test_names_are_few_and_those_of_messages_follow_the_conventions(followed: Followed) -> None:
    messages = [span for span in followed.spans if "messaging.system" in attributes(span)]

    assert not [span.name for span in followed.spans if followed.job["id"] in span.name or "ann" in span.name]
    assert not [span.name for span in followed.spans if any(letter.isdigit() for letter in span.name.replace("v1", ""))]
    assert messages
    for span in messages:
        said = attributes(span)
        assert span.name == f"{said['messaging.operation.name']} {said['messaging.destination.template']}"


async def test_each_service_shows_its_own_metrics(followed: Followed) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        pages = {name: (await client.get(f"{url}/metrics")).text for name, url in followed.quartet.urls.items()}

    shown = {
        name: {line.split(" ")[2] for line in page.splitlines() if "# TYPE" in line} for name, page in pages.items()
    }
    assert {name: wanted - shown[name] for name, wanted in METRICS.items()} == {name: set() for name in METRICS}
    assert followed.job["id"] not in "".join(pages.values())


async def test_four_processes_send_one_trace_to_a_receiver(tmp_path: Path) -> None:
    with Receiver() as receiver:
        async with (
            installed(tmp_path, workers=1, environ={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}) as there,
            there.client("ann", Tier.CTO_SCALE) as ann,
        ):
            job = await submit(ann, there.up.url, INPUT)
            await stream_to_end(ann, f"{there.up.url}/v1/jobs/{job}/stream")
        received = receiver.received()  # what was left was sent at the end

    trace_id = job_trace(job).trace_id.to_bytes(16, "big")
    assert {each.service for each in received if each.span.trace_id == trace_id} == set(METRICS)
    spans = {each.span.name: each.span for each in received if each.span.trace_id == trace_id}
    assert {"accept", "decide dispatched", f"process {DISPATCHED}", "deliver"} < spans.keys()
    assert {f"stage {stage}" for stage in STAGES} < spans.keys()
    assert {span.parent_span_id for name, span in spans.items() if name != "accept"} == {spans["accept"].span_id}
    [request] = [each.span for each in received if each.span.trace_id.hex() == CALLER[0]]
    assert request.parent_span_id.hex() == CALLER[1]
    assert [(link.trace_id, link.span_id) for link in spans["accept"].links] == [(request.trace_id, request.span_id)]


async def submit(client: httpx.AsyncClient, url: str, content: dict[str, Any]) -> str:
    body = {"project_id": "shop", "pipeline": "rehearsal", "input": content}
    response = await client.post(f"{url}/v1/jobs", json=body, headers={"traceparent": TRACEPARENT})
    assert response.status_code == 202, response.text
    return response.json()["id"]


async def stream_to_end(client: httpx.AsyncClient, url: str) -> None:
    async with client.stream("GET", url) as stream:
        assert stream.status_code == 200
        lines = [line async for line in stream.aiter_lines()]
    assert "event: end" in lines, json.dumps(lines)


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def link_ids(link: Any) -> tuple[int, int]:
    return link.context.trace_id, link.context.span_id


def service(span: ReadableSpan) -> object:
    return span.resource.attributes["service.name"]


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})

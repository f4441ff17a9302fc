"""A job's trace is its client's, from the request to the first delivery, and its `debug_id` finds it."""

from __future__ import annotations

import json
import re
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
from opentelemetry.trace import SpanKind, StatusCode, format_trace_id

from libs.eventlog import LogSettings, connect, open_log
from libs.local.servers import NatsServer, ValkeyServer
from libs.runtime.clock import SystemClock
from libs.runtime.eventually import eventually
from tests.fixtures.four_services import FourServices, four_services
from tests.fixtures.sources import running

ROOT = Path(__file__).parents[2]
CALLER = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")  # a trace and a span of the client's
TRACEPARENT = f"00-{'-'.join(CALLER)}-01"
STAGES = ["scaffold", "code", "deps", "checks"]
INPUT = {"stages": dict.fromkeys(STAGES, 0.02), "provider": "ollama"}
DISPATCHED = "headgate.jobs.v1.{job}.{user}.{project}.dispatched.{pool}"
REQUEST, CLAIMED = "admission: POST /v1/jobs", f"worker: process {DISPATCHED}"
CAUSES = {  # what is recorded of a job that runs through, each with its parent
    REQUEST: None,
    "admission: accept": REQUEST,
    "admission: reserve": "admission: accept",
    "admission: append queued": "admission: accept",
    "scheduler: decide dispatched": REQUEST,
    CLAIMED: "scheduler: decide dispatched",
    "worker: claim": CLAIMED,
    "worker: attempt": CLAIMED,
    "worker: append stage": "worker: attempt",
    **{f"worker: stage {stage}": "worker: attempt" for stage in STAGES},
    "worker: wait for slots": "worker: stage code",
    "scheduler: process headgate.cmd.v1.{shard}.acquire": "worker: wait for slots",
    "scheduler: process headgate.cmd.v1.{shard}.give_up": "worker: stage code",
    "worker: append failed": "worker: attempt",
    "notifier: deliver": "worker: append failed",
    "scheduler: process headgate.cmd.v1.{shard}.position": "notifier: deliver",
}
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

    services: FourServices
    job: dict[str, Any]
    spans: tuple[ReadableSpan, ...]
    carried: tuple[str, ...]  # by each of its events
    nats_url: str

    @property
    def of_job(self) -> dict[str, list[ReadableSpan]]:
        """The spans of its client's trace, by service and name."""
        found: defaultdict[str, list[ReadableSpan]] = defaultdict(list)
        for span in self.spans:
            if format_trace_id(ids(span)[0]) == CALLER[0]:
                found[f"{service(span)}: {span.name}"].append(span)
        return found

    def one(self, name: str) -> ReadableSpan:
        [span] = self.of_job[name]
        return span


@pytest_asyncio.fixture(scope="module")
async def followed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Followed]:
    """It fails in its last stage, so that the client is told a `debug_id`. All tests look at the same one."""
    folder, exporter = tmp_path_factory.mktemp("services"), InMemorySpanExporter()
    nats, valkey = NatsServer(folder / "nats"), ValkeyServer(folder / "valkey")
    async with running(nats), running(valkey), four_services(nats.url, valkey.url, folder, exporter) as services:
        async with services.client("ann") as ann:
            job = await submit(ann, services.urls["admission"], INPUT | {"fail_at": "checks"})
            shown = await ended(ann, f"{services.urls['admission']}/v1/jobs/{job}")
            await stream_to_end(ann, f"{services.urls['notifier']}/v1/jobs/{job}/stream")
        await eventually(lambda: {"attempt", "deliver"} <= {span.name for span in exporter.get_finished_spans()})
        nc = await connect(nats.url, name="traces")
        try:
            log = await open_log(nc, LogSettings(), clock=SystemClock())
            carried = tuple(str(record.traceparent) for record in await log.read(job))
        finally:
            await nc.close()
        yield Followed(services, shown, exporter.get_finished_spans(), carried, nats.url)


async def test_a_request_and_all_that_is_done_for_its_job_go_on_with_its_callers_trace(followed: Followed) -> None:
    request = followed.one("admission: POST /v1/jobs")

    assert request.kind is SpanKind.SERVER
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == CALLER[1]
    assert sorted(followed.of_job) == sorted(CAUSES)


async def test_the_debug_id_that_a_client_is_told_is_its_own_trace(followed: Followed) -> None:
    assert followed.job["status"] == "failed"
    assert followed.job["error"]["debug_id"] == followed.job["debug_id"] == CALLER[0]


async def test_every_step_in_every_service_is_a_child_of_what_caused_it(followed: Followed) -> None:
    names = {ids(span): name for name, spans in followed.of_job.items() for span in spans}
    causes = {
        (name, names[span.parent.trace_id, span.parent.span_id])
        for name, spans in followed.of_job.items()
        for span in spans
        if span.parent and name != REQUEST
    }

    assert sorted(causes) == sorted((name, cause) for name, cause in CAUSES.items() if cause)
    assert followed.one(CLAIMED).kind is SpanKind.CONSUMER


async def test_a_stage_that_failed_says_what_its_user_is_told(followed: Followed) -> None:
    summary = followed.job["error"]["summary"]
    wrong = {
        name: (span.status.status_code, span.status.description)
        for name, spans in followed.of_job.items()
        for span in spans
        if not span.status.is_unset
    }

    failed = (f"worker: stage {STAGES[-1]}", "worker: attempt")
    assert wrong == dict.fromkeys(failed, (StatusCode.ERROR, summary))


async def test_a_delivery_links_to_the_stream_that_was_asked_for(followed: Followed) -> None:
    [asked] = [span for span in followed.spans if span.name == "GET /v1/jobs/{job_id}/stream"]

    assert [link_ids(link) for link in followed.one("notifier: deliver").links] == [ids(asked)]


async def test_every_event_of_the_job_carries_its_trace(followed: Followed) -> None:
    assert followed.carried
    assert {header.split("-")[1] for header in followed.carried} == {CALLER[0]}


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
        pages = {name: (await client.get(f"{url}/metrics")).text for name, url in followed.services.urls.items()}

    shown = {
        name: {line.split(" ")[2] for line in page.splitlines() if "# TYPE" in line} for name, page in pages.items()
    }
    assert {name: wanted - shown[name] for name, wanted in METRICS.items()} == {name: set() for name in METRICS}
    assert followed.job["id"] not in "".join(pages.values())


async def test_the_page_of_metrics_has_all_that_are_shown(followed: Followed) -> None:
    page = set(re.findall(r"`(headgate_[a-z_]+)`", (ROOT / "docs" / "telemetry.md").read_text()))
    async with httpx.AsyncClient(timeout=30) as client:
        pages = [(await client.get(f"{url}/metrics")).text for url in followed.services.urls.values()]

    assert {line.split(" ")[2] for text in pages for line in text.splitlines() if "# TYPE headgate_" in line} <= page


async def submit(client: httpx.AsyncClient, url: str, content: dict[str, Any]) -> str:
    body = {"project_id": "shop", "pipeline": "rehearsal", "input": content}
    response = await client.post(f"{url}/v1/jobs", json=body, headers={"traceparent": TRACEPARENT})
    assert response.status_code == 202, response.text
    return response.json()["id"]


async def ended(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    shown: dict[str, Any] = {}

    async def is_over() -> bool:
        shown.update((await client.get(url)).json())
        return shown["status"] in ("failed", "ready")

    await eventually(is_over)
    return shown


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

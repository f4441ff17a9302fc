"""A job's trace is its client's, from the request to the first delivery, and its `debug_id` finds it."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_trace_id

from headgate_contracts import Event, Tier
from headgate_contracts.events import JobData, JobStage
from libs.eventlog import JetStreamLog, LogSettings, Record, connect, open_log
from libs.eventlog.api import state_of
from libs.eventlog.streams import JOBS
from libs.local.servers import NatsServer, ValkeyServer
from libs.runtime.clock import SystemClock
from libs.runtime.eventually import eventually
from tests.fixtures.installation import installed
from tests.fixtures.otlp import Receiver
from tests.fixtures.quartet import Quartet, a_quartet
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
USERS, JOBS_EACH = 4, 10
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
    folder, exporter = tmp_path_factory.mktemp("quartet"), InMemorySpanExporter()
    nats, valkey = NatsServer(folder / "nats"), ValkeyServer(folder / "valkey")
    async with running(nats), running(valkey), a_quartet(nats.url, valkey.url, folder, exporter) as quartet:
        async with quartet.client("ann") as ann:
            job = await submit(ann, quartet.urls["admission"], INPUT | {"fail_at": "checks"})
            shown = await ended(ann, f"{quartet.urls['admission']}/v1/jobs/{job}")
            await stream_to_end(ann, f"{quartet.urls['notifier']}/v1/jobs/{job}/stream")
        await eventually(lambda: {"attempt", "deliver"} <= {span.name for span in exporter.get_finished_spans()})
        nc = await connect(nats.url, name="traces")
        try:
            log = await open_log(nc, LogSettings(), clock=SystemClock())
            carried = tuple(str(record.traceparent) for record in await log.read(job))
        finally:
            await nc.close()
        yield Followed(quartet, shown, exporter.get_finished_spans(), carried, nats.url)


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
        pages = {name: (await client.get(f"{url}/metrics")).text for name, url in followed.quartet.urls.items()}

    shown = {
        name: {line.split(" ")[2] for line in page.splitlines() if "# TYPE" in line} for name, page in pages.items()
    }
    assert {name: wanted - shown[name] for name, wanted in METRICS.items()} == {name: set() for name in METRICS}
    assert followed.job["id"] not in "".join(pages.values())


async def test_the_page_of_metrics_has_all_that_are_shown_and_none_that_no_code_makes(followed: Followed) -> None:
    page = set(re.findall(r"`(headgate_[a-z_]+)`", (ROOT / "docs" / "telemetry.md").read_text()))
    made = {
        name
        for folder in ("libs", "services")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'"(headgate_[a-z_]+)"', path.read_text())
    }
    async with httpx.AsyncClient(timeout=30) as client:
        pages = [(await client.get(f"{url}/metrics")).text for url in followed.quartet.urls.values()]

    shown = {line.split(" ")[2] for text in pages for line in text.splitlines() if "# TYPE headgate_" in line}
    assert shown - page == set()
    assert {name.removesuffix("_total") for name in page} == made


async def test_under_load_each_figure_is_what_the_log_says(followed: Followed) -> None:
    quartet = followed.quartet
    async with AsyncExitStack() as stack:
        users = [await stack.enter_async_context(quartet.client(f"user-{number}")) for number in range(USERS)]
        url = quartet.urls["admission"]
        await asyncio.gather(*(submit(user, url, INPUT) for user in users for _ in range(JOBS_EACH)))
        assert (await users[0].post(f"{url}/v1/jobs", json={})).status_code == 422
    written = Counter[str]()

    async def all_are_over() -> bool:
        written.clear()
        written.update(await events_in(followed.nats_url))
        return written["ready"] + written["failed"] == written["queued"] > USERS * JOBS_EACH

    await eventually(all_are_over, every_s=0.5)
    figures, calls = Figures(), written["stage code"]
    await eventually(lambda: figures.look(quartet.urls, ended=written["ready"] + written["failed"]))

    submitted, ended = "headgate_admission_submissions_total", "headgate_jobs_ended_total"
    attempts, acquired = "headgate_worker_attempts_total", "headgate_concurrency_acquisition_total"
    assert figures.of(submitted, answer="202") == written["queued"]
    assert figures.of("headgate_admission_accept_seconds_count") == written["queued"]
    assert figures.of(submitted, answer="422") == figures.of("headgate_admission_refused_total") == 1
    assert figures.of("headgate_scheduler_dispatched_total") == written["dispatched"]
    assert figures.of("headgate_scheduler_events_total", event="dispatched") == written["dispatched"]
    assert figures.of(attempts, event="ready") == figures.of(ended, end="ready") == written["ready"]
    assert figures.of(attempts, event="failed") == figures.of(ended, end="failed") == written["failed"]
    assert figures.of("headgate_worker_stage_seconds_count") == sum(written[f"stage {stage}"] for stage in STAGES)
    assert figures.of(acquired, group="llm:ollama", result="acquired") == calls
    assert figures.of("headgate_concurrency_wait_seconds_count", group="llm:ollama") == calls
    assert figures.of(acquired, result="rejected") == 0
    blocked = figures.of("headgate_llm_blocked_requests_total")
    assert blocked == figures.of("headgate_llm_block_seconds_count")
    assert figures.of("headgate_concurrency_slots_active") == figures.of("headgate_llm_in_flight") == 0
    assert figures.of("headgate_worker_jobs_running") == figures.of("headgate_queue_length") == 0


@dataclass
class Figures:
    """What the pages of metrics say, of all four services."""

    lines: list[tuple[str, dict[str, str], float]] = field(default_factory=list[tuple[str, dict[str, str], float]])

    async def look(self, urls: dict[str, str], *, ended: int) -> bool:
        """Whether the last job's end has come everywhere: gauges are looked at every few seconds."""
        async with httpx.AsyncClient(timeout=30) as client:
            pages = [(await client.get(f"{url}/metrics")).text for url in urls.values()]
        lines = [line.rpartition(" ") for page in pages for line in page.splitlines() if line.startswith("headgate_")]
        self.lines = [
            (said.partition("{")[0], dict(re.findall(r'(\w+)="([^"]*)"', said)), float(value))
            for said, _, value in lines
        ]
        gauges = ("headgate_worker_jobs_running", "headgate_concurrency_slots_active", "headgate_llm_in_flight")
        return self.of("headgate_jobs_ended_total") == ended and not any(map(self.of, gauges))

    def of(self, name: str, **labels: str) -> float:
        return sum(value for said, shown, value in self.lines if said == name and labels.items() <= shown.items())


async def events_in(nats_url: str) -> list[str]:
    """The events of jobs in the log, each stage by its name."""
    nc = await connect(nats_url, name="figures")
    try:
        state, records = await state_of(nc, JOBS), list[Record]()
        async with aclosing(JetStreamLog(nc, epoch=state.epoch or "").follow(after=0)) as pages:
            while len(records) < state.last_seq:
                records += (await anext(pages)).records
    finally:
        await nc.close()
    datas = [record.event.data for record in records if isinstance(record.event, Event)]
    return [
        f"stage {data.stage}" if isinstance(data, JobStage) else data.EVENT.value
        for data in datas
        if isinstance(data, JobData)
    ]


async def test_four_processes_send_one_trace_to_a_receiver(tmp_path: Path) -> None:
    with Receiver() as receiver:
        async with (
            installed(tmp_path, workers=1, environ={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}) as there,
            there.client("ann", Tier.CTO_SCALE) as ann,
        ):
            job = await submit(ann, there.up.url, INPUT)
            await stream_to_end(ann, f"{there.up.url}/v1/jobs/{job}/stream")
        received = receiver.received()  # what was left was sent at the end

    spans = {each.span.name: each.span for each in received if each.span.trace_id.hex() == CALLER[0]}
    assert {each.service for each in received if each.span.trace_id.hex() == CALLER[0]} == set(METRICS)
    assert spans["POST /v1/jobs"].parent_span_id.hex() == CALLER[1]
    assert {"append queued", "decide dispatched", "attempt", "keep result", "append ready", "deliver"} <= spans.keys()


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

"""One client's trace through four processes and over OTLP: a lost worker, a question, a failure and a retry.

Also: nothing that a user or an operator keeps to themselves is sent anywhere, and the page of telemetry names what is.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from headgate_contracts import Event, Tier
from headgate_contracts.events import JobData, JobGivenBack
from headgate_contracts.vocabulary import GivenBackReason
from libs.eventlog import Record
from libs.runtime.eventually import eventually
from services.worker.build.asked import name_package
from tests.fixtures.installation import Installation, installed
from tests.fixtures.otlp import GrpcReceiver, Received, Receiver, Request, attributes, logs_of, metrics_of
from tests.fixtures.providers import KEY, Asked, a_provider, files, is_silent, says, status

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "telemetry.md").read_text()
CALLER: Final = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")  # a trace and a span of the client's
RETRIER: Final = ("5cf92f3577b34da6a3ce929d0e0e4736", "11f067aa0ba902b7")
STATE: Final = "vendor=of-the-client"
SECRET: Final = "whsec_" + base64.b64encode(b"s" * 32).decode()
PLANTED: Final = ("planted-in-the-prompt", "eve@planted.example", "planted_in_the_answer", KEY, SECRET, "eyJ")
PROMPT: Final = "A shop for eve@planted.example, planted-in-the-prompt"
PACKAGE: Final = name_package(PROMPT, project="shop").package
TIDY: Final = {
    f"src/{PACKAGE}/cart.py": '"""planted_in_the_answer."""\n\n\ndef total(prices):\n    return sum(prices)\n',
    "tests/test_cart.py": f"from {PACKAGE}.cart import total\n\n\ndef test_it():\n    assert total([1, 2]) == 3\n",
}
WRONG: Final = TIDY | {f"src/{PACKAGE}/cart.py": '"""planted_in_the_answer."""\n\n\ndef total(prices):\n    return 7\n'}
POLICY: Final = """
[tiers.cto_scale]
cycles_per_batch = 1

[leases]
job_s = 5
heartbeat_s = 0.5
leader_s = 4
leader_heartbeat_s = 0.4

[webhooks]
internal = ["{host}"]
first_pause_s = 0.1
"""
BUILT_WITHIN_S: Final = 120.0  # a machine under full load
RARE: Final = {"headgate.refused"}  # where two schedulers commit at once
ATTRIBUTE: Final = r"`((?:headgate|gen_ai|process)\.[a-z_.]+)`"
TROUBLES: Final = ("libs.runtime.troubles", "services.admission.submission_counts")
FORCED: Final = "the job's slot was forced free"  # by an operator


@dataclass(frozen=True)
class Story:
    """What became of the two jobs, and all that was sent meanwhile."""

    first: dict[str, Any]
    again: dict[str, Any]
    received: list[Received]
    others: list[Request]
    written: str  # by all services, into their files
    shown_at_start: str  # to who started them
    called: list[Asked]  # webhooks
    asked: list[Asked]  # the provider
    records: list[Record]

    def trace(self, trace_id: str) -> list[Received]:
        return [each for each in self.received if each.span.trace_id.hex() == trace_id]

    def points(self, name: str) -> list[Any]:
        """What this metric was at last, one for each of its labels."""
        series = [metric for _, metric in metrics_of(self.others) if metric.name == name]
        return list(getattr(series[-1], str(series[-1].WhichOneof("data"))).data_points)

    def spans(self, trace_id: str) -> dict[str, list[Span]]:
        found: defaultdict[str, list[Span]] = defaultdict(list)
        for each in self.trace(trace_id):
            found[each.span.name].append(each.span)
        return found


@pytest_asyncio.fixture(scope="module")
async def story(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Story]:
    """Spans go out over gRPC, lines and metrics over HTTP."""
    folder = tmp_path_factory.mktemp("story")
    rejected = status(400, error="no e-mail like eve@planted.example")
    async with AsyncExitStack() as stack:
        spans, others = stack.enter_context(GrpcReceiver()), stack.enter_context(Receiver())
        deeds = (is_silent, says(files(WRONG)), rejected, says(files(TIDY)))
        parrot = await stack.enter_async_context(a_provider(*deeds))
        hooks = await stack.enter_async_context(a_provider(status(503), status(200)))
        host = httpx.URL(hooks.url).netloc.decode()
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": others.url,
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": spans.url,
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "HEADGATE_INDEX": "",
            "HEADGATE_PROVIDERS": "parrot",
            "PARROT_BASE_URL": parrot.url,
            "PARROT_MODEL": "parrot-1",
            "PARROT_API_KEY": KEY,
            "HEADGATE_WEBHOOK_SECRETS": json.dumps({host: [SECRET]}),
        }
        async with (
            installed(folder, policy=POLICY.format(host=host), workers=1, environ=environ) as there,
            there.client("ann", Tier.CTO_SCALE) as ann,
        ):
            body = {"pipeline": "build", "input": {"prompt": PROMPT}, "notify_url": f"http://{host}/hook"}
            first = await lived(there, ann, body, at_work=lambda _: len(parrot.asked) == 1)
            again = await confirmed(ann, await retried(ann, first["id"]))
            assert (await ann.post("/jobs", json={"project_id": "shop"})).status_code == 422
            records = await there.records()
        said = "".join(path.read_text() for path in (folder / "state").rglob("*.log"))
        shown = (folder / "up.log").read_text()
        yield Story(first, again, spans.received(), others.requests(), said, shown, hooks.asked, parrot.asked, records)


async def lived(
    there: Installation, ann: httpx.AsyncClient, body: dict[str, Any], *, at_work: Callable[[str], Any]
) -> dict[str, Any]:
    """Its worker is killed once the job is at work; then its checks fail, it asks, goes on, and fails."""
    carried = {"traceparent": f"00-{'-'.join(CALLER)}-01", "tracestate": STATE}
    submitted = await ann.post("/jobs", json={"project_id": "shop", **body}, headers=carried)
    assert submitted.status_code == 202, submitted.text
    job = submitted.json()["id"]
    await eventually(lambda: at_work(job))
    await there.kill("worker")
    await until(ann, job, "awaiting_confirmation")
    async with asyncio.TaskGroup() as group:
        group.create_task(listened(ann, job))
        assert (await ann.post(f"/jobs/{job}/confirm")).status_code == 202
        return await until(ann, job, "failed")


async def retried(ann: httpx.AsyncClient, job: str) -> dict[str, Any]:
    """By its client, within another trace; as far as its question, if it asks one."""
    carried = {"traceparent": f"00-{'-'.join(RETRIER)}-01"}
    submitted = await ann.post(f"/jobs/{job}/retry", headers=carried)
    assert submitted.status_code == 202, submitted.text
    return await until(ann, submitted.json()["id"], "awaiting_confirmation", "ready")


async def confirmed(ann: httpx.AsyncClient, shown: dict[str, Any]) -> dict[str, Any]:
    if shown["status"] == "ready":
        return shown
    assert (await ann.post(f"/jobs/{shown['id']}/confirm")).status_code == 202
    return await until(ann, shown["id"], "ready")


async def until(client: httpx.AsyncClient, job: str, *statuses: str) -> dict[str, Any]:
    shown: dict[str, Any] = {}

    async def is_there() -> bool:
        shown.update((await client.get(f"/jobs/{job}")).json())
        return shown["status"] in (*statuses, "failed", "ready")

    await eventually(is_there, within_s=BUILT_WITHIN_S)
    assert shown["status"] in statuses, json.dumps(shown)
    return shown


async def listened(client: httpx.AsyncClient, job: str) -> None:
    async with client.stream("GET", f"/jobs/{job}/stream") as stream:
        assert "event: end" in [line async for line in stream.aiter_lines()]


async def test_one_trace_goes_through_four_processes_a_lost_worker_a_question_and_a_failure(story: Story) -> None:
    spans = story.spans(CALLER[0])

    goes_through_all(spans, {each.service for each in story.trace(CALLER[0])})
    assert story.first["debug_id"] == CALLER[0]
    assert {"call webhook", "command"} <= spans.keys()


async def test_calls_and_tokens_are_those_that_the_provider_heard_and_the_log_has(story: Story) -> None:
    data = [record.event.data for record in story.records if isinstance(record.event, Event)]
    used = [each for one in data for each in getattr(one, "usage", ())]
    calls, tokens = story.points("headgate_worker_model_calls"), story.points("headgate_worker_model_tokens")

    lost = 1  # the first was never answered: its worker was killed
    assert sum(point.as_int for point in calls) == sum(each.calls for each in used) == len(story.asked) - lost > 0
    assert sum(point.as_int for point in tokens if attributes(point)["type"] == "input") == sum(
        each.input_tokens for each in used
    )


async def test_each_span_is_below_one_that_is_known_but_for_those_that_died_with_their_worker(story: Story) -> None:
    known = {each.span.span_id for each in story.received}
    alone = [each for each in story.trace(CALLER[0]) if each.span.parent_span_id not in known]
    lost = {"POST /v1/jobs", "stage scaffold", "wait for slots"}

    unexplained = {each.span.name for each in alone if not is_of_lost(each.span) and each.span.name not in lost}
    assert unexplained <= {"append stage", "process headgate.cmd.v1.{shard}.acquire"}
    assert not [each.span.name for each in story.trace(RETRIER[0]) if each in alone]


async def test_the_callers_state_is_kept_to_the_last_process(story: Story) -> None:
    kept = {each.service for each in story.trace(CALLER[0]) if each.span.trace_state == STATE}

    assert kept == {"admission", "scheduler", "worker", "notifier"}
    assert {each.headers["tracestate"] for each in story.called if CALLER[0] in each.headers["traceparent"]} == {STATE}


async def test_a_call_to_a_provider_has_model_and_tokens(story: Story) -> None:
    calls = story.spans(CALLER[0])["chat parrot-1"]

    assert [attributes(call)["headgate.outcome"] for call in calls] == ["answered", "rejected"]
    assert attributes(calls[0])["gen_ai.usage.input_tokens"] == 321
    assert attributes(calls[0])["gen_ai.provider.name"] == "parrot"


async def test_what_failed_says_so_in_the_words_of_its_user(story: Story) -> None:
    failed = {
        span.name
        for spans in story.spans(CALLER[0]).values()
        for span in spans
        if span.status.code == Status.STATUS_CODE_ERROR and span.status.message == story.first["error"]["summary"]
    }

    assert failed == {"stage code", "attempt"}


async def test_a_retried_jobs_trace_links_to_the_first_ones(story: Story) -> None:
    assert story.again["debug_id"] == RETRIER[0]
    links_to_first(story.spans(RETRIER[0]), story.spans(CALLER[0]))


async def test_every_event_of_a_job_carries_its_trace_admissions_later_ones_too(story: Story) -> None:
    events = [(record.event, record.traceparent) for record in story.records if isinstance(record.event, Event)]
    carried = {
        event.data.EVENT.value: str(parent).split("-")[1]
        for event, parent in events
        if isinstance(event.data, JobData) and event.data.job_id == story.first["id"]
    }

    assert {"queued", "given_back", "awaiting_confirmation", "confirmed", "failed"} <= carried.keys()
    assert set(carried.values()) == {CALLER[0]}


async def test_the_notifiers_figures_are_what_the_receiver_and_the_log_say(story: Story) -> None:
    calls, lags = story.points("headgate_notifier_webhooks"), story.points("headgate_notifier_lag_seconds")
    datas = [record.event.data for record in story.records if isinstance(record.event, Event)]
    names = [data.EVENT.value for data in datas if isinstance(data, JobData) and data.job_id == story.first["id"]]
    live = names[names.index("awaiting_confirmation") + 1 :]  # it was listened to from there on
    outcomes = {attributes(each)["outcome"]: each.as_int for each in calls}

    assert outcomes == {"refused": 1, "taken": len(story.called) - 1}
    assert 1 <= sum(each.count for each in lags) <= len(live)  # what is due together is one piece


async def test_each_attempt_that_lost_its_worker_counts_once(story: Story) -> None:
    datas = [record.event.data for record in story.records if isinstance(record.event, Event)]
    lost = [data for data in datas if isinstance(data, JobGivenBack) and data.reason is GivenBackReason.LOST]

    assert [each.as_int for each in story.points("headgate_scheduler_lost")] == [len(lost)] == [1]


async def test_no_prompt_secret_token_or_address_is_sent_anywhere(story: Story) -> None:
    sent = "\n".join([*(str(each.span) for each in story.received), *(str(each.message) for each in story.others)])

    assert "stage code" in sent
    assert "a submission was refused" in sent
    assert [planted for planted in PLANTED if planted in sent] == []
    assert [planted for planted in PLANTED if planted in story.written] == []


async def test_the_page_names_each_span_and_its_attributes_and_no_other(story: Story) -> None:
    rows, seen = rows_of("Traces"), defaultdict[str, set[str]](set)
    for each in story.received:
        if not re.match(r"(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b", each.span.name):
            name = next((name for name in rows if matches(name, each.span.name)), f"not on the page: {each.span.name}")
            ours = {attribute for attribute in attributes(each.span) if not attribute.startswith("messaging.")}
            seen[name] |= ours - {"error.type"}

    told = {name: set(re.findall(ATTRIBUTE, cells[3])) for name, cells in rows.items()}
    told.pop("POST /v1/jobs")
    assert {name: said - RARE for name, said in told.items()} == dict(seen)


async def test_the_page_names_each_line_about_a_job_that_went_wrong(story: Story) -> None:
    lines = [record for _, record in logs_of(story.others)]
    about = [line for line in lines if attributes(line)["logger"] in TROUBLES]
    page, words = rows_of("Logs"), {line.body.string_value for line in about}

    said = {next((row for row in page if matches(row, each)), f"not on the page: {each}") for each in words}
    assert said == page.keys() - {FORCED}
    for line in about:
        assert {"user_id"} <= attributes(line).keys()
        assert line.trace_id


async def test_what_looks_like_a_mistake_is_said_to_who_starts_it(story: Story) -> None:
    said = "policy: tiers.partner.cycles_per_batch"

    assert said in story.shown_at_start.partition("\nready http")[0]


def goes_through_all(spans: dict[str, list[Span]], services: set[str]) -> None:
    """A client's request, a lost worker, a question and a failure."""
    assert services == {"admission", "scheduler", "worker", "notifier"}
    assert len(spans["decide dispatched"]) == 3  # at first, after the lost worker, after the question
    assert [span.status.message for span in spans["decide given_back"]] == ["the job's worker was lost"]
    assert {"append confirmed", "append failed", "deliver", "wait for slots"} <= spans.keys()
    assert [span.parent_span_id.hex() for span in spans["POST /v1/jobs"]] == [CALLER[1]]


def links_to_first(again: dict[str, list[Span]], first: dict[str, list[Span]]) -> None:
    [accept], [request] = again["accept"], first["POST /v1/jobs"]
    assert (request.trace_id, request.span_id) in [(link.trace_id, link.span_id) for link in accept.links]


def is_of_lost(span: Span) -> bool:
    return attributes(span).get("headgate.job.attempt") == 1


def rows_of(heading: str) -> dict[str, list[str]]:
    """The rows of the first table below this heading, by the name in their first cell."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0].split("`")[1]: row for row in rows}


def matches(written: str, said: str) -> bool:
    """Whether a name on the page, with words in brackets or dots for what differs, is of what was said."""
    pattern = re.sub(r"<\w+>", ".+", re.escape(written).replace("…", ".+"))
    return re.fullmatch(pattern, said) is not None

"""What the services show of themselves, compared with the log: all four run, and are under load."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx
import pytest
import pytest_asyncio
from nats.aio.msg import Msg
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from headgate_contracts import Event
from headgate_contracts.commands import CMD_PREFIX
from headgate_contracts.events import ActData, JobData, JobDispatched, JobFailed, JobQueued, JobReady, JobStage
from libs.capacity.rooms import NAMED_BYTES
from libs.eventlog import JetStreamLog, Record, connect
from libs.eventlog.api import state_of
from libs.eventlog.streams import INPUTS, JOBS
from libs.local.servers import NatsServer, ValkeyServer
from libs.policy import Policy
from libs.runtime.eventually import eventually
from libs.runtime.telemetry import linked
from tests.fixtures.four_services import FourServices, four_services
from tests.fixtures.sources import running

STAGES = ["scaffold", "code", "deps", "checks"]
INPUT = {"stages": dict.fromkeys(STAGES, 0.02) | {"code": 0.1}, "provider": "ollama"}
USERS, JOBS_EACH = 4, 10
SLOTS = 4  # of a worker of which nothing is said
AT_ONCE = 2  # calls, so that some have to wait
CLOCKS_S = 1.0  # between the store's clock, by a round trip to it, and the log's


@dataclass(frozen=True)
class Measured:
    """What was shown once a load was over, and the log of it."""

    figures: Figures
    records: tuple[Record, ...]
    written: Counter[str]
    oldest_s: tuple[float, float, float]  # by the log before it was looked at, as it was shown, by the log after it
    asked: Overheard
    inputs_bytes: int  # by the server that has them


@pytest_asyncio.fixture(scope="module")
async def measured(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Measured]:
    """All are submitted while nothing may start, so that they wait, and run as many at once as there are slots."""
    folder = tmp_path_factory.mktemp("services")
    nats, valkey = NatsServer(folder / "nats"), ValkeyServer(folder / "valkey")
    exporter = InMemorySpanExporter()
    async with AsyncExitStack() as stack:
        for server in (nats, valkey):
            await stack.enter_async_context(running(server))
        asked = await stack.enter_async_context(overheard(nats.url))
        services = await stack.enter_async_context(four_services(nats.url, valkey.url, folder, exporter))
        async with services.client("olga", scope="jobs:read ops") as olga:
            queue = f"{services.urls['admission']}/v1/queue"
            assert (await olga.post(f"{queue}/pause", json={"scope": "all"})).status_code == 200
            await submitted(services)
            await changed(services, olga)
            oldest_s = await aged(services, nats.url)
            assert (await olga.post(f"{queue}/resume", json={"scope": "all"})).status_code == 200
            await eventually(lambda: is_told_when(services), every_s=0.2)
        yield await measured_at_rest(services, nats.url, oldest_s, asked)


@dataclass
class Overheard:
    """What the scheduler is asked, and grants later, heard by somebody who listens beside it."""

    commands: Counter[str] = field(default_factory=Counter[str])
    had_to_wait: set[str] = field(default_factory=set[str])  # leases that were told later that they are granted

    async def command(self, message: Msg) -> None:
        self.commands[message.subject.rpartition(".")[2]] += 1

    async def grant(self, message: Msg) -> None:
        self.had_to_wait.add(message.subject.rpartition(".")[2])


@asynccontextmanager
async def overheard(nats_url: str) -> AsyncIterator[Overheard]:
    heard = Overheard()
    nc = await connect(nats_url, name="listener")
    try:
        await nc.subscribe(f"{CMD_PREFIX}.main.*", cb=heard.command)
        await nc.subscribe(f"{CMD_PREFIX}.main.granted.*", cb=heard.grant)
        yield heard
    finally:
        await nc.close()


async def submitted(services: FourServices) -> None:
    """By several users at once; one of the jobs fails, and one more is refused."""
    url = f"{services.urls['admission']}/v1/jobs"
    asked = {"project_id": "shop", "pipeline": "rehearsal"}
    async with AsyncExitStack() as stack:
        users = [await stack.enter_async_context(services.client(f"user-{number}")) for number in range(USERS)]
        content = [*[INPUT] * JOBS_EACH * USERS, INPUT | {"fail_at": "checks"}]
        posts = (users[n % USERS].post(url, json=asked | {"input": each}) for n, each in enumerate(content))
        assert {answer.status_code for answer in await asyncio.gather(*posts)} == {202}
        assert (await users[0].post(url, json={})).status_code == 422


async def changed(services: FourServices, olga: httpx.AsyncClient) -> None:
    """One that waits is cancelled, one has another class, one is moved; and not all that run may call at once."""
    url = f"{services.urls['admission']}/v1"
    async with services.client("user-1") as user:
        cancelled, higher, moved, other = [job["id"] for job in (await user.get(f"{url}/jobs")).json()[:4]]
        assert (await user.post(f"{url}/jobs/{cancelled}/cancel")).status_code == 202
        assert (await user.patch(f"{url}/jobs/{higher}", json={"priority": "high"})).status_code == 200
    assert (await olga.put(f"{url}/concurrency/llm:ollama", json={"limit": AT_ONCE})).status_code == 200
    assert (await olga.post(f"{url}/queue/move", json={"job_id": moved, "before": other})).status_code == 200


async def is_told_when(services: FourServices) -> bool:
    """Jobs have ended meanwhile, so that the next ones are told an estimate."""
    asked = {"project_id": "shop", "pipeline": "rehearsal", "input": INPUT}
    async with services.client("user-0") as user:
        answer = await user.post(f"{services.urls['admission']}/v1/jobs", json=asked)
    return (answer.json().get("queue") or {}).get("estimate_seconds") is not None


async def aged(services: FourServices, nats_url: str) -> tuple[float, float, float]:
    """Once the clocks' difference is small beside it."""
    figures, records = Figures(), await records_of(nats_url)
    first = next(each for each in records if isinstance(each.event, Event) and isinstance(each.event.data, JobQueued))

    async def has_waited() -> tuple[float, float, float]:
        before_s = age_s(first)
        await figures.look(services.urls)
        shown_s, after_s = figures.of("headgate_queue_oldest_seconds", **{"class": "normal"}), age_s(first)
        assert after_s > 3 * CLOCKS_S
        return before_s, shown_s, after_s

    return await eventually(has_waited, every_s=0.2)


async def measured_at_rest(
    services: FourServices, nats_url: str, oldest_s: tuple[float, float, float], asked: Overheard
) -> Measured:
    """Once all jobs are over, and the last one's end has come everywhere."""
    records, written, figures = list[Record](), Counter[str](), Figures()

    async def all_are_over() -> bool:
        records[:] = await records_of(nats_url)
        written.clear()
        written.update(events_in(records))
        ended = written["ready"] + written["failed"] + written["cancelled"]
        return ended == written["queued"] > USERS * JOBS_EACH

    await eventually(all_are_over, every_s=0.5)
    await eventually(lambda: figures.rest(services.urls, ended=written["queued"]))
    return Measured(figures, tuple(records), written, oldest_s, asked, await inputs_bytes(nats_url))


async def test_submissions_and_ends_are_those_in_the_log(measured: Measured) -> None:
    figures, written = measured.figures, measured.written
    submissions, ended = "headgate_admission_submissions_total", "headgate_jobs_ended_total"
    attempts, dispatched = "headgate_worker_attempts_total", "headgate_scheduler_dispatched_total"

    assert figures.of(submissions, answer="202") == written["queued"]
    assert figures.of("headgate_admission_accept_seconds_count") == written["queued"]
    assert figures.of(submissions, answer="422") == figures.of("headgate_admission_refused_total") == 1
    assert figures.of(dispatched) == written["dispatched"]
    assert figures.of("headgate_scheduler_events_total", event="dispatched") == written["dispatched"]
    assert figures.of(attempts, event="ready") == figures.of(ended, end="ready") == written["ready"]
    assert figures.of(attempts, event="failed") == figures.of(ended, end="failed") == written["failed"] == 1
    assert figures.of(ended, end="cancelled") == written["cancelled"] == 1
    assert figures.of("headgate_worker_stage_seconds_count") == sum(written[f"stage {stage}"] for stage in STAGES)


async def test_whatever_admission_writes_carries_its_requests_trace(measured: Measured) -> None:
    later = {"reprioritized", "moved", "cancelled", "paused", "resumed"}
    traced = {name: record.traceparent for record in measured.records if (name := name_of(record)) in later}

    assert traced.keys() == later
    assert all(traced.values())
    assert len({linked(header)[0].trace_id for header in traced.values()}) == len(later)  # each of a request of its own


async def test_each_request_for_a_slot_counts_once(measured: Measured) -> None:
    figures, calls = measured.figures, measured.written["stage code"]
    acquired, blocked = "headgate_concurrency_acquisition_total", "headgate_llm_blocked_requests_total"

    assert figures.of(acquired, group="llm:ollama", result="acquired") == calls
    assert figures.of("headgate_concurrency_wait_seconds_count", group="llm:ollama") == calls
    assert figures.of(acquired, result="rejected") == 0
    waited = len(measured.asked.had_to_wait)
    assert 0 < waited == figures.of(blocked) == figures.of("headgate_llm_block_seconds_count")


async def test_a_peak_is_the_most_that_the_log_had_at_once(measured: Measured) -> None:
    figures, records, peak = measured.figures, measured.records, "headgate_concurrency_slots_peak"

    assert figures.of(peak, group="pool:default") == most_at_once(records, begins=JobDispatched) == SLOTS
    assert 1 <= figures.of(peak, group="llm:ollama") <= most_at_once(records, begins=JobStage)


async def test_each_first_start_whose_user_was_told_when_is_a_hit_or_none(measured: Measured) -> None:
    figures, datas = measured.figures, datas_in(measured.records)
    told = [data for data in datas if isinstance(data, JobQueued) and data.estimate is not None]

    assert figures.of("headgate_forecast_hits_total") == len(told) > 0
    assert figures.of("headgate_forecast_error_seconds_count") == len(told)


async def test_limits_are_those_of_an_operator_and_of_the_workers(measured: Measured) -> None:
    figures, limit = measured.figures, "headgate_concurrency_slots_limit"

    assert figures.of(limit, group="pool:default") == SLOTS
    assert figures.of(limit, group="llm:ollama") == AT_ONCE


async def test_commands_are_those_that_were_sent(measured: Measured) -> None:
    figures, asked, seconds = measured.figures, measured.asked.commands, "headgate_scheduler_command_seconds"

    assert asked["acquire"] >= measured.written["stage code"]
    for command in ("acquire", "give_up", "position", "shut", "redeem"):
        assert figures.of(f"{seconds}_count", command=command) == asked[command], command
    assert figures.of(f"{seconds}_count", command="beat") > 0


async def test_turns_of_the_scheduler_take_no_more_than_the_time_there_was(measured: Measured) -> None:
    figures, records, cycle = measured.figures, measured.records, "headgate_scheduler_cycle_seconds"
    since_s = (datetime.now(UTC) - records[0].at).total_seconds() + CLOCKS_S

    assert 0 < figures.of(f"{cycle}_sum") < since_s


async def test_inputs_take_what_the_server_has_of_them(measured: Measured) -> None:
    """What is counted for a name and a time is a little more than the server takes, never less."""
    shown, jobs = measured.figures.of("headgate_inputs_bytes"), measured.written["queued"]

    assert 0 <= shown - measured.inputs_bytes <= NAMED_BYTES * jobs
    assert measured.figures.of("headgate_inputs_limit_bytes") == Policy().retention.inputs_bytes


async def test_who_waits_longest_is_as_old_as_the_log_says(measured: Measured) -> None:
    before_s, shown_s, after_s = measured.oldest_s

    assert before_s - CLOCKS_S <= shown_s <= after_s + CLOCKS_S


async def test_nothing_is_left_of_a_load_that_is_over(measured: Measured) -> None:
    figures = measured.figures

    assert figures.of("headgate_concurrency_slots_active") == figures.of("headgate_llm_in_flight") == 0
    assert figures.of("headgate_worker_jobs_running") == figures.of("headgate_queue_length") == 0
    assert figures.of("headgate_queue_oldest_seconds") == figures.of("headgate_backlog_seconds") == 0


@dataclass
class Figures:
    """What the pages of metrics say, of all four services."""

    lines: list[tuple[str, dict[str, str], float]] = field(default_factory=list[tuple[str, dict[str, str], float]])

    async def look(self, urls: dict[str, str]) -> None:
        async with httpx.AsyncClient(timeout=30) as client:
            pages = [(await client.get(f"{url}/metrics")).text for url in urls.values()]
        lines = [line.rpartition(" ") for page in pages for line in page.splitlines() if line.startswith("headgate_")]
        self.lines = [
            (said.partition("{")[0], dict(re.findall(r'(\w+)="([^"]*)"', said)), float(value))
            for said, _, value in lines
        ]

    async def rest(self, urls: dict[str, str], *, ended: int) -> bool:
        """Whether the last job's end has come everywhere: gauges, and how good a forecast was, are looked at every few
        seconds."""
        await self.look(urls)
        gauges = ("headgate_worker_jobs_running", "headgate_concurrency_slots_active", "headgate_llm_in_flight")
        counted = self.of("headgate_jobs_ended_total") == ended and self.of("headgate_forecast_hits_total") > 0
        return counted and not any(map(self.of, gauges))

    def of(self, name: str, **labels: str) -> float:
        return sum(value for said, shown, value in self.lines if said == name and labels.items() <= shown.items())


async def inputs_bytes(nats_url: str) -> int:
    nc = await connect(nats_url, name="figures")
    try:
        return (await state_of(nc, f"KV_{INPUTS}")).held_bytes
    finally:
        await nc.close()


async def records_of(nats_url: str) -> list[Record]:
    """All that the log holds."""
    nc = await connect(nats_url, name="figures")
    try:
        state, records = await state_of(nc, JOBS), list[Record]()
        async with aclosing(JetStreamLog(nc, epoch=state.epoch or "").follow(after=0)) as pages:
            while len(records) < state.last_seq:
                records += (await anext(pages)).records
    finally:
        await nc.close()
    return records


def name_of(record: Record) -> str | None:
    match record.event:
        case Event(data=JobData() as data):
            return data.EVENT.value
        case Event(data=ActData() as act):
            return act.ACT.value
        case _:
            return None


def datas_in(records: Iterable[Record]) -> list[JobData]:
    datas = [record.event.data for record in records if isinstance(record.event, Event)]
    return [data for data in datas if isinstance(data, JobData)]


def events_in(records: Iterable[Record]) -> list[str]:
    """The events of jobs in the log, each stage by its name."""
    return [f"stage {data.stage}" if isinstance(data, JobStage) else data.EVENT.value for data in datas_in(records)]


def most_at_once(records: Iterable[Record], *, begins: type[JobDispatched | JobStage]) -> int:
    """Jobs that ran at one moment, or those in their stage `code`: as the log has it, event by event."""
    inside, most = set[str](), 0
    for data in datas_in(records):
        if isinstance(data, begins) and getattr(data, "stage", "code") == "code":
            inside.add(data.job_id)
        elif begins is JobStage or isinstance(data, JobReady | JobFailed):
            inside.discard(data.job_id)
        most = max(most, len(inside))
    return most


def age_s(record: Record) -> float:
    return (datetime.now(UTC) - record.at).total_seconds()

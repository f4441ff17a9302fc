"""Servers that are away, a leader that sleeps, clients that send anything: nothing is lost, and everybody is told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import pytest_asyncio

from headgate_contracts import Event, Tier
from headgate_contracts.events import SchedulerCommitted
from libs.eventlog import LogSettings, connect, migrate
from libs.eventlog.api import state_of
from libs.eventlog.streams import JOBS
from libs.foundation.ground import LOG, NATS, VIEW
from libs.local.servers import NatsServer, ValkeyServer
from libs.local.service import ServiceProcess
from libs.policy import load_policy
from libs.runtime.eventually import eventually
from libs.runtime.keys import KeyPair, keep_keys, sign_token
from tests.fixtures.audit import audit
from tests.fixtures.installation import Installation, installed
from tests.fixtures.logs import new_epoch
from tests.fixtures.sources import running

POLICY = """
[leases]
job_s = {lease_s}
heartbeat_s = 0.5
leader_s = 1.5
leader_heartbeat_s = 0.4
"""
SHORT_LEASE_S, SHORT_OUTAGE_S = 4.0, 7.0  # where a connection that breaks says at once that the server is away
ASLEEP_S = 20.0  # many times the lead
LEASE_S, OUTAGE_S = 20.0, 24.0  # where it is noticed by pings that nobody answers, after 15 s
ANSWERED_WITHIN_S = 30.0  # while a server is silent: four time-outs of 5 s, and a machine under full load
IMPATIENT = {"HEADGATE_OUTAGE_PATIENCE_S": "1"}  # an outage counts from here on, as leases are short
QUICK = {"stages": dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.05)}
LONG = {"stages": QUICK["stages"] | {"code": 3.0}}  # ends while the server is away
WAYS = "queued dispatched started scaffold code deps checks ready"
SERVICES = ("scheduler", "worker", "admission", "notifier")
PROBLEM = "application/problem+json"


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installed(
        tmp_path_factory.mktemp("bad"), policy=POLICY.format(lease_s=LEASE_S), environ=IMPATIENT
    ) as there:
        yield there


# ── what clients may send ─────────────────────────────────────────────────────

GOOD = {"project_id": "shop", "pipeline": "rehearsal", "input": QUICK}


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        (json.dumps(GOOD | {"colour": "red"}), 422, "colour"),
        (json.dumps(GOOD | {"project_id": 7}), 422, "project_id"),
        (json.dumps(GOOD | {"input": "a URL shortener"}), 422, "input"),
        (json.dumps({"project_id": "shop"}), 422, "input"),
        (json.dumps(GOOD | {"labels": {"team": 3}}), 422, "labels.team"),
        (json.dumps(GOOD | {"run_timeout_s": -1}), 422, "run_timeout_s"),
        (json.dumps(GOOD | {"priority": "urgent"}), 422, "priority"),
        (json.dumps(GOOD | {"input": {"prompt": "x" * 70_000}}), 422, "input"),
        ('{"project_id": "shop", "input": {', 422, ""),
        ('{"project_id": "\\ud800", "input": {}}', 422, ""),
        ("[]", 422, ""),
    ],
)
async def test_a_body_that_is_wrong_is_refused_by_name_and_nothing_is_written(
    there: Installation, body: str, status: int, named: str
) -> None:
    before = await last_sequence(there)

    async with there.client("ann", Tier.BOOTSTRAPPER) as ann:
        answer = await ann.post("/jobs", content=body, headers={"Content-Type": "application/json"})

    assert is_problem(answer, status)
    assert [error["field"] for error in answer.json()["errors"]] == [named]
    assert named in answer.json()["detail"]
    assert await last_sequence(there) == before


@pytest.mark.parametrize("told", [True, False], ids=["with its length", "in chunks"])
async def test_ten_megabytes_are_refused_and_nothing_is_written(there: Installation, told: bool) -> None:  # noqa: FBT001
    body = json.dumps(GOOD | {"input": {"prompt": "x" * 10_000_000}}).encode()
    before = await last_sequence(there)

    async with there.client("ann", Tier.BOOTSTRAPPER) as ann:
        answer = await ann.post("/jobs", content=body if told else chunks(body))

    assert is_problem(answer, 413)
    assert await last_sequence(there) == before


async def test_who_cannot_show_who_they_are_is_told_so(there: Installation) -> None:
    async with there.client("ann", Tier.PARTNER) as ann:
        good = ann.headers["Authorization"].removeprefix("Bearer ")
        head, _, signature = good.rpartition(".")
        tokens = {
            "none": None,
            "nonsense": "abc",
            "another's key": token(KeyPair.generate(), ttl_s=60),
            "expired": token(keep_keys(there.state / "keys"), ttl_s=-60),
            "changed": f"{head}.{'A' * len(signature)}",
            "unsigned": jwt.encode({"sub": "ann"}, "", algorithm="none"),
        }
        before = await last_sequence(there)

        answers = {name: await submitted_with(there, token) for name, token in tokens.items()}

    assert {name: is_problem(answer, 401) for name, answer in answers.items()} == dict.fromkeys(tokens, True)
    assert all(answer.headers["WWW-Authenticate"].startswith("Bearer") for answer in answers.values())
    assert await last_sequence(there) == before


async def test_another_users_job_does_not_exist(there: Installation) -> None:
    async with there.client("ann", Tier.PARTNER) as ann, there.client("bob", Tier.CTO_SCALE) as bob:
        job = await submit(ann, "mine", QUICK)
        paths = [f"/jobs/{job}{what}" for what in ("", "/events", "/result", "/stream")]
        answers = [await bob.get(path) for path in paths] + [await bob.post(f"/jobs/{job}/cancel")]
        await until_ready(ann, job)

    assert [is_problem(answer, 404) for answer in answers] == [True] * 5
    assert job in answers[0].json()["detail"]


# ── servers that are away ─────────────────────────────────────────────────────


async def test_services_that_start_before_their_servers_say_so_once_and_wait(tmp_path: Path) -> None:
    nats, valkey = NatsServer(tmp_path / "nats"), ValkeyServer(tmp_path / "valkey")
    async with four_services(tmp_path, nats, valkey) as services:
        for service in services:
            await eventually(lambda service=service: waits_for(service, NATS), every_s=0.1)

        async with running(nats):
            for service in services:
                await eventually(lambda service=service: waits_for(service, LOG), every_s=0.1)
            await migrated(nats)
            for service in (each for each in services if each.name in ("scheduler", "admission")):
                await eventually(lambda service=service: waits_for(service, VIEW), every_s=0.1)
            async with running(valkey):
                for service in services:
                    await eventually(service.ready, every_s=0.1)

                said = {service.name: waits(service) for service in services}

    assert {name: len(lines) - len(set(lines)) for name, lines in said.items()} == dict.fromkeys(SERVICES, 0), said
    assert {name: lines[:2] for name, lines in said.items()} == {name: [NATS, LOG] for name in SERVICES}


@pytest.mark.parametrize("name", ["nats", "valkey"])
async def test_a_server_that_is_away_for_longer_than_a_lease_costs_no_attempt(tmp_path: Path, name: str) -> None:
    nats, valkey = NatsServer(tmp_path / "nats"), ValkeyServer(tmp_path / "valkey", fsync="always")
    server = {"nats": nats, "valkey": valkey}[name]
    async with running(nats), running(valkey), four_services(tmp_path, nats, valkey) as services:
        await migrated(nats)
        for service in services:
            await eventually(service.ready, every_s=0.1)
        async with client_of(services, tmp_path) as ann:
            running_one = await submit(ann, "running", LONG)
            await eventually(lambda: status_is(ann, running_one, "code"), every_s=0.1)

            await server.kill()
            answers = await refusals(ann, "later", for_s=SHORT_OUTAGE_S)
            await server.start()

            later = await submit(ann, "later", QUICK)
            for job in (running_one, later):
                await until_ready(ann, job)
            stories = [await story(ann, job) for job in (running_one, later)]

    assert_refused(answers)
    assert stories == [WAYS, WAYS]


@pytest.mark.parametrize("server", ["nats", "valkey"])
async def test_a_server_that_is_silent_for_longer_than_a_lease_costs_no_attempt(
    there: Installation, server: str
) -> None:
    async with there.client(f"cyd-{server}", Tier.CTO_SCALE) as cyd:
        running_one = await submit(cyd, f"running-{server}", LONG)
        await eventually(lambda: status_is(cyd, running_one, "code"), every_s=0.1)

        there.signal(server, signal.SIGSTOP)
        try:
            answers = await refusals(cyd, f"later-{server}", for_s=OUTAGE_S)
        finally:
            there.signal(server, signal.SIGCONT)
        later = await submit(cyd, f"later-{server}", QUICK)
        for job in (running_one, later):
            await until_ready(cyd, job)
        stories = [await story(cyd, job) for job in (running_one, later)]
        shown = (await cyd.get(f"/jobs/{running_one}")).json()

    assert_refused(answers)
    assert stories == [WAYS, WAYS]
    await no_violations(there, promised=[running_one, later])
    said = said_about(there, running_one)
    assert (server == "valkey") == (said is None), "with NATS away, the job's next event has to wait"
    assert said is None or said["trace_id"] == shown["debug_id"]


# ── a leader that sleeps ──────────────────────────────────────────────────────


async def test_a_leader_that_sleeps_is_followed_by_another_and_writes_nothing_when_it_wakes(
    there: Installation,
) -> None:
    async with another_scheduler(there), there.client("dan", Tier.CTO_SCALE) as dan:
        jobs = [await submit(dan, f"before-{number}", QUICK) for number in range(6)]

        wakes_at = time.monotonic() + ASLEEP_S
        there.signal("scheduler", signal.SIGSTOP)  # in the middle of those
        try:
            jobs += [await submit(dan, f"asleep-{number}", QUICK) for number in range(6)]
            for job in jobs:
                await until_ready(dan, job)
            while time.monotonic() < wakes_at:  # the other one decides all that while
                jobs.append(await submit(dan, f"asleep-{len(jobs)}", QUICK))
                await until_ready(dan, jobs[-1])
        finally:
            there.signal("scheduler", signal.SIGCONT)
        awake = [await submit(dan, f"awake-{number}", QUICK) for number in range(6)]
        for job in awake:
            await until_ready(dan, job)
        leaders = [leader for leader, _ in groupby(await committed_by(there))]

    assert leaders[-2:] == ["scheduler", "scheduler-2"], "it wrote after the other one had begun"
    await no_violations(there, promised=[*jobs, *awake])


# ── how it is done ────────────────────────────────────────────────────────────


@asynccontextmanager
async def four_services(folder: Path, nats: NatsServer, valkey: ValkeyServer) -> AsyncIterator[list[ServiceProcess]]:
    """The four, started without a look at their servers."""
    keep_keys(folder / "keys")
    (folder / "policy.toml").write_text(POLICY.format(lease_s=SHORT_LEASE_S), encoding="utf-8")
    told = IMPATIENT | {
        "HEADGATE_POLICY": str(folder / "policy.toml"),
        "HEADGATE_NATS_URL": nats.url,
        "HEADGATE_REDIS_URL": valkey.url,
        "HEADGATE_JWKS": str(folder / "keys" / "jwks.json"),
        "HEADGATE_WORKSPACES": str(folder / "workspaces"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    services = [
        ServiceProcess(
            f"services.{name}", name=name, folder=folder / "logs", environment=os.environ | told | instance(name)
        )
        for name in SERVICES
    ]
    try:
        for service in services:
            await service.start()
        yield services
    finally:
        for service in services:
            await service.kill()


@asynccontextmanager
async def another_scheduler(there: Installation) -> AsyncIterator[None]:
    """A second replica, with what the first one was told; it stands by."""
    second = ServiceProcess(
        "services.scheduler",
        name="scheduler-2",
        folder=there.state / "logs",
        environment=there.environment("scheduler", name="scheduler-2"),
    )
    await second.start()
    try:
        await eventually(second.ready, every_s=0.1)
        yield
    finally:
        await second.stop()


def instance(name: str) -> dict[str, str]:
    return {"HEADGATE_INSTANCE": name}


async def migrated(nats: NatsServer) -> None:
    nc = await connect(nats.url, name="migrate")
    try:
        await migrate(nc, LogSettings(), new_epoch=new_epoch())
    finally:
        await nc.close()


async def waits_for(service: ServiceProcess, what: str) -> bool:
    """Alive, not ready, and it names what is missing."""
    assert service.running, service.words()
    async with httpx.AsyncClient(base_url=service.url, timeout=30) as client:
        try:
            alive, ready = await client.get("/livez"), await client.get("/readyz")
        except httpx.TransportError:
            return False
    assert (alive.status_code, ready.status_code) == (200, 503)
    return what in ready.json()["missing"] and what in waits(service)


def waits(service: ServiceProcess) -> list[str]:
    """What it said that it waits for, each time that it said so."""
    messages = [json.loads(line)["message"] for line in service.words().splitlines()]
    return [text.removeprefix("waiting for ").partition(":")[0] for text in messages if text.startswith("waiting for ")]


async def submit(client: httpx.AsyncClient, key: str, content: dict[str, Any]) -> str:
    """As a client does that means it: the same request until it is taken."""

    async def taken() -> str | None:
        answer = await client.post("/jobs", json=GOOD | {"input": content}, headers={"Idempotency-Key": key})
        assert answer.status_code in (202, 503), answer.text
        return answer.json()["id"] if answer.status_code == 202 else None

    found = await eventually(taken, every_s=0.2)
    assert found
    return found


async def refusals(client: httpx.AsyncClient, key: str, *, for_s: float) -> list[tuple[httpx.Response, float]]:
    """The answers to the same submission for so long, and how long each took."""
    answers: list[tuple[httpx.Response, float]] = []
    until = time.monotonic() + for_s
    while time.monotonic() < until:
        began = time.monotonic()
        answer = await client.post("/jobs", json=GOOD, headers={"Idempotency-Key": key})
        answers.append((answer, time.monotonic() - began))
        await asyncio.sleep(0.2)  # as a client does; `Retry-After` asks for more
    return answers


def assert_refused(answers: list[tuple[httpx.Response, float]]) -> None:
    assert all(is_problem(answer, 503) for answer, _ in answers)
    assert all(int(answer.headers["Retry-After"]) > 0 for answer, _ in answers)
    assert max(took_s for _, took_s in answers) < ANSWERED_WITHIN_S


def client_of(services: list[ServiceProcess], folder: Path) -> httpx.AsyncClient:
    """Signed in at admission itself: there is no gateway in front of these four."""
    [admission] = [service for service in services if service.name == "admission"]
    headers = {"Authorization": f"Bearer {token(keep_keys(folder / 'keys'), ttl_s=600)}"}
    return httpx.AsyncClient(base_url=f"{admission.url}/v1", headers=headers, timeout=ANSWERED_WITHIN_S + 10)


async def story(client: httpx.AsyncClient, job: str) -> str:
    """Every event of the job, stages by their names."""
    events = (await client.get(f"/jobs/{job}/events")).json()
    return " ".join(event.get("stage", event["event"]) for event in events)


async def submitted_with(there: Installation, token: str | None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(base_url=f"{there.up.url}/v1", headers=headers, timeout=30) as client:
        return await client.post("/jobs", json=GOOD)


async def chunks(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 65_536):
        yield body[start : start + 65_536]


def token(pair: KeyPair, *, ttl_s: int) -> str:
    return sign_token(
        pair,
        user="ann",
        tier=Tier.PARTNER,
        scope="jobs:read jobs:write",
        issuer="headgate",
        audience="headgate",
        now_ms=time.time_ns() // 1_000_000,
        ttl_s=ttl_s,
    )


def is_problem(answer: httpx.Response, status: int) -> bool:
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, PROBLEM), answer.text
    said = answer.json()
    assert said["status"] == status
    assert said["title"]
    assert said["detail"]
    assert said["debug_id"]
    return True


async def status_is(client: httpx.AsyncClient, job: str, status: str) -> bool:
    answer = await client.get(f"/jobs/{job}")
    return answer.status_code == 200 and answer.json()["status"] == status


async def until_ready(client: httpx.AsyncClient, job: str) -> None:
    await eventually(lambda: status_is(client, job, "ready"), every_s=0.2)


def said_about(there: Installation, job: str) -> dict[str, Any] | None:
    """The first line of a worker's log that carries the job's id."""
    for path in sorted((there.state / "logs").glob("worker*.log")):
        for line in path.read_text(encoding="utf-8").splitlines():
            said = json.loads(line)
            if said.get("job_id") == job:
                return said
    return None


async def last_sequence(there: Installation) -> int:
    nc = await connect(there.up.nats_url, name="sequence")
    try:
        return (await state_of(nc, JOBS)).last_seq
    finally:
        await nc.close()


async def committed_by(there: Installation) -> list[str]:
    """Who wrote each link of the scheduler's chain."""
    events = [record.event for record in await there.records()]
    return [
        event.data.leader for event in events if isinstance(event, Event) and isinstance(event.data, SchedulerCommitted)
    ]


async def no_violations(there: Installation, *, promised: list[str]) -> None:
    policy = load_policy(there.state.parent / "policy.toml", environ={})
    report = audit(await there.records(), policy=policy, promised=promised)
    assert not report.violations, report

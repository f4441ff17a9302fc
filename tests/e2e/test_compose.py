"""The images are built, the system is started with compose, and a job goes on though every container is restarted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from packaging.markers import Marker

from libs.deployment.images import our_own
from libs.runtime.eventually import eventually
from tests.fixtures.compose import IMAGE_OF_COMMANDS, Composition, done, run

pytestmark = [pytest.mark.compose, pytest.mark.timeout(900)]

SERVICES = ("admission", "scheduler", "worker", "notifier")
STAYING = ("worker", "scheduler", "admission", "notifier", "gateway", "nats", "valkey")
IMAGES = (*SERVICES, "operator")
READY_WITHIN_S = 90.0
HEALTHY_WITHIN_S = 60.0
# It works until it is told to stop: how long all restarts take is the machine's business.
ENDLESS = {"stages": {"scaffold": 0.1, "code": 3600}}
ENDS = ("ready", "failed", "cancelled")
LISTING = """
import json, platform
from importlib.metadata import distributions
print(json.dumps([platform.python_version(), *([each.name, each.version] for each in distributions())]))
"""
# A name that nobody knows there is asked for once, and not four times for 5 s each.
ASK = """
import os, socket, sys
os.environ["RES_OPTIONS"] = "timeout:2 attempts:1"
socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2)
"""


@pytest.fixture(scope="module")
def composition(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composition]:
    there = Composition.of(tmp_path_factory.mktemp("state"))
    there.build()
    failed_before = request.session.testsfailed
    try:
        there.up()
        yield there
    finally:
        if request.session.testsfailed > failed_before:
            capture: Any = request.config.pluginmanager.getplugin("capturemanager")
            with capture.global_and_fixture_disabled():  # else what a module's end says is shown to nobody
                print(there.logs())  # noqa: T201
        there.down()


async def is_ready(there: Composition) -> bool:
    async with httpx.AsyncClient(timeout=30) as client:
        try:
            return (await client.get(f"{there.url}/openapi.json", timeout=30)).status_code == 200
        except httpx.TransportError:
            return False


async def status_of(client: httpx.AsyncClient, job_id: str) -> str:
    try:
        response = await client.get(f"/jobs/{job_id}")
    except httpx.TransportError:
        return ""
    return response.json()["status"] if response.status_code == 200 else ""


async def streamed(client: httpx.AsyncClient, job_id: str) -> list[str]:
    """The kinds of frames of a stream, to its end."""
    async with client.stream("GET", f"/jobs/{job_id}/stream") as response:
        assert response.status_code == 200
        lines = [line async for line in response.aiter_lines()]
    return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]


async def submitted(client: httpx.AsyncClient, content: dict[str, Any], *, pipeline: str = "rehearsal") -> str:
    """As a client that means it: the same request with the same key, until it is answered."""
    body = {"project_id": "shop", "pipeline": pipeline, "input": content}

    async def answer() -> httpx.Response | None:
        response = await client.post("/jobs", json=body, headers={"Idempotency-Key": f"once-{pipeline}"})
        return None if response.status_code == 503 else response

    response = await eventually(answer, within_s=READY_WITHIN_S, every_s=0.5)
    assert response is not None
    assert response.status_code == 202, response.text
    return response.json()["id"]


async def test_a_job_goes_on_though_each_container_is_restarted_meanwhile(composition: Composition) -> None:
    await eventually(lambda: is_ready(composition), within_s=READY_WITHIN_S, every_s=0.2)
    async with composition.client("ann") as ann:
        job = await submitted(ann, ENDLESS)
        await eventually(lambda: _in(ann, job, "code"), every_s=0.1)

        for name in STAYING:
            await asyncio.to_thread(composition.restart, name)
            await eventually(lambda: is_ready(composition), within_s=READY_WITHIN_S, every_s=0.2)

        await eventually(lambda: _in(ann, job, "code"), every_s=0.1)
        assert (await ann.post(f"/jobs/{job}/cancel", json={})).status_code < 300
        await eventually(lambda: _in(ann, job, *ENDS), every_s=0.2)
        events = [event["event"] for event in (await ann.get(f"/jobs/{job}/events")).json()]
        assert events[-2:] == ["cancel_requested", "cancelled"]
        assert events.count("given_back") == 1  # what the worker ran when it was told to stop
        assert (await streamed(ann, job))[-1] == "end"


async def test_a_build_makes_its_environment_and_passes_where_the_worker_has_no_way_out(
    composition: Composition,
) -> None:
    await eventually(lambda: is_ready(composition), within_s=READY_WITHIN_S, every_s=0.2)
    async with composition.client("ann") as ann:
        job = await submitted(ann, {"prompt": "a URL shortener"}, pipeline="build")

        await eventually(lambda: _in(ann, job, *ENDS, "awaiting_confirmation"), every_s=0.2)

        shown = (await ann.get(f"/jobs/{job}")).json()
        assert (shown["status"], shown["error"]) == ("ready", None)


async def test_every_service_and_the_view_say_by_themselves_that_they_are_well(composition: Composition) -> None:
    async def all_well() -> bool:
        health = await asyncio.to_thread(composition.health)
        return health == dict.fromkeys((*SERVICES, "nats", "valkey"), "healthy")

    await eventually(all_well, within_s=HEALTHY_WITHIN_S, every_s=1)


def test_no_container_is_root_or_may_write_to_its_root_or_gain_rights(composition: Composition) -> None:
    for name, container in composition.inspect().items():
        assert container["Config"]["User"] == "10001:10001", name
        assert container["HostConfig"]["ReadonlyRootfs"], name
        assert container["HostConfig"]["CapDrop"] == ["ALL"], name
        assert "no-new-privileges:true" in container["HostConfig"]["SecurityOpt"], name
        assert container["HostConfig"]["Memory"] > 0, name


@pytest.mark.parametrize(("name", "host", "port"), [("worker", "valkey", "6379"), ("notifier", "valkey", "6379")])
def test_who_has_no_business_with_the_view_cannot_even_reach_it(
    composition: Composition, name: str, host: str, port: str
) -> None:
    assert composition.exec(name, "python", "-c", ASK, "nats", "4222").returncode == 0

    assert composition.exec(name, "python", "-c", ASK, host, port).returncode != 0


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_holds_the_locked_dependencies_of_its_process_and_no_others(
    composition: Composition, image: str
) -> None:
    tag = f"headgate-{image}:{IMAGE_OF_COMMANDS.partition(':')[2]}"

    python, *found = json.loads(done(run(["docker", "run", "--rm", "--entrypoint", "python", tag, "-c", LISTING])))

    assert {_plain(name): version for name, version in found} == _locked(image, python=python) | dict(our_own())


def test_no_image_holds_a_secret_or_an_installer(composition: Composition) -> None:
    for image in IMAGES:
        tag = f"headgate-{image}:{IMAGE_OF_COMMANDS.partition(':')[2]}"
        [described] = json.loads(done(run(["docker", "image", "inspect", tag])))

        assert not [each for each in described["Config"]["Env"] if "PASSWORD" in each or "@" in each]
        assert described["Config"]["StopSignal"] == "SIGTERM"
        assert described["Config"]["Labels"]["org.opencontainers.image.title"] == f"headgate-{image}"
        gone = run(["docker", "run", "--rm", "--entrypoint", "sh", tag, "-c", "ls /installer /src /wheels"])
        assert gone.returncode != 0


async def _in(client: httpx.AsyncClient, job_id: str, *statuses: str) -> bool:
    return await status_of(client, job_id) in statuses


def _locked(group: str, *, python: str) -> dict[str, str]:
    words = [
        "export",
        "--quiet",
        "--frozen",
        "--only-group",
        group,
        "--no-emit-workspace",
        "--no-hashes",
        "--no-annotate",
    ]
    lines = done(run([".venv/bin/uv", *words, "--no-header"])).splitlines()
    needed = [line.partition(";")[0].strip().split("==") for line in lines if _needed(line, python=python)]
    return {_plain(name): version for name, version in needed}


def _needed(line: str, *, python: str) -> bool:
    _, _, marker = line.partition(";")
    return not marker or Marker(marker).evaluate({"python_full_version": python})


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")

"""Traces, metrics and logs go where OpenTelemetry's own variables say, and a receiver that is away holds up nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.local.ports import free_ports
from libs.runtime.errors import SettingsWrong
from libs.runtime.telemetry import LAST_EXPORT_S, Telemetry, job_trace
from tests.fixtures.lives import job_after
from tests.fixtures.otlp import GrpcReceiver, Receiver, attributes, logs_of, metrics_of, spans_of

JOB_ID = "01JABCDEFGHJKMNPQRSTVWXYZ0"
JOB = job_after("queued", JOB_ID)
PROTOCOLS = {"http/protobuf": Receiver, "grpc": GrpcReceiver}
ROOT = Path(__file__).parents[2]
ours = logging.getLogger("libs.test")


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.fixture(params=PROTOCOLS)
def receiver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver | GrpcReceiver]:
    """All is sent to it, by its protocol."""
    with PROTOCOLS[request.param]() as made:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", request.param)
        yield made


@pytest.fixture
def silent() -> Iterator[str]:
    """Takes connections, and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


async def said_of_a_job() -> None:
    """A life of a service, with one span, one count and one line."""
    telemetry = Telemetry("worker", instance="w-1", logs=None)
    await telemetry.start()
    with telemetry.job_span("stage code", JOB):
        ours.warning("told %s", "Bearer eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJodW50ZXIyIn0.hunter2", extra={"attempt": 2})
    telemetry.meter.create_counter("headgate_things").add(3, {"kind": "a"})
    await telemetry.stop()


async def test_traces_metrics_and_logs_all_arrive(receiver: Receiver | GrpcReceiver) -> None:
    await said_of_a_job()

    came = receiver.requests()
    [(origin, span)] = spans_of(came)
    [metric] = [metric for _, metric in metrics_of(came) if metric.name == "headgate_things"]
    [(_, line)] = logs_of(came)
    assert attributes(origin) | {"service.name": "worker", "service.instance.id": "w-1"} == attributes(origin)
    assert span.trace_id == line.trace_id == job_trace(JOB).root.trace_id.to_bytes(16, "big")
    assert (span.name, span.span_id) == ("stage code", line.span_id)
    assert [(point.as_int, attributes(point)) for point in metric.sum.data_points] == [(3, {"kind": "a"})]
    assert line.severity_text == "WARNING"
    assert attributes(line) == {"job_id": JOB_ID, "attempt": 2, "logger": "libs.test"}
    assert line.body.string_value.startswith("told ")
    assert b"hunter2" not in line.SerializeToString()


async def test_headers_and_a_name_of_ones_own_go_with_them(
    receiver: Receiver | GrpcReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20me")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "our-workers")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.instance.id=theirs")

    await said_of_a_job()

    came = receiver.requests()
    assert {each.headers["authorization"] for each in came} == {"Bearer me"}
    for origin in [
        *(of for of, _ in spans_of(came)),
        *(of for of, _ in metrics_of(came)),
        *(of for of, _ in logs_of(came)),
    ]:
        told = {"service.name": "our-workers", "service.instance.id": "theirs", "deployment.environment.name": "test"}
        assert attributes(origin) | told == attributes(origin)


@pytest.mark.parametrize(
    ("told", "arrives"),
    [
        ({"OTEL_SDK_DISABLED": "true"}, set[str]()),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, {"metrics", "logs"}),
        ({"OTEL_TRACES_EXPORTER": "none"}, {"metrics", "logs"}),
        ({"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}, {"traces"}),
    ],
)
async def test_a_switch_turns_off_what_it_says(
    receiver: Receiver | GrpcReceiver, monkeypatch: pytest.MonkeyPatch, told: dict[str, str], arrives: set[str]
) -> None:
    for name, value in told.items():
        monkeypatch.setenv(name, value)

    await said_of_a_job()

    came = receiver.requests()
    kinds = {"traces": any(spans_of(came)), "metrics": any(metrics_of(came)), "logs": any(logs_of(came))}
    assert {kind for kind, there in kinds.items() if there} == arrives


async def test_the_endpoint_of_one_signal_sends_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{receiver.url}/v1/traces")
        await said_of_a_job()

    came = receiver.requests()
    assert (any(spans_of(came)), any(metrics_of(came)), any(logs_of(came))) == (True, False, False)


def test_a_protocol_that_nobody_speaks_is_said_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon")

    with pytest.raises(SettingsWrong, match=r"OTEL_EXPORTER_OTLP_PROTOCOL: 'carrier-pigeon' cannot be used"):
        Telemetry("worker", instance="w-1", logs=None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("receiver_is", ["hanging", "away"])
async def test_a_receiver_that_hangs_or_is_away_slows_nothing(
    monkeypatch: pytest.MonkeyPatch, silent: str, protocol: str, receiver_is: str
) -> None:
    monkeypatch.setenv(
        "OTEL_EXPORTER_OTLP_ENDPOINT", silent if receiver_is == "hanging" else f"http://127.0.0.1:{free_ports(1)[0]}"
    )
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    telemetry = Telemetry("worker", instance="w-1", logs=None)
    await telemetry.start()
    counter = telemetry.meter.create_counter("headgate_things")

    longest_s = 0.0
    for _ in range(3000):  # several batches, and more than a queue holds
        began = time.monotonic()
        with telemetry.job_span("stage code", JOB):
            ours.info("one of many")
            counter.add(1)
        await asyncio.sleep(0)
        longest_s = max(longest_s, time.monotonic() - began)

    began = time.monotonic()
    await telemetry.stop()
    assert longest_s < 5.0  # an attempt to send takes ten
    assert time.monotonic() - began < LAST_EXPORT_S + 5


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_process_ends_beside_a_receiver_that_hangs(silent: str, protocol: str) -> None:
    life = (
        "import asyncio, logging\n"
        "from libs.runtime.telemetry import Telemetry\n"
        "async def live():\n"
        "    telemetry = Telemetry('worker', instance='w-1', logs=None)\n"
        "    await telemetry.start()\n"
        "    with telemetry.tracer.start_as_current_span('stage code'):\n"
        "        logging.getLogger('libs').warning('said')\n"
        "    await telemetry.stop()\n"
        "asyncio.run(live())\n"
    )
    told = {"OTEL_EXPORTER_OTLP_ENDPOINT": silent, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}

    ended = subprocess.run([sys.executable, "-c", life], cwd=ROOT, env=os.environ | told, timeout=60, check=False)  # noqa: S603

    assert ended.returncode == 0

"""Spans reach a receiver of OTLP over HTTP, and one that is away holds up nobody."""

import time
from collections.abc import Iterator

import pytest

from libs.local.ports import free_ports
from libs.runtime.telemetry import LAST_EXPORT_S, Telemetry, job_trace
from tests.fixtures.otlp import Receiver

JOB = "01JABCDEFGHJKMNPQRSTVWXYZ0"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


async def test_two_processes_write_into_one_trace_of_the_job(receiver: Receiver) -> None:
    admission = Telemetry("admission", instance="a-1", otlp_endpoint=receiver.url, logs=None)
    worker = Telemetry("worker", instance="w-1", otlp_endpoint=f"{receiver.url}/", logs=None)
    with admission.tracer.start_as_current_span("POST /v1/jobs"):
        admission.emit_root("accept", JOB, started_ns=time.time_ns())
    with worker.message_span("process", "headgate.jobs.v1.{job}.{user}.{project}.{event}", job_id=JOB):
        pass

    await admission.stop()
    await worker.stop()

    spans = receiver.spans()
    request, root = spans["POST /v1/jobs"], spans["accept"]
    process = spans["process headgate.jobs.v1.{job}.{user}.{project}.{event}"]
    assert root.trace_id == process.trace_id == job_trace(JOB).trace_id.to_bytes(16, "big")
    assert root.span_id == process.parent_span_id == job_trace(JOB).root_span_id.to_bytes(8, "big")
    assert root.parent_span_id == b""
    assert [link.trace_id for link in root.links] == [request.trace_id] != [root.trace_id]


async def test_a_receiver_that_is_away_does_not_keep_a_process_from_ending() -> None:
    [port] = free_ports(1)
    telemetry = Telemetry("admission", instance="a-1", otlp_endpoint=f"http://127.0.0.1:{port}", logs=None)
    for _ in range(3000):  # several batches
        with telemetry.job_span("plan", JOB):
            pass

    began = time.monotonic()
    await telemetry.stop()

    assert time.monotonic() - began < LAST_EXPORT_S + 20  # the exporter's own patience is ten seconds a batch

"""Spans reach a receiver of OTLP over HTTP, and one that is away holds up nobody."""

import queue
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from libs.local.ports import free_ports
from libs.runtime.telemetry import LAST_EXPORT_S, Telemetry, job_trace

JOB = "01JABCDEFGHJKMNPQRSTVWXYZ0"


class Receiver:
    def __init__(self) -> None:
        self.requests: queue.Queue[tuple[str, bytes]] = queue.Queue()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.requests.put((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object, **_: object) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def spans(self) -> dict[str, Span]:
        """All that was received, by name."""
        received = [self.requests.get_nowait() for _ in range(self.requests.qsize())]
        assert {path for path, _ in received} == {"/v1/traces"}
        messages = [ExportTraceServiceRequest.FromString(body) for _, body in received]
        return {
            span.name: span
            for message in messages
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    made.start()
    yield made
    made.stop()


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

    assert time.monotonic() - began < LAST_EXPORT_S + 2

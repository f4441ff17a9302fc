"""What a supervisor and a scraper are answered, whatever else a service does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from libs.runtime.app import create_app
from libs.runtime.gate import Gate
from libs.runtime.lifecycle import Health
from libs.runtime.probes import Probes
from libs.runtime.telemetry import Telemetry
from tests.fixtures.admission_api import refused


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def gate() -> Gate:
    return Gate(opens_within_s=0.1)


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
def telemetry(exporter: InMemorySpanExporter) -> Telemetry:
    return Telemetry("test", instance="t-1", logs=None, span_processors=(SimpleSpanProcessor(exporter),))


@pytest_asyncio.fixture
async def client(gate: Gate, health: Health, telemetry: Telemetry) -> AsyncIterator[httpx.AsyncClient]:
    """Of a service with one route beside the probes."""
    app = create_app("test", version="0", gate=gate, telemetry=telemetry)

    @app.get("/jobs")
    async def jobs() -> str:
        return "none"

    probes = Probes(gate=gate, health=health, telemetry=telemetry, rest=app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(probes), base_url="http://test") as made:
        yield made


async def test_a_service_is_alive_before_it_is_ready(client: httpx.AsyncClient, gate: Gate, health: Health) -> None:
    health.is_missing("NATS", "nats://admission:hunter2@10.0.0.1 refused")
    assert (await client.get("/livez")).status_code == 200
    not_ready = await client.get("/readyz")
    assert refused(not_ready, 503, "not-ready")["missing"] == ["NATS", "gate"]
    assert "10.0.0.1" not in not_ready.text
    early = await client.get("/jobs")
    assert refused(early, 503, "unavailable")
    assert early.headers["retry-after"] == "1"

    health.is_there("NATS")
    await gate.start()

    ready = await client.get("/readyz")
    assert (ready.status_code, ready.text) == (200, "ready\n")
    health.note("this", "one thing to know", "another")
    assert (await client.get("/readyz")).text == "ready\none thing to know\nanother\n"
    assert (await client.get("/jobs")).status_code == 200


async def test_requests_are_counted_and_probes_are_not(
    client: httpx.AsyncClient, gate: Gate, exporter: InMemorySpanExporter
) -> None:
    await gate.start()
    await client.get("/jobs")
    metrics = await client.get("/metrics")
    await client.get("/livez")

    assert 'http_route="/jobs"' in metrics.text
    assert "http_server_request_duration_seconds_count" in metrics.text
    assert [span.name for span in exporter.get_finished_spans()] == ["GET /jobs"]
    assert "/livez" not in (await client.get("/metrics")).text


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
async def test_a_probe_is_kept_nowhere_and_takes_one_method(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    wrong = await client.post(path)
    assert refused(wrong, 405, "method-not-allowed")
    assert wrong.headers["allow"] == "GET"


async def test_a_port_without_metrics_answers_the_other_probes(
    gate: Gate, health: Health, telemetry: Telemetry
) -> None:
    probes = Probes(gate=gate, health=health, telemetry=telemetry, metrics=False)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(probes), base_url="http://test") as client:
        assert (await client.get("/livez")).status_code == 200
        assert (await client.get("/readyz")).status_code == 503
        assert refused(await client.get("/metrics"), 404, "not-found")


async def test_a_service_without_clients_answers_probes_alone(gate: Gate, health: Health, telemetry: Telemetry) -> None:
    probes = Probes(gate=gate, health=health, telemetry=telemetry)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(probes), base_url="http://test") as client:
        assert (await client.get("/livez")).text == "alive\n"
        for path in ("/", "/v1/jobs", "/livez/"):
            assert refused(await client.get(path), 404, "not-found")

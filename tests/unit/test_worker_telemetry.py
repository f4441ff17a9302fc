"""What the process of an attempt says of its calls and commands: counted, and as spans by the conventions, without its
words."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from libs.runtime.telemetry import Telemetry
from services.worker.attempt.telemetry import CallBook, show_command
from services.worker.child.messages import CommandEnded, ModelCalled, ProviderEndpoint
from services.worker.signals import Signals
from tests.fixtures.lives import job_after

KEY = "sk-of-the-test-0123456789"
ENDPOINTS = {"gemini": ProviderEndpoint(url="http://127.0.0.1:9/v1", model="gemini-2.5-flash", key=KEY)}
ANSWERED = ModelCalled(
    provider="gemini",
    model="gemini-2.5-flash",
    took_ms=1500,
    outcome="answered",
    input_tokens=12,
    output_tokens=7,
    cached_tokens=4,
)
RAN = CommandEnded(program="pytest", took_ms=250, network=False, ended_by="itself", exit_code=1)


def shown(*told: ModelCalled | CommandEnded) -> ReadableSpan:
    exporter = InMemorySpanExporter()
    telemetry = Telemetry("worker", instance="w", logs=None, span_processors=(SimpleSpanProcessor(exporter),))
    with telemetry.job_span("stage code", job_after("queued dispatched started")) as stage:
        for each in told:
            if isinstance(each, ModelCalled):
                CallBook(ENDPOINTS, Signals(telemetry, pool="default")).add(each)
            else:
                show_command(each)
    first = exporter.get_finished_spans()[0]
    assert first.parent == stage.get_span_context()
    return first


def test_a_call_is_a_span_by_the_conventions_with_model_tokens_and_its_time() -> None:
    span = shown(ANSWERED)

    assert (span.name, span.kind) == ("chat gemini-2.5-flash", SpanKind.CLIENT)
    assert (span.end_time or 0) - (span.start_time or 0) == 1_500_000_000
    assert span.status.is_unset
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-2.5-flash",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "headgate.outcome": "answered",
    }


@pytest.mark.parametrize(
    ("told", "name", "provider", "model"),
    [
        ({"model": "my-own"}, "chat", "gcp.gemini", "my-own"),
        ({"model": KEY}, "chat", "gcp.gemini", "[masked]"),
        ({"model": "ann@example.org"}, "chat", "gcp.gemini", "[address]"),
        ({"provider": "elsewhere"}, "chat", "other", "gemini-2.5-flash"),
    ],
)
def test_a_word_that_is_not_configured_is_in_no_name_and_no_secret_anywhere(
    told: dict[str, Any], name: str, provider: str, model: str
) -> None:
    span = shown(ANSWERED.model_copy(update=told))

    said = dict(span.attributes or {})
    assert (span.name, said["gen_ai.provider.name"], said["gen_ai.request.model"]) == (name, provider, model)


def test_a_call_that_was_not_answered_has_failed() -> None:
    span = shown(ANSWERED.model_copy(update={"outcome": "busy", "input_tokens": None, "output_tokens": None}))

    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "the provider's answer: busy")
    assert (span.attributes or {})["error.type"] == "busy"


def test_a_call_that_was_broken_off_is_no_fault_of_the_provider() -> None:
    span = shown(ANSWERED.model_copy(update={"outcome": "broken_off"}))

    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "the call was broken off")


@pytest.mark.parametrize(("ended_by", "failed"), [("itself", False), ("memory", True), ("time", True)])
def test_a_command_that_found_something_is_none_that_failed(ended_by: str, *, failed: bool) -> None:
    span = shown(RAN.model_copy(update={"ended_by": ended_by}))

    assert (span.name, span.status.status_code is StatusCode.ERROR) == ("command", failed)
    assert dict(span.attributes or {}) == {
        "process.executable.name": "pytest",
        "process.exit.code": 1,
        "headgate.network": False,
        "headgate.outcome": ended_by,
    }


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry("worker", instance="w", logs=None)


def test_calls_add_up_by_provider_and_model_until_they_are_told(telemetry: Telemetry) -> None:
    book = CallBook(ENDPOINTS, Signals(telemetry, pool="default"))
    for told in (ANSWERED, ANSWERED, ANSWERED.model_copy(update={"outcome": "busy", "input_tokens": None})):
        book.add(told)
    book.add(ANSWERED.model_copy(update={"model": f"mine, {KEY}", "cached_tokens": None}))

    first, second = book.taken()

    assert (first.calls, first.input_tokens, first.output_tokens, first.cached_tokens) == (3, 24, 21, 12)
    assert (first.provider, first.model, first.took_ms) == ("gemini", "gemini-2.5-flash", 4500)
    assert (second.model, second.calls, second.cached_tokens) == ("mine_masked", 1, 0)
    assert book.taken() == ()


def test_a_provider_that_is_none_is_in_no_event(telemetry: Telemetry) -> None:
    """An API key could be one by its letters."""
    book = CallBook(ENDPOINTS, Signals(telemetry, pool="default"))

    book.add(ANSWERED.model_copy(update={"provider": KEY}))

    [usage] = book.taken()
    assert (usage.provider, usage.calls, usage.input_tokens) == ("other", 1, 12)


def test_metrics_of_calls_name_what_is_configured_and_nothing_else(telemetry: Telemetry) -> None:
    book = CallBook(ENDPOINTS, Signals(telemetry, pool="default"))
    book.add(ANSWERED)
    book.add(ANSWERED.model_copy(update={"provider": "elsewhere", "model": "my-own"}))

    shown = telemetry.metrics_text().decode()
    for model, provider in (("gemini-2.5-flash", "gemini"), ("other", "other")):
        for kind, count in {"input": 12, "output": 7, "cached": 4}.items():
            labels = f'model="{model}",provider="{provider}",type="{kind}"'
            assert f"headgate_worker_model_tokens_total{{{labels}}} {count}.0" in shown
    assert "my-own" not in shown

"""A job's trace is its request's, in every process alike; names are few; logs are joined to traces and jobs."""

import io
import json
import logging
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags, TraceState

from libs.runtime.settings import ServiceSettings, read_settings
from libs.runtime.spans import lent, passed, step
from libs.runtime.telemetry import (
    Telemetry,
    current_debug_id,
    job_context,
    job_parts,
    job_trace,
    linked,
    request_trace,
    trace_headers,
    traceparent,
)
from tests.fixtures.lives import job_after, submission

JOB_ID = "01JABCDEFGHJKMNPQRSTVWXYZ0"
JOB = job_after("queued", JOB_ID)
ANOTHER = job_after("queued", "another")
TEMPLATE = "headgate.jobs.v1.{job}.{user}.{project}.{event}"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest_asyncio.fixture
async def telemetry(exporter: InMemorySpanExporter) -> AsyncIterator[Telemetry]:
    made = Telemetry("admission", instance="a-1", logs=None, span_processors=(SimpleSpanProcessor(exporter),))
    await made.start()
    yield made
    await made.stop()


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    [span] = exporter.get_finished_spans()
    return span


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def test_a_jobs_trace_is_its_requests() -> None:
    asked = f"00-{'a' * 32}-{'b' * 16}-01"
    job = job_after("queued", submission=submission(traceparent=asked, tracestate="vendor=x"))

    found = job_trace(job)

    assert (found.debug_id, found.header) == ("a" * 32, asked)
    assert found.root.trace_state.to_header() == "vendor=x"


def test_a_job_whose_writer_named_no_trace_has_one_that_follows_from_its_id() -> None:
    found = job_trace(job_after("queued", "j1"))

    # printf 'headgate job j1' | sha256sum
    assert found.debug_id == "3aff6a0b74b197497385544f9f2eab4c"
    assert trace.format_span_id(found.root.span_id) == "31034d3869687a32"


async def test_what_a_request_carries_on_is_its_own_span_and_its_clients_state(telemetry: Telemetry) -> None:
    state = TraceState([("vendor", "x")])
    client = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
    with (
        trace.use_span(NonRecordingSpan(client)),
        telemetry.tracer.start_as_current_span("POST /v1/jobs") as request,
    ):
        carried = request_trace()

    assert carried == {"traceparent": traceparent(request.get_span_context()), "tracestate": "vendor=x"}
    assert request.get_span_context().trace_id == 1


def test_a_trace_goes_through_a_process_that_sends_none_and_nothing_is_recorded() -> None:
    sends_nothing = Telemetry("worker", instance="w-1", logs=None)
    client = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1), trace_state=TraceState([("vendor", "x")]))
    with trace.use_span(NonRecordingSpan(client)), sends_nothing.tracer.start_as_current_span("claim") as span:
        carried = trace_headers()

    context = span.get_span_context()
    assert not span.is_recording()
    assert context.span_id != client.span_id
    assert carried == {
        "traceparent": f"00-{1:032x}-{context.span_id:016x}-01",
        "tracestate": "vendor=x",
    }


def test_without_a_client_such_a_process_begins_a_trace_that_others_may_record() -> None:
    sends_nothing = Telemetry("worker", instance="w-1", logs=None)
    first, second = (sends_nothing.tracer.start_span("claim").get_span_context() for _ in range(2))

    assert first.trace_id != second.trace_id
    assert first.trace_flags.sampled


def test_a_sampler_that_somebody_has_set_speaks_for_all_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")

    span = Telemetry("worker", instance="w-1", logs=None).tracer.start_span("claim")

    assert not span.get_span_context().trace_flags.sampled


def test_where_nothing_is_recorded_each_request_begins_a_trace() -> None:
    first, second = request_trace(), request_trace()

    assert first["traceparent"] != second["traceparent"]
    assert submission(**first).traceparent == first["traceparent"]


@pytest.mark.parametrize(("flags", "recorded"), [("00", 0), ("01", 1)])
async def test_whether_a_job_is_sampled_its_client_says(
    telemetry: Telemetry, exporter: InMemorySpanExporter, flags: str, recorded: int
) -> None:
    job = job_after("queued", submission=submission(traceparent=f"00-{'a' * 32}-{'b' * 16}-{flags}"))
    with telemetry.job_span("stage code", job):
        assert current_debug_id() == "a" * 32

    assert len(exporter.get_finished_spans()) == recorded


async def test_a_span_in_any_process_is_a_child_of_the_jobs_root(
    telemetry: Telemetry, exporter: InMemorySpanExporter
) -> None:
    with telemetry.job_span("stage code", JOB, attributes={"headgate.stage": "code"}):
        assert current_debug_id() == job_trace(JOB).debug_id

    span = only(exporter)
    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id) == (job_trace(JOB).root.trace_id, job_trace(JOB).root.span_id)
    assert dict(span.attributes or {}) == {"headgate.job.id": JOB_ID, "headgate.stage": "code"}


async def test_a_span_inside_a_span_of_the_same_job_is_its_child(
    telemetry: Telemetry, exporter: InMemorySpanExporter
) -> None:
    with telemetry.job_span("outer", JOB) as outer, telemetry.job_span("inner", JOB):
        pass

    inner = exporter.get_finished_spans()[0]
    assert inner.parent is not None
    assert inner.parent.span_id == outer.get_span_context().span_id
    assert inner.links == ()


async def test_a_span_of_one_job_inside_another_trace_links_to_it(
    telemetry: Telemetry, exporter: InMemorySpanExporter
) -> None:
    with telemetry.job_span("plan", ANOTHER) as other, telemetry.job_span("dispatch", JOB):
        pass

    span = exporter.get_finished_spans()[0]
    assert ids(span)[0] == job_trace(JOB).root.trace_id
    assert [link.context for link in span.links] == [other.get_span_context()]


async def test_a_span_is_the_child_of_what_caused_it_and_keeps_the_callers_state(
    telemetry: Telemetry, exporter: InMemorySpanExporter
) -> None:
    asked = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": "vendor=x"}
    job = job_after("queued", submission=submission(**asked))
    [cause], [elsewhere] = linked(f"00-{'a' * 32}-{'c' * 16}-01"), linked(f"00-{'d' * 32}-{'e' * 16}-01")
    with telemetry.job_span("attempt", job, cause=cause):
        carried = trace_headers()
    with telemetry.job_span("attempt", job, cause=elsewhere):
        pass

    caused, other = exporter.get_finished_spans()
    assert caused.parent is not None
    assert other.parent is not None
    assert (f"{caused.parent.span_id:016x}", f"{other.parent.span_id:016x}") == ("c" * 16, "b" * 16)
    assert carried == {"traceparent": traceparent(caused.get_span_context()), "tracestate": "vendor=x"}


async def test_steps_are_parts_of_what_is_recorded_here_and_nothing_elsewhere(
    telemetry: Telemetry, exporter: InMemorySpanExporter
) -> None:
    with step("nowhere"):
        passed("nowhere", {}, took_s=1)
    with telemetry.job_span("attempt", JOB) as attempt, step("wait for slots"):
        passed("chat", {"gen_ai.operation.name": "chat"}, took_s=2, wrong="Busy")

    spans = {span.name: span for span in exporter.get_finished_spans()}
    chat, wait = spans["chat"], spans["wait for slots"]
    assert sorted(spans) == ["attempt", "chat", "wait for slots"]
    assert wait.parent == attempt.get_span_context()
    assert chat.parent == wait.get_span_context()
    assert (chat.end_time or 0) - (chat.start_time or 0) == 2_000_000_000
    assert (chat.status.status_code, chat.status.description) == (StatusCode.ERROR, "Busy")


async def test_parts_of_several_jobs_are_each_in_their_own_trace(
    telemetry: Telemetry, exporter: InMemorySpanExporter
) -> None:
    request = telemetry.tracer.start_as_current_span("POST /v1/jobs/cancel")
    with lent(telemetry.tracer), request as asked, job_parts([("append", JOB), ("append", ANOTHER)]) as carried:
        pass

    first, second, _ = exporter.get_finished_spans()
    assert [ids(first)[0], ids(second)[0]] == [job_trace(JOB).root.trace_id, job_trace(ANOTHER).root.trace_id]
    assert carried == [traceparent(first.get_span_context()), traceparent(second.get_span_context())]
    assert [[link.context for link in span.links] for span in (first, second)] == [[asked.get_span_context()]] * 2


async def test_a_fault_marks_the_span_with_its_kind_alone_and_goes_on(
    telemetry: Telemetry, exporter: InMemorySpanExporter
) -> None:
    with pytest.raises(OSError, match="disk"), telemetry.job_span("stage code", JOB):
        raise OSError("disk of ann@example.org full")

    span = only(exporter)
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "OSError")
    assert span.events == ()
    assert "ann@" not in span.to_json()


@pytest.mark.parametrize(("operation", "kind"), [("publish", SpanKind.PRODUCER), ("process", SpanKind.CONSUMER)])
@pytest.mark.parametrize("job_id", [None, JOB_ID])
async def test_a_message_span_is_named_after_the_template_of_its_subject(
    telemetry: Telemetry, exporter: InMemorySpanExporter, operation: str, kind: SpanKind, job_id: str | None
) -> None:
    with telemetry.message_span(operation, TEMPLATE, job_id=job_id, parent=job_trace(JOB).header):  # type: ignore[arg-type]
        pass

    span = only(exporter)
    assert (span.name, span.kind) == (f"{operation} {TEMPLATE}", kind)
    assert span.attributes is not None
    assert span.attributes["messaging.destination.template"] == TEMPLATE
    assert (ids(span)[0] == job_trace(JOB).root.trace_id) is (job_id is not None)


async def test_a_name_with_the_jobs_id_in_it_is_refused(telemetry: Telemetry) -> None:
    with pytest.raises(ValueError, match="ids are attributes"), telemetry.job_span(f"run {JOB_ID}", JOB):
        pass


async def test_the_values_of_a_query_are_never_exported(telemetry: Telemetry, exporter: InMemorySpanExporter) -> None:
    query = "ticket=secret&last_event_id=e-1"
    with telemetry.tracer.start_as_current_span("GET /v1/stream", attributes={"url.query": query}):
        pass

    assert (only(exporter).attributes or {})["url.query"] == "ticket&last_event_id"


async def test_what_a_message_carries_on_is_read_back_as_the_same_span(telemetry: Telemetry) -> None:
    with telemetry.job_span("publish", JOB) as span:
        header = traceparent()

    assert header is not None
    assert header.startswith(f"00-{job_trace(JOB).debug_id}-")
    assert header.endswith("-03")  # sampled, and as even as random
    [context] = linked(header)
    assert (context.trace_id, context.span_id) == (span.get_span_context().trace_id, span.get_span_context().span_id)


def test_outside_any_span_there_is_nothing_to_carry_on() -> None:
    assert traceparent() is None


def test_outside_any_trace_each_debug_id_is_another() -> None:
    assert current_debug_id() != current_debug_id()


@pytest.mark.parametrize(
    "header", [None, "", "nonsense", f"00-{'0' * 32}-{'b' * 16}-01", f"00-{'A' * 32}-{'b' * 16}-01"]
)
def test_a_header_that_cannot_be_read_links_to_nothing(header: str | None) -> None:
    assert linked(header) == ()


async def test_metrics_have_the_names_that_were_given(telemetry: Telemetry) -> None:
    telemetry.meter.create_counter("headgate_concurrency_acquisition").add(
        2, {"group": "workflows", "result": "acquired"}
    )
    telemetry.meter.create_histogram("headgate_concurrency_wait_seconds").record(0.2, {"group": "workflows"})

    text = telemetry.metrics_text().decode()

    assert 'headgate_concurrency_acquisition_total{group="workflows",result="acquired"} 2.0' in text
    assert 'headgate_concurrency_wait_seconds_count{group="workflows"} 1.0' in text
    assert 'service_name="admission"' in text


async def test_two_services_in_one_process_count_for_themselves(telemetry: Telemetry) -> None:
    other = Telemetry("worker", instance="w-1", logs=None)
    other.meter.create_counter("headgate_beats").add(1)

    assert b"headgate_beats_total 1.0" in other.metrics_text()
    assert b"headgate_beats" not in telemetry.metrics_text()


# --- logs ---


@pytest_asyncio.fixture
async def written() -> AsyncIterator[io.StringIO]:
    stream = io.StringIO()
    logging_telemetry = Telemetry("worker", instance="w-1", logs=stream)
    await logging_telemetry.start()
    yield stream
    await logging_telemetry.stop()


ours = logging.getLogger("libs.runtime.test")


def lines(stream: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_a_line_says_when_who_how_bad_and_what(written: io.StringIO) -> None:
    ours.warning("the store is %s\nfull", "nearly", extra={"free_bytes": 7})

    [line] = lines(written)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "WARNING",
        "service": "worker",
        "instance": "w-1",
        "message": "the store is nearly\nfull",
        "free_bytes": 7,
        "logger": "libs.runtime.test",
    }


async def test_a_line_inside_a_job_names_the_job_and_its_trace(written: io.StringIO, telemetry: Telemetry) -> None:
    with telemetry.job_span("stage code", JOB):
        ours.info("inside")
    ours.info("outside")

    inside, outside = lines(written)
    assert (inside["job_id"], inside["trace_id"]) == (JOB_ID, job_trace(JOB).debug_id)
    assert not {"job_id", "trace_id"} & outside.keys()


async def test_between_a_jobs_spans_lines_and_messages_belong_to_it_all_the_same(
    written: io.StringIO, telemetry: Telemetry, exporter: InMemorySpanExporter
) -> None:
    with job_context(JOB):
        logging.getLogger("services.test").warning("between")
        assert traceparent() == job_trace(JOB).header
        with telemetry.job_span("stage code", JOB):
            pass

    [line] = lines(written)
    assert (line["job_id"], line["trace_id"]) == (JOB_ID, job_trace(JOB).debug_id)
    span = only(exporter)
    assert span.parent is not None
    assert (span.parent.span_id, span.links) == (job_trace(JOB).root.span_id, ())


async def test_a_fault_is_written_into_its_line(written: io.StringIO) -> None:
    ours.error("cannot go on", exc_info=OSError("disk full"))

    [line] = lines(written)
    assert "OSError: disk full" in line["exception"]


@pytest.mark.parametrize(
    "secret",
    ["nats://worker:hunter2@127.0.0.1:4222", "Bearer eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJodW50ZXIyIn0.hunter2"],
)
async def test_what_looks_like_a_credential_is_not_written(written: io.StringIO, secret: str) -> None:
    ours.error("no answer from %s", secret, extra={"target": secret})

    assert "hunter2" not in written.getvalue()
    assert "no answer from" in written.getvalue()


async def test_others_are_heard_from_warnings_on(written: io.StringIO) -> None:
    logging.getLogger("somebody.else").info("chatter")
    logging.getLogger("somebody.else").warning("trouble")

    assert [line["message"] for line in lines(written)] == ["trouble"]


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("DEBUG", ["debug", "info", "warning", "error"]),
        ("INFO", ["info", "warning", "error"]),
        ("WARNING", ["warning", "error"]),
        ("ERROR", ["error"]),
    ],
)
async def test_from_which_level_on_we_are_heard_the_settings_say(
    monkeypatch: pytest.MonkeyPatch, level: str, said: list[str]
) -> None:
    told = {"NATS_URL": "nats://u:p@h:4222", "REDIS_URL": "redis://u:p@h:6379/0", "LOG_LEVEL": level}
    for name, value in told.items():
        monkeypatch.setenv(f"HEADGATE_{name}", value)
    stream = io.StringIO()
    telemetry = Telemetry("w", instance="w", logs=stream, log_level=read_settings(ServiceSettings).log_level)
    await telemetry.start()
    try:
        for each in ("debug", "info", "warning", "error"):
            ours.log(logging.getLevelNamesMapping()[each.upper()], each)
    finally:
        await telemetry.stop()

    assert [line["message"] for line in lines(stream)] == said


async def test_after_the_end_nothing_is_written() -> None:
    stream = io.StringIO()
    telemetry = Telemetry("worker", instance="w-1", logs=stream)
    await telemetry.start()
    await telemetry.start()

    await telemetry.stop()
    await telemetry.stop()
    ours.error("late")

    assert stream.getvalue() == ""

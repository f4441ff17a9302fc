"""Which pipelines there are: what workers announce, what admission refuses by it, and what an operator removes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headgate_pipeline import Pipeline, input_as
from headgate_pipeline.rules import KnownPipeline
from libs.eventlog import LogUnavailable
from libs.eventlog.pipelines import AnnouncedPipeline, MemoryPipelines, fitting
from libs.runtime.clock import Clock
from services.admission.domain import NewJob
from services.admission.limits import NotAllowed
from services.admission.pipelines import PipelineBook, Pipelines
from services.worker import rehearsal
from services.worker.announcing import Announcing
from services.worker.build.asked import BuildInput
from tests.fixtures.admission_api import OPERATOR, AdmissionApi
from tests.fixtures.lives import submission
from tests.fixtures.logs import HastyClock
from tests.fixtures.memory_admission import MemoryAdmission

REHEARSAL = rehearsal.pipeline.stages


def announced(name: str, *, pool: str = "default", schema: dict[str, Any] | None = None) -> AnnouncedPipeline:
    return AnnouncedPipeline(name=name, pool=pool, input_schema=schema)


def asked(pipeline: str, content: dict[str, Any], *, pool: str = "default", **more: Any) -> NewJob:
    wanted = submission(pipeline=pipeline, pool=pool, **more)
    return NewJob("j1", "ann", "shop", wanted, json.dumps(content).encode())


BOOK = PipelineBook.of(
    [
        announced("rehearsal", schema=REHEARSAL.input_schema),
        announced("build", schema=input_as(BuildInput).schema),
        announced("greeting", pool="greetings"),
    ]
)


# ── what is refused ───────────────────────────────────────────────────────────


def test_before_any_worker_has_spoken_what_is_built_in_is_taken_with_any_input() -> None:
    book = PipelineBook.of([])

    assert [book.refusal(asked(name, {"any": 1})) for name in ("build", "rehearsal")] == [None, None]


def test_a_pipeline_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    refusal = BOOK.refusal(asked("greting", {}, pool="greetings"))

    assert refusal == NotAllowed(
        "pipeline", "there is no 'greting' in pool 'greetings': name one of build, greeting, rehearsal"
    )


def test_a_pipeline_of_another_pool_is_refused_by_that_pool_s_name() -> None:
    refusal = BOOK.refusal(asked("greeting", {}))

    assert refusal is not None
    assert "it runs in pool greetings: name one of build, rehearsal" in refusal.reason


@pytest.mark.parametrize(
    ("pipeline", "content", "fields"),
    [
        ("rehearsal", {"stages": {"code": 1}}, []),
        ("rehearsal", {"stages": {"code": "long", "cook": 1}}, ["input.stages.code", "input.stages.cook"]),
        ("rehearsal", {"log_line": 3}, ["input.log_line"]),
        ("build", {"prompt": "a page"}, []),
        ("build", {}, ["input.prompt"]),
        ("build", {"prompt": "", "model": "a b"}, ["input.model", "input.prompt"]),
    ],
)
def test_an_input_is_checked_by_its_schema_field_by_field(
    pipeline: str, content: dict[str, Any], fields: list[str]
) -> None:
    refusal = BOOK.refusal(asked(pipeline, content))

    assert sorted(field for field, _ in (refusal.every if refusal else ())) == fields


def test_of_many_faults_the_first_twenty_are_said_each_in_few_words() -> None:
    book = PipelineBook.of([announced("p", schema={"additionalProperties": {"type": "integer"}})])

    refusal = book.refusal(asked("p", {f"k{number}": "x" * 1000 for number in range(50)}))

    assert refusal is not None
    assert len(refusal.every) == 20
    assert max(len(reason) for _, reason in refusal.every) <= 200


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"$ref": "https://example.com/schema.json"}])
def test_a_schema_that_is_none_or_points_elsewhere_fetches_nothing(schema: dict[str, Any]) -> None:
    book = PipelineBook.of([announced("p", schema=schema)])

    assert book.refusal(asked("p", {"a": 1})) is None


# ── how it is known ───────────────────────────────────────────────────────────


async def test_a_pipeline_announced_a_moment_ago_is_taken_without_waiting_for_the_next_look() -> None:
    bucket = MemoryPipelines()
    pipelines = Pipelines(bucket, HastyClock())
    await pipelines.refresh()
    await bucket.announce(announced("greeting"))

    assert await pipelines.refusal([asked("greeting", {})]) is None


async def test_a_phase_is_refused_by_its_own_field() -> None:
    pipelines = Pipelines(MemoryPipelines(), HastyClock())

    refusal = await pipelines.refusal([asked("build", {}), asked("nothing", {})])

    assert refusal is not None
    assert refusal.field == "phases.1.pipeline"


async def test_a_removed_pipeline_is_refused_and_can_be_announced_again() -> None:
    bucket = MemoryPipelines(announced("greeting"))
    pipelines = Pipelines(bucket, HastyClock())
    await pipelines.refresh()

    await pipelines.remove("default", "greeting")

    assert await pipelines.refusal([asked("greeting", {})]) is not None
    assert await bucket.announce(announced("greeting"))
    assert await pipelines.refusal([asked("greeting", {})]) is None


class AwayAtFirst(MemoryPipelines):
    """A bucket that cannot be asked for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def announce(self, pipeline: AnnouncedPipeline) -> bool:
        self.asked += 1
        if self.asked == 1:
            raise LogUnavailable(reason="away")
        return await super().announce(pipeline)


async def test_a_worker_announces_what_it_has_once_and_again_where_nobody_answered() -> None:
    bucket, clock = AwayAtFirst(), HastyClock()
    known = {"rehearsal": REHEARSAL, "mine": KnownPipeline(version="2.1")}

    worker = announcing(bucket, known, clock)
    await worker.tried()
    assert await bucket.all() == ()
    await worker.run(asyncio.Event())

    mine, told = await bucket.all()
    assert (mine.name, mine.pool, mine.version, mine.input_schema) == ("mine", "default", "2.1", None)
    assert [title.name for title in told.titles] == ["scaffold", "code", "deps", "checks"]
    revision = await bucket.revision()
    await announcing(bucket, known, clock).tried()
    assert await bucket.revision() == revision


def announcing(bucket: MemoryPipelines, known: dict[str, KnownPipeline], clock: Clock) -> Announcing:
    return Announcing(bucket, known, pool="default", clock=clock)


def test_a_schema_too_large_to_check_by_is_left_out() -> None:
    assert fitting({"a": "x"}) == {"a": "x"}
    assert fitting({"a": "x" * 70_000}) is None
    assert fitting(None) is None


def test_a_pipeline_with_a_reading_of_its_own_has_no_schema() -> None:
    assert Pipeline("mine", rehearsal.pipeline.steps).stages.input_schema is None
    assert Pipeline("mine", rehearsal.pipeline.steps, version="3").stages.version == "3"


# ── over HTTP ─────────────────────────────────────────────────────────────────


ORDER = {"project_id": "shop", "pipeline": "greeting", "input": {"name": "Ann"}}
GREETING = announced("greeting", schema={"properties": {"name": {"type": "string"}}, "required": ["name"]})


@pytest.fixture
def bucket(admission: MemoryAdmission) -> MemoryPipelines:
    found = admission.pipelines._bucket
    assert isinstance(found, MemoryPipelines)
    return found


async def test_a_pipeline_that_there_is_not_is_422_in_a_dry_run_too_and_in_a_batch_and_a_workflow(
    admission: MemoryAdmission,
) -> None:
    flow = {"project_id": "shop", "phases": [{"input": {"prompt": "a"}}, {"pipeline": "greeting", "input": {}}]}
    async with AdmissionApi(admission).client("ann") as ann:
        refused = [
            await ann.post("/v1/jobs", json=ORDER),
            await ann.post("/v1/jobs?dry_run=true", json=ORDER),
            await ann.post("/v1/workflows", json=flow),
        ]
        batch = await ann.post("/v1/jobs/batch", json={"jobs": [ORDER]})

    assert [answer.status_code for answer in refused] == [422] * 3
    assert refused[0].json()["detail"] == (
        "pipeline: there is no 'greeting' in pool 'default': name one of build, rehearsal"
    )
    assert [each["field"] for answer in refused for each in answer.json()["errors"]] == [
        "pipeline",
        "pipeline",
        "phases.1.pipeline",
    ]
    assert [each["status"] for each in batch.json()["results"]] == [422]
    assert admission.server.last_seq == 0


async def test_an_input_is_refused_by_its_field_and_a_key_that_was_taken_in_stands(
    admission: MemoryAdmission, bucket: MemoryPipelines
) -> None:
    await bucket.announce(GREETING)
    async with AdmissionApi(admission).client("ann") as ann:
        wrong = await ann.post("/v1/jobs", json=ORDER | {"input": {"name": 3}})
        taken = await ann.post("/v1/jobs", json=ORDER, headers={"Idempotency-Key": "k"})
        await bucket.remove("default", "greeting")
        await admission.pipelines.refresh()
        again = await ann.post("/v1/jobs", json=ORDER, headers={"Idempotency-Key": "k"})
        other = await ann.post("/v1/jobs", json=ORDER, headers={"Idempotency-Key": "l"})

    assert [each["field"] for each in wrong.json()["errors"]] == ["input.name"]
    assert (taken.status_code, again.status_code, other.status_code) == (202, 202, 422)
    assert taken.json()["id"] == again.json()["id"]


async def test_a_job_whose_pipeline_is_gone_is_not_submitted_again(
    admission: MemoryAdmission, bucket: MemoryPipelines
) -> None:
    await bucket.announce(GREETING)
    async with AdmissionApi(admission).client("ann") as ann:
        job = (await ann.post("/v1/jobs", json=ORDER)).json()
        await ann.post(f"/v1/jobs/{job['id']}/cancel")
        await bucket.remove("default", "greeting")
        await admission.pipelines.refresh()
        answer = await ann.post(f"/v1/jobs/{job['id']}/retry")

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "pipeline")


async def test_all_are_listed_and_an_operator_alone_removes_one(
    admission: MemoryAdmission, bucket: MemoryPipelines
) -> None:
    await bucket.announce(GREETING)
    await admission.pipelines.refresh()
    api = AdmissionApi(admission)
    async with api.client("ann") as ann, api.client("ops", scope=OPERATOR) as ops:
        listed = await ann.get("/v1/pipelines")
        forbidden = await ann.delete("/v1/pipelines/greeting")
        removed = await ops.delete("/v1/pipelines/greeting?reason=it%20is%20rude")
        gone = await ops.delete("/v1/pipelines/greeting")
        [act] = (await ops.get("/v1/audit")).json()

    assert [(each["name"], each["pool"]) for each in listed.json()] == [
        ("greeting", "default"),
        ("build", None),
        ("rehearsal", None),
    ]
    assert listed.json()[0]["input_schema"] == GREETING.input_schema
    assert (forbidden.status_code, removed.status_code, gone.status_code) == (403, 200, 404)
    assert "there are build, rehearsal" in gone.json()["detail"]
    told = (act["act"], act["by"], act["reason"], act["about"], act["details"])
    assert told == ("pipeline_removed", "ops", "it is rude", "greeting", {"pipeline": "greeting", "pool": "default"})

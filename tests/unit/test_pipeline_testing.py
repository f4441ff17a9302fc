"""The kit by which an author tests a pipeline, in the author's own process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from headgate_pipeline import ChecksFailed, Context, Pipeline, StageFailed, TryAgain, input_as, stage
from headgate_pipeline.pipeline import Step
from headgate_pipeline.testing import FailedTry, PipelineRun, SlotsAsked, run


@stage("think")
async def think(ctx: Context) -> None:
    ctx.log(f"iteration {ctx.iteration}")
    (ctx.workspace / "kept.txt").write_text("kept")
    (ctx.workspace / "env").mkdir(exist_ok=True)
    (ctx.workspace / ".cache").mkdir(exist_ok=True)
    (ctx.workspace / "link").unlink(missing_ok=True)
    (ctx.workspace / "link").symlink_to("kept.txt")


@stage("write", max_concurrent=3, retries=2, backoff_s=(5, 60))
async def write(ctx: Context) -> None:
    async with ctx.slots(providers=("openai",), groups=("db",)):
        ctx.log(f"{len(ctx.failure)} {ctx.tries}")


@stage("check")
async def check(ctx: Context) -> None:
    ran = await ctx.run(sys.executable, "-c", "print('said')")
    if ctx.iteration < ctx.input["good_in"]:
        raise ChecksFailed("not yet", "the reason")
    ctx.result.mkdir()
    names = sorted(path.name for path in ctx.workspace.iterdir())
    (ctx.result / "told.json").write_text(json.dumps([ran.output_tail, names]))


WHOLE = Pipeline("whole", (think, write, check), again_at="write", not_kept=("env",))


def one(work: Callable[[Context], None], **rules: object) -> Pipeline:
    async def does(ctx: Context) -> None:
        work(ctx)

    step: Step = stage("only", **rules)(does)  # type: ignore[arg-type] - rules of a stage, as they are
    return Pipeline("one", (step,))


def raising(error: BaseException) -> Callable[[Context], None]:
    def work(ctx: Context) -> None:
        raise error

    return work


def test_a_run_tells_all_that_the_stages_did() -> None:
    told = run(WHOLE, {"good_in": 2})

    assert (told.status, told.iterations, told.attempts) == ("ready", 2, 1)
    assert told.stages == ["think", "write", "write", "check"]
    assert told.lines == ["iteration 1", "0 0", "said", "10 0", "said"]
    asked = [SlotsAsked("write", stage_limit=3), SlotsAsked("write", ("openai",), ("db",))]
    assert told.slots == asked * 2
    assert told.commands == [(sys.executable, "-c", "print('said')")] * 2
    assert json.loads(told.result["told.json"]) == ["said\n", [".cache", "env", "kept.txt", "link", "result"]]


def test_a_question_ends_the_stage_which_begins_again_with_the_answer_of_the_test() -> None:
    class Size(BaseModel):
        wide: int

    @stage("asks")
    async def asks(ctx: Context) -> None:
        ctx.log("begun")
        licence = await ctx.ask("Which licence?", choices=["MIT", "BSD"])
        size = await ctx.ask("How wide?", schema=Size, key="size")
        ctx.progress(0.5, "half")
        ctx.log(f"{licence} {size.wide}")

    told = run(Pipeline("asking", (asks,)), answers={"Which licence?": "MIT", "size": {"wide": 3}})
    unanswered = run(Pipeline("asking", (asks,)))

    assert (told.status, told.attempts, told.questions) == ("ready", 3, ["Which licence?", "How wide?"])
    assert (told.lines, told.progress) == (["begun", "begun", "begun", "MIT 3"], [(0.5, "half")])
    assert (unanswered.status, unanswered.questions) == ("awaiting_confirmation", ["Which licence?"])
    with pytest.raises(AssertionError, match="none of the choices"):
        run(Pipeline("asking", (asks,)), answers={"Which licence?": "GPL"})


@pytest.mark.parametrize(
    "how",
    [
        {"text": " "},
        {"text": "x" * 501},
        {"text": "?", "choices": []},
        {"text": "?", "choices": ["a", "a"]},
        {"text": "?", "choices": ["a"], "schema": {}},
        {"text": "?", "key": "not a key"},
        {"text": "?", "schema": {"enum": ["x" * 9000]}},
    ],
)
def test_a_question_that_nobody_could_answer_is_the_authors_mistake(how: dict[str, Any]) -> None:
    @stage("asks")
    async def asks(ctx: Context) -> None:
        await ctx.ask(**how)

    told = run(Pipeline("asking", (asks,)))

    assert (told.status, type(told.error)) == ("failed", ValueError)


def test_a_worker_that_is_lost_between_stages_leaves_what_is_kept() -> None:
    told = run(WHOLE, {"good_in": 1}, loses=("think", "write"))

    assert (told.status, told.attempts) == ("ready", 3)
    assert json.loads(told.result["told.json"])[1] == ["kept.txt", "result"]


def test_a_stage_fails_as_often_as_the_test_asks_and_no_pause_is_waited() -> None:
    told = run(WHOLE, {"good_in": 1}, fails={"write": [TryAgain("away"), TryAgain("away", after_s=30)]})

    assert told.status == "ready"
    assert told.tries == [FailedTry("write", 1, "away", 5), FailedTry("write", 2, "away", 30)]
    assert "0 2" in told.lines


def test_one_failure_more_than_its_retries_ends_the_job() -> None:
    told = run(WHOLE, {"good_in": 1}, fails={"write": [TryAgain("away", "for long")] * 3})

    assert (told.status, told.summary, told.detail, told.stages) == ("failed", "away", "for long", ["think"])
    assert len(told.tries) == 2


def test_checks_that_the_test_makes_fail_tell_the_next_iteration_why() -> None:
    told = run(WHOLE, {"good_in": 1}, fails={"check": [ChecksFailed("red", "why")]})

    assert (told.status, told.iterations) == ("ready", 2)
    assert "3 0" in told.lines


def test_after_the_last_iteration_the_user_is_asked() -> None:
    told = run(WHOLE, {"good_in": 9}, iterations=2)

    assert (told.status, told.questions, told.detail) == ("awaiting_confirmation", ["Continue?"], "the reason")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StageFailed("Cannot be done.", "at all"), ("Cannot be done.", "at all")),
        (KeyError("k"), ("The stage only ended with KeyError.", "'k'")),
    ],
)
def test_what_a_stage_raises_is_there_with_the_words_of_its_user(error: Exception, said: tuple[str, str]) -> None:
    told = run(one(raising(error)))

    assert (told.status, (told.summary, told.detail)) == ("failed", said)
    assert told.error is error


def test_an_assertion_of_the_test_is_no_failure_of_the_job() -> None:
    with pytest.raises(AssertionError, match="mine"):
        run(one(raising(AssertionError("mine"))))


def test_an_error_that_the_stage_names_is_tried_again() -> None:
    told = run(one(raising(ConnectionError("reset")), retries=1, retry_on=(ConnectionError,)))

    assert [each.summary for each in told.tries] == ["The stage only ended with ConnectionError."]
    assert told.status == "failed"


def test_an_input_that_the_pipeline_cannot_read_fails_the_job_in_its_words() -> None:
    class Wanted(BaseModel):
        name: str

    told = run(Pipeline("reads", WHOLE.steps, input_as(Wanted)), {"names": 1})

    assert told.summary == "The job's input is not what the pipeline needs."
    assert told.detail == "name: Field required"


def test_a_full_group_gives_no_slot_to_whom_a_bounded_wait_is_enough() -> None:
    @stage("try")
    async def once(ctx: Context) -> None:
        async with ctx.group("db", wait_s=0):
            raise RuntimeError("entered")

    told = run(Pipeline("full", (once,)), full=("db",))

    assert told.summary == "The stage try ended with NoSlot."
    with pytest.raises(AssertionError, match="would wait for ever: db is full"):
        run(WHOLE, {"good_in": 1}, full=("db",))


def test_a_stage_that_takes_longer_than_it_may_fails() -> None:
    @stage("slow", timeout_s=0.01)
    async def slow(ctx: Context) -> None:
        await ctx.run(sys.executable, "-c", "import time; time.sleep(60)")

    assert run(Pipeline("slow", (slow,))).summary == "The stage slow took longer than it may: 0.01 s."


def test_a_stage_that_there_is_not_is_said() -> None:
    with pytest.raises(ValueError, match="no stage 'typo': it has think, write, check"):
        run(WHOLE, {"good_in": 1}, loses=("typo",))


def test_what_a_run_tells_begins_empty() -> None:
    assert PipelineRun() == PipelineRun(status="ready", stages=[], lines=[], questions=[], result={})

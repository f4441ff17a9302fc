"""The kit of authors where it opens sockets and processes: providers that answer, and the worker's own sandbox."""

from __future__ import annotations

import importlib
import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from headgate_pipeline import ChecksFailed, Context, ModelCall, Pipeline, TryAgain, stage
from headgate_pipeline.testing import ProviderPause, SlotsAsked, run, run_async
from tests.fixtures import trial

CALL = ModelCall(provider="openai", model="test-model", took_s=0.5, outcome="answered", input_tokens=1)
PAGE = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text(encoding="utf-8")


async def test_a_provider_answers_what_the_test_says_and_a_429_gives_the_slots_up() -> None:
    @stage("call")
    async def call(ctx: Context) -> None:
        async with ctx.provider("openai") as slot:
            try:
                asked(ctx)
            except urllib.error.HTTPError as error:
                error.close()
                await slot.shut("openai", for_s=float(error.headers["Retry-After"]))
            ctx.log(asked(ctx))
            ctx.called(CALL)

    told = await run_async(Pipeline("calls", (call,)), providers={"openai": [429, "Hello"]})

    assert (told.status, told.lines) == ("ready", ["Hello"])
    assert told.pauses == [ProviderPause("call", "openai", 1.0)]
    assert [each.body for each in told.requests] == [{"say": "hello"}] * 2
    assert len(told.slots) == 2
    assert told.calls == [CALL]


def asked(ctx: Context) -> str:
    url = f"{ctx.providers['openai'].url}/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, b'{"say": "hello"}')) as answer:  # noqa: S310 - the kit's own
        return json.load(answer)["choices"][0]["message"]["content"]


async def test_an_isolated_run_tells_the_same_by_the_worker_s_own_processes() -> None:
    told = await run_async(
        trial.pipeline,
        {"good_in": 2},
        loses=("think",),
        fails={"write": [TryAgain("away")]},
        isolated=True,
    )

    assert (told.status, told.attempts, told.iterations, told.summary) == ("ready", 2, 2, "")
    assert told.stages == ["think", "write", "write", "check"]
    assert [each.stage for each in told.tries] == ["write"]
    assert "try 1" in told.lines
    assert SlotsAsked("write", groups=("db",)) in told.slots
    assert told.calls == [trial.CALL] * 2
    found = json.loads(told.result["told.json"])
    assert found["said"] == "not yet\n"  # what failed before, and the command that repeats it
    assert found["names"] == ["kept.txt", "result"]  # no link, no cache: another attempt began after `think`
    assert not found["is_ours"]


async def test_an_isolated_stage_whose_checks_were_told_to_fail_is_told_why() -> None:
    told = await run_async(
        trial.pipeline, {"good_in": 1}, fails={"check": [ChecksFailed("by the test")]}, isolated=True
    )

    assert (told.status, told.iterations) == ("ready", 2)
    assert json.loads(told.result["told.json"])["said"] == "by the test\n"


async def test_an_isolated_stage_that_ends_its_process_fails_the_job() -> None:
    told = await run_async(trial.pipeline, {"good_in": 1, "dies": True}, isolated=True)

    assert (told.status, told.summary) == ("failed", "The stage think ended its own process.")


async def test_a_pipeline_that_no_module_has_cannot_be_isolated() -> None:
    with pytest.raises(ValueError, match="none has it as `pipeline`: import it from where"):
        await run_async(Pipeline("loose", trial.pipeline.steps), isolated=True)


def test_a_pipeline_with_all_of_it_takes_fifty_lines_and_its_test_fifteen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, survey, test, *_ = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "survey.py").write_text(survey, encoding="utf-8")
    (tmp_path / "test_survey.py").write_text(test, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    try:
        found = importlib.import_module("test_survey")
        found.test_a_survey_outlives_an_archive_that_is_away_and_a_worker_that_is_lost()
        told = run(found.pipeline, {"topic": "tea"}, answers={"Which tone?": "plain"}, isolated=True)
    finally:
        for name in ("survey", "test_survey"):
            sys.modules.pop(name, None)

    assert len(survey.splitlines()) <= 50
    assert len(test.splitlines()) <= 15
    assert (told.status, told.questions) == ("ready", ["Which tone?"])
    assert told.progress[-1] == (1.0, "3 of 3 pages")
    assert told.result["survey.txt"].decode().splitlines()[0] == "A plain survey"

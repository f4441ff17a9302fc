"""The kit of authors where it opens sockets and processes: providers that answer, and the worker's own sandbox."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from headgate_pipeline import Context, Pipeline, TryAgain, stage
from headgate_pipeline.testing import ProviderPause, SlotsAsked, run_async
from tests.fixtures import trial


async def test_a_provider_answers_what_the_test_says_and_a_429_gives_the_slots_up() -> None:
    @stage("call")
    async def call(ctx: Context) -> None:
        async with ctx.provider("openai") as slot:
            try:
                asked(ctx)
            except urllib.error.HTTPError as error:
                await slot.shut("openai", for_s=float(error.headers["Retry-After"]))
            ctx.log(asked(ctx))

    told = await run_async(Pipeline("calls", (call,)), providers={"openai": [429, "Hello"]})

    assert (told.status, told.lines) == ("ready", ["Hello"])
    assert told.pauses == [ProviderPause("call", "openai", 1.0)]
    assert [each.body for each in told.requests] == [{"say": "hello"}] * 2
    assert len(told.slots) == 2


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
    found = json.loads(told.result["told.json"])
    assert found["said"] == "not yet\n"  # what failed before, and the command that repeats it
    assert found["names"] == ["kept.txt", "result"]  # no link, no cache: another attempt began after `think`
    assert not found["is_ours"]


async def test_an_isolated_stage_that_ends_its_process_fails_the_job() -> None:
    told = await run_async(trial.pipeline, {"good_in": 1, "dies": True}, isolated=True)

    assert (told.status, told.summary) == ("failed", "The stage think ended its own process.")


async def test_a_pipeline_that_no_module_has_cannot_be_isolated() -> None:
    with pytest.raises(ValueError, match="none has it as `pipeline`: import it from where"):
        await run_async(Pipeline("loose", trial.pipeline.steps), isolated=True)

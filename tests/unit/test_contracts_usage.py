"""What events tell of calls to models, added up over a job's life."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_contracts import advance, fold
from headgate_contracts.errors import InvalidEvent
from headgate_contracts.events import ModelUsage
from headgate_contracts.usage import MOST_OF_A_JOB, StageUsage, usage_after, with_usage
from headgate_contracts.vocabulary import MOST_MODELS
from libs.cli.jobs import shown_lines
from libs.forecast.shown import model_usage_of, shown_job
from libs.policy import Policy
from tests.fixtures.lives import job_after, life_of, step

CODING = "queued dispatched started scaffold code"


def asked(**changes: Any) -> ModelUsage:
    plain = {"provider": "openai", "model": "m-1", "calls": 1, "input_tokens": 10, "output_tokens": 5, "took_ms": 900}
    return ModelUsage(**plain | changes)


def told(usages: tuple[StageUsage, ...]) -> list[tuple[str | None, str, int, int]]:
    return [(each.stage, each.model, each.calls, each.input_tokens) for each in usages]


def test_usage_is_of_the_stage_that_the_job_was_in() -> None:
    job = job_after(CODING)

    job = advance(job, step(job, "deps", usage=(asked(), asked(model="m-2"))))
    job = advance(job, step(job, "failed", usage=(asked(calls=2),)))

    assert told(job.model_usage) == [("code", "m-1", 1, 10), ("code", "m-2", 1, 10), ("deps", "m-1", 2, 10)]


def test_iterations_tries_and_attempts_of_a_stage_add_up() -> None:
    job = job_after(CODING)
    for word in ("try_failed", "given_back"):
        job = advance(job, step(job, word, usage=(asked(cached_tokens=3),)))
    for word in ("dispatched", "started", "scaffold", "code"):
        job = advance(job, step(job, word))

    job = advance(job, step(job, "deps", usage=(asked(),)))

    [usage] = job.model_usage
    assert (usage.stage, usage.calls, usage.input_tokens, usage.cached_tokens, usage.took_ms) == (
        "code",
        3,
        30,
        6,
        2700,
    )


def test_a_life_without_calls_has_no_usage() -> None:
    assert fold(life_of()).model_usage == ()


def test_one_model_more_than_an_event_tells_is_another() -> None:
    usages: tuple[ModelUsage, ...] = ()
    for number in range(MOST_MODELS + 3):
        usages = with_usage(usages, asked(model=f"m-{number}"), most=MOST_MODELS)

    assert len(usages) == MOST_MODELS
    assert (usages[-1].provider, usages[-1].model, usages[-1].calls) == ("other", "other", 4)
    assert step(job_after(CODING), "deps", usage=usages).encode()


def test_a_job_keeps_so_many_entries_and_forgets_no_token() -> None:
    usages: tuple[StageUsage, ...] = ()
    for number in range(300):
        usages = usage_after(usages, [asked(model=f"m-{number}")], stage=f"s-{number % 3}")

    assert len(usages) <= MOST_OF_A_JOB + 2
    assert sum(each.input_tokens for each in usages) == 3000


def test_a_sum_stays_within_what_its_field_takes() -> None:
    [usage] = with_usage((asked(input_tokens=2**31 - 1),), asked(), most=MOST_MODELS)

    assert usage.input_tokens == 2**31 - 1


@pytest.mark.parametrize("wrong", [{"model": "a prompt, in words"}, {"model": ""}, {"calls": 0}, {"input_tokens": -1}])
def test_what_is_no_name_and_no_number_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent):
        asked(**wrong)


def test_a_job_shows_what_it_has_asked_in_all_and_by_stage() -> None:
    job = job_after(CODING)
    job = advance(job, step(job, "deps", usage=(asked(), asked(model="m-2", cached_tokens=4))))

    shown = model_usage_of(job)

    assert model_usage_of(job_after(CODING)) is None
    assert shown is not None
    assert (shown.calls, shown.input_tokens, shown.output_tokens, shown.cached_tokens) == (2, 20, 10, 4)
    assert shown.stages == job.model_usage


def test_the_command_shows_tokens_by_stage() -> None:
    job = job_after(CODING)
    job = advance(job, step(job, "deps", usage=(asked(input_tokens=4180, cached_tokens=1024),)))
    shown = shown_job(job, policy=Policy(), used_today=1, now=job.updated_at, debug_id="0" * 32)

    lines = [(name, said) for name, said in shown_lines(shown.model_dump(mode="json")) if "4,180 in" in said]

    told = "4,180 in (1,024 cached), 5 out"
    assert lines == [("tokens", f"{told}; 1 call"), ("", f"code: {told} (openai, m-1)")]

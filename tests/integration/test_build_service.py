"""Builds through a real worker beside a real scheduler on real servers: sandbox, checkpoints, providers and all."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from headgate_contracts.events import JobFailed, JobReady
from libs.runtime.eventually import eventually
from tests.fixtures.providers import (
    CACHED_TOKENS,
    PROMPT_TOKENS,
    Provider,
    a_provider,
    files,
    is_silent,
    says,
    status,
    tokens_in,
)
from tests.fixtures.scheduler_system import BRIEF
from tests.fixtures.worker_system import WorkerSystem, a_worker_system, heard_lines

pytestmark = pytest.mark.timeout(600)
BUILT_WITHIN_S = 240.0  # a machine under full load; an idle one needs 3
ITERATION = "scaffold code deps checks"
OFFLINE: dict[str, Any] = {"HEADGATE_PIPELINES": "services.worker.build", "HEADGATE_INDEX": ""}
TIDY = {
    "src/shop/cart.py": '"""A cart."""\n\n\ndef total(prices):\n    return sum(prices)\n',
    "tests/test_cart.py": "from shop.cart import total\n\n\ndef test_it():\n    assert total([1, 2]) == 3\n",
}
WRONG = TIDY | {"src/shop/cart.py": '"""A cart."""\n\n\ndef total(prices):\n    return max(prices)\n'}


@pytest_asyncio.fixture
async def system(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[WorkerSystem]:
    async with a_worker_system(nats_url, redis_url, tmp_path) as system:
        await system.base.scheduler("a")
        yield system


@pytest_asyncio.fixture
async def hasty(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[WorkerSystem]:
    """With leases whose end can be waited for."""
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=BRIEF) as system:
        await system.base.scheduler("a")
        yield system


def parrot(provider: Provider) -> dict[str, Any]:
    """A worker's environment that knows this provider alone."""
    key = provider.endpoint.key
    assert key is not None
    return OFFLINE | {
        "HEADGATE_PROVIDERS": "parrot",
        "PARROT_BASE_URL": provider.url,
        "PARROT_MODEL": "parrot-1",
        "PARROT_API_KEY": key.get_secret_value(),
    }


async def test_a_prompt_becomes_a_package_without_key_or_network(system: WorkerSystem, nats_url: str) -> None:
    await system.worker("w1", **OFFLINE)
    async with heard_lines(nats_url) as lines:
        await system.submit("job-1", {"prompt": "a URL shortener"}, pipeline="build")

        await system.until("job-1", "ready", "failed", "awaiting_confirmation", within_s=BUILT_WITHIN_S)

    assert await system.story("job-1") == f"queued dispatched started {ITERATION} ready", lines
    result = await system.result("job-1")
    assert b"class Shortener" in result["url-shortener/src/url_shortener/shortener.py"]
    assert any(" passed in " in line.line for line in lines)
    assert isinstance((await system.datas("job-1"))[-1], JobReady)


@pytest.mark.builds
async def test_a_model_that_fails_first_is_shown_the_failure_and_the_job_is_ready_after_two_iterations(
    system: WorkerSystem, nats_url: str
) -> None:
    answers = files(WRONG), files({"src/shop/cart.py": TIDY["src/shop/cart.py"]})
    async with a_provider(*map(says, answers)) as provider:
        await system.worker("w1", **parrot(provider))
        await system.submit("job-1", {"prompt": "a shop"}, pipeline="build")

        job = await system.until("job-1", "ready", "failed", "awaiting_confirmation", within_s=BUILT_WITHIN_S)

    assert await system.story("job-1") == f"queued dispatched started {ITERATION} {ITERATION} ready"
    assert job.iteration == 2
    [usage] = job.model_usage
    assert (usage.stage, usage.provider, usage.model) == ("code", "parrot", "parrot-1")
    counted = (usage.calls, usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    assert counted == (2, 2 * PROMPT_TOKENS, 2 * CACHED_TOKENS, sum(map(tokens_in, answers)))
    assert "assert 2 == 3" in provider.asked[1].last
    result = await system.result("job-1")
    assert result["shop/src/shop/cart.py"].decode() == TIDY["src/shop/cart.py"]


@pytest.mark.builds
async def test_a_model_that_never_gets_it_right_ends_in_a_question_and_its_answer_goes_on_with_the_files(
    system: WorkerSystem,
) -> None:
    mended = says(files({"src/shop/cart.py": TIDY["src/shop/cart.py"]}))
    wrong = says(files(WRONG))
    async with a_provider(wrong, wrong, wrong, mended) as provider:
        await system.worker("w1", **parrot(provider))
        await system.submit("job-1", {"prompt": "a shop"}, pipeline="build")
        await system.until("job-1", "awaiting_confirmation", within_s=BUILT_WITHIN_S)

        await system.write("job-1", "confirmed", batch=3)

        job = await system.until("job-1", "ready", "failed", within_s=BUILT_WITHIN_S)

    assert (job.status, job.iteration, job.attempt) == ("ready", 4, 2)
    assert "assert 2 == 3" in provider.asked[3].last
    assert "return max(prices)" in provider.asked[3].last


@pytest.mark.builds
async def test_too_many_calls_shut_the_provider_and_are_not_the_jobs_failure(system: WorkerSystem) -> None:
    busy = status(429, headers={"Retry-After": "1"})
    async with a_provider(busy, busy, says(files(TIDY))) as provider:
        await system.worker("w1", **parrot(provider))
        await system.submit("job-1", {"prompt": "a shop"}, pipeline="build")

        await system.until("job-1", "ready", "failed", within_s=BUILT_WITHIN_S)

    assert await system.story("job-1") == f"queued dispatched started {ITERATION} ready"
    assert len(provider.asked) == 3


@pytest.mark.builds
async def test_a_refusal_fails_the_job_in_the_models_own_words_and_shows_no_key(
    system: WorkerSystem, nats_url: str
) -> None:
    async with a_provider(says("I will not write that.", refusal=True)) as provider, heard_lines(nats_url) as lines:
        environment = parrot(provider)
        await system.worker("w1", **environment)
        await system.submit("job-1", {"prompt": "a shop"}, pipeline="build")

        await system.until("job-1", "failed", within_s=BUILT_WITHIN_S)

    failed = (await system.datas("job-1"))[-1]
    assert isinstance(failed, JobFailed)
    assert (failed.summary, failed.detail) == ("parrot refused to write this.", "I will not write that.")
    assert not [line for line in lines if environment["PARROT_API_KEY"] in line.line]


@pytest.mark.builds
async def test_a_job_whose_worker_is_killed_goes_on_with_another_and_asks_the_model_no_second_time(
    hasty: WorkerSystem,
) -> None:
    """The tests that it has written take a while, so the kill falls into `checks`."""
    system = hasty
    slow = TIDY | {"tests/test_cart.py": f"import time\n\n{TIDY['tests/test_cart.py']}    time.sleep(2)\n"}
    async with a_provider(says(files(slow))) as provider:
        first = await system.worker("w1", **parrot(provider))
        await system.submit("job-1", {"prompt": "a shop"}, pipeline="build")
        await system.until("job-1", "checks", within_s=BUILT_WITHIN_S)

        assert first.pid
        os.kill(first.pid, signal.SIGKILL)
        await system.worker("w2", **parrot(provider))
        await system.until("job-1", "ready", "failed", within_s=BUILT_WITHIN_S)

    story = await system.story("job-1")
    assert story.startswith(f"queued dispatched started {ITERATION} given_back dispatched started (scaffold) (code)")
    assert story.endswith("checks ready")
    assert len(provider.asked) == 1
    [usage] = (await system.job("job-1")).model_usage
    assert (usage.stage, usage.calls, usage.input_tokens) == ("code", 1, PROMPT_TOKENS)


@pytest.mark.builds
async def test_a_call_that_a_cancel_breaks_off_is_counted(system: WorkerSystem) -> None:
    async with a_provider(is_silent) as provider:
        await system.worker("w1", **parrot(provider))
        await system.submit("job-1", {"prompt": "a shop"}, pipeline="build")
        await eventually(lambda: len(provider.asked) == 1, within_s=BUILT_WITHIN_S)

        await system.write("job-1", "cancel_requested")
        job = await system.until("job-1", "cancelled", within_s=BUILT_WITHIN_S)

    [usage] = job.model_usage
    assert (usage.stage, usage.calls, usage.input_tokens) == ("code", 1, 0)


async def test_an_input_that_is_wrong_is_told_to_its_user(system: WorkerSystem) -> None:
    await system.worker("w1", **OFFLINE)
    await system.submit("job-1", {"prmpt": "a shop"}, pipeline="build")

    await system.until("job-1", "failed", within_s=BUILT_WITHIN_S)

    failed = (await system.datas("job-1"))[-1]
    assert isinstance(failed, JobFailed)
    assert "prompt" in failed.detail
